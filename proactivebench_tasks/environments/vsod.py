"""OcclusionDataSet-MM20: an object in a video, hidden by something that passes."""

from __future__ import annotations

from proactivebench_tasks.environments.environment import Action, Environment, State, frame
from proactivebench_tasks.protocol.samples import VsodSample


class VsodEnvironment(Environment[VsodSample]):
    actions = {"rewind the video.": Action.REWIND, "wait for the": Action.WAIT}
    open_ended_suggestions = 3

    def next_image(self, state: State, action: Action) -> int:
        step = -1 if action is Action.REWIND else 1
        return (state.image + step) % self.sample.num_images

    def path(self, image: int, state: State) -> str:
        return self.sample.image_template.format(image=frame(image))

    def open_ended_answers(self) -> str:
        asks = ["Wait for the occlusion to disappear", "Rewind the video", "Move the camera"]
        return ", ".join(asks + self._bare_categories()) + "."
