"""OcclusionDataSet-MM20: an object in a video, hidden by something that passes.

- Start: frame ``first_image``.
- Actions: "rewind the video." shows the frame before, "wait for the" the one after, in a circle.
- End: after ``num_images`` turns.
"""

from __future__ import annotations

from typing import ClassVar

from proactivebench_tasks.environments.environment import (
    VIDEO_ACTIONS,
    Environment,
    State,
    Subject,
)
from proactivebench_tasks.protocol.samples import Dataset, Sample


class VsodSample(Sample):
    """Object in a video, hidden by something that passes."""

    dataset: ClassVar[Dataset] = Dataset.VSOD

    strong_occlusions: bool


class VsodEnvironment(Environment[VsodSample, State]):
    sample_type = VsodSample
    state_type = State
    actions = VIDEO_ACTIONS
    subjects = frozenset({Subject.VIDEO, Subject.PHOTO_QUALITY, Subject.FRAMING})
    digits = 4
    valid_suggestions = (
        "Wait for the occlusion to disappear",
        "Rewind the video",
        "Move the camera",
    )
