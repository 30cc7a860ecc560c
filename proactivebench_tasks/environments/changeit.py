"""ChangeIt: a video frame from before (or after) the moment that shows the answer.

- Start: frame ``first_image``.
- Actions: "rewind the video." goes ``step_size`` frames back, "wait for the" as many forward. A
  move that would leave the video is not offered.
- End: after ``max_steps`` turns.
"""

from __future__ import annotations

from typing import ClassVar

from proactivebench_tasks.environments.environment import Action, Environment, Mode, State
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Count, Dataset, Sample


class ChangeitSample(Sample):
    """Video frame from before (or after) the change of state; a move skips ``step_size`` frames."""

    dataset: ClassVar[Dataset] = Dataset.CHANGEIT

    step_size: Count
    max_steps: Count


class ChangeitEnvironment(Environment[ChangeitSample]):
    sample_type = ChangeitSample
    actions = {"rewind the video.": Action.REWIND, "wait for the": Action.WAIT}
    open_ended_suggestions = 2

    @property
    def max_turns(self) -> int:
        return self.sample.max_steps

    def withdrawn(self, state: State) -> tuple[str, ...]:
        if state.image_id - self.sample.step_size < 0:
            return ("Rewind the video.",)
        if state.image_id + self.sample.step_size >= self.sample.num_images:
            return tuple(o for o in self.sample.options if "Wait for the" in o)[:1]
        return ()

    def next_image_id(self, state: State, action: Action) -> int:
        step = -1 if action is Action.REWIND else 1
        frame = state.image_id + step * self.sample.step_size
        if self.mode is not Mode.RANDOM and not 0 <= frame < self.sample.num_images:
            raise DataError(
                f"sample {self.sample.id}: {action.name.lower()} leads from frame {state.image_id} "
                f"to frame {frame}, outside the video's {self.sample.num_images} frames"
            )
        return frame

    def in_range(self, state: State) -> bool:
        return 0 <= state.image_id < self.sample.num_images

    def open_ended_answers(self) -> str:
        asks = [o.replace(".", "") for o in self.correct_suggestions(self.start())]
        return ",".join([*asks, "Rewind the video", *self._bare_categories()]) + "."
