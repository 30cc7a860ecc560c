"""ChangeIt: a video frame from before (or after) the moment that shows the answer.

- Start: frame ``first_image``.
- Actions: "rewind the video." goes ``step_size`` frames back, "wait for the" as many forward. A
  move that would leave the video is not offered.
- End: after ``max_steps`` turns.
"""

from __future__ import annotations

from typing import ClassVar

from proactivebench_tasks.environments.environment import (
    VIDEO_ACTIONS,
    Action,
    Environment,
    State,
    Subject,
    direction,
    without_periods,
)
from proactivebench_tasks.protocol.samples import Count, Dataset, Sample


class ChangeitSample(Sample):
    """Video frame from before (or after) the change of state; a move skips ``step_size`` frames."""

    dataset: ClassVar[Dataset] = Dataset.CHANGEIT

    step_size: Count
    max_steps: Count


class ChangeitEnvironment(Environment[ChangeitSample, State]):
    sample_type = ChangeitSample
    state_type = State
    actions = VIDEO_ACTIONS
    subjects = frozenset({Subject.VIDEO, Subject.PHOTO_QUALITY, Subject.FRAMING})
    separator = ","  # without a space, as the published package has it

    @property
    def max_turns(self) -> int:
        return self.sample.max_steps

    def withdrawn(self, state: State) -> tuple[str, ...]:
        # By these very words, and of the second the first option alone: so the published package
        # decides. Where a row words them in another way, nothing is withdrawn.
        if state.image_id - self.sample.step_size < 0:
            return ("Rewind the video.",)
        if state.image_id + self.sample.step_size >= self.sample.num_images:
            return tuple(o for o in self.sample.options if "Wait for the" in o)[:1]
        return ()

    def next_image_id(self, state: State, action: Action) -> int:
        return state.image_id + direction(action) * self.sample.step_size

    def in_range(self, state: State) -> bool:
        # The row's own first image is shown wherever it is.
        return state.turn == 0 or 0 <= state.image_id < self.sample.num_images

    def open_ended_suggestions(self) -> tuple[str, ...]:
        return (*without_periods(self.correct_suggestions(self.start())), "Rewind the video")

    @classmethod
    def num_open_ended_suggestions(cls) -> int:
        # So the benchmark counts, although rewinding is listed twice where the first state offers
        # it; the second one then counts as a name of the category.
        return 2
