"""OcclusionDataSet-MM20: an object in a video, hidden by something that passes.

- Start: frame ``first_image``.
- Actions: "rewind the video." shows the frame before, "wait for the" the one after, in a circle.
- End: after ``num_images`` turns.
"""

from __future__ import annotations

from typing import ClassVar

from proactivebench_tasks.environments.environment import (
    Action,
    Environment,
    State,
    four_digits,
)
from proactivebench_tasks.protocol.samples import Dataset, Sample


class VsodSample(Sample):
    """Object in a video, hidden by something that passes."""

    dataset: ClassVar[Dataset] = Dataset.VSOD

    strong_occlusions: bool


class VsodEnvironment(Environment[VsodSample]):
    sample_type = VsodSample
    actions = {"rewind the video.": Action.REWIND, "wait for the": Action.WAIT}
    open_ended_suggestions = 3

    def next_image_id(self, state: State, action: Action) -> int:
        step = -1 if action is Action.REWIND else 1
        return (state.image_id + step) % self.sample.num_images

    def path(self, image_id: int, state: State) -> str:
        return self.sample.image_template.format(image=four_digits(image_id))

    def open_ended_answers(self) -> str:
        asks = ["Wait for the occlusion to disappear", "Rewind the video", "Move the camera"]
        return ", ".join(asks + self._bare_categories()) + "."
