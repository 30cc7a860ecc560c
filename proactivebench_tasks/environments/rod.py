"""Realistic-Occlusion-Dataset: an object behind blocks that can be moved left or right.

- Start: image ``first_image``; no category counts before the first accepted suggestion.
- Actions: "to the left" shows the image before, "to the right" the one after, in a circle.
- End: after ``num_images`` turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from proactivebench_tasks.environments.environment import Action, Environment, State
from proactivebench_tasks.protocol.samples import Dataset, Sample

#: This series lacks its image 6; a move that would show it shows the neighbour in that direction.
_BROKEN_SERIES = "natural_bluebl_greenr-banana-s6"


class RodSample(Sample):
    """Object behind blocks."""

    dataset: ClassVar[Dataset] = Dataset.ROD


@dataclass(frozen=True)
class Moved(State):
    """``last`` is the direction of the last move; it decides what the broken series shows."""

    last: Action | None = None


class RodEnvironment(Environment[RodSample]):
    sample_type = RodSample
    actions = {"to the left": Action.LEFT, "to the right": Action.RIGHT}
    open_ended_suggestions = 2

    def answerable(self, state: State) -> bool:
        return self._reference or state.turn > 0

    def start(self) -> Moved:
        return Moved(turn=0, image_id=self.sample.first_image)

    def move(self, state: State, action: Action) -> State:
        return Moved(state.turn + 1, self.next_image_id(state, action), last=action)

    def next_image_id(self, state: State, action: Action) -> int:
        step = -1 if action is Action.LEFT else 1
        return (state.image_id + step) % self.sample.num_images

    def path(self, image_id: int, state: State) -> str:
        path = super().path(image_id, state)
        if _BROKEN_SERIES in path and not self._reference:
            assert isinstance(state, Moved)
            path = path.replace("s6", "s5" if state.last is Action.LEFT else "s7")
        return path

    def open_ended_answers(self) -> str:
        return "Move the blocks, Move the camera."
