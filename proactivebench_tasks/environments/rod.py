"""Realistic-Occlusion-Dataset: an object behind blocks that can be moved left or right.

- Start: image ``first_image``; no category counts before the first accepted suggestion.
- Actions: "to the left" shows the image before, "to the right" the one after, in a circle.
- End: after ``num_images`` turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from proactivebench_tasks.environments.environment import Action, Environment, State, Subject
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


class RodEnvironment(Environment[RodSample, Moved]):
    sample_type = RodSample
    state_type = Moved
    actions = {"to the left": Action.LEFT, "to the right": Action.RIGHT}
    subjects = frozenset(
        {Subject.BLOCKS, Subject.OBJECT_IN_HAND, Subject.PHOTO_QUALITY, Subject.FRAMING}
    )
    has_worked_examples = True
    valid_suggestions = ("Move the blocks", "Move the camera")

    def answerable(self, state: Moved) -> bool:
        return self._reference or state.turn > 0

    def move(self, state: Moved, action: Action) -> Moved:
        return replace(super().move(state, action), last=action)

    def path(self, image_id: int, state: Moved) -> str:
        path = super().path(image_id, state)
        if _BROKEN_SERIES in path and not self._reference:
            path = path.replace("s6", "s5" if state.last is Action.LEFT else "s7")
        return path
