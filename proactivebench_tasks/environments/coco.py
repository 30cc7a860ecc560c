"""COCO: one image, shown through a window that shows too little and can be moved or widened.

- Start: the row's ``crop``, already widened by one step.
- Actions: "to the left", "to the right", "up", "down" widen the window on that side, "farther" on
  all sides. A direction is withdrawn once it has reached its limit.
- End: after ``granularity`` turns for each direction of the sample; one more than that in a zoom.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from proactivebench_tasks.environments.environment import (
    Action,
    Box,
    Environment,
    State,
    Subject,
)
from proactivebench_tasks.protocol.samples import Count, Dataset, Number, Sample

_HORIZONTAL = (Action.LEFT, Action.RIGHT)
_VERTICAL = (Action.UP, Action.DOWN)


class StartingCrop(BaseModel):
    """COCO's starting window, in pixels of the whole image."""

    model_config = ConfigDict(frozen=True, strict=True)

    top: Number
    left: Number
    height: Number
    width: Number


class CocoSample(Sample):
    """Crop that shows too little. Steps are in pixels."""

    dataset: ClassVar[Dataset] = Dataset.COCO
    placeholders: ClassVar[frozenset[str]] = frozenset()

    direction: Annotated[
        str, Field(pattern=r"^((left|right|up|down)(_(left|right|up|down))?|zoom)$")
    ]
    granularity: Count
    horizontal_step: Number
    vertical_step: Number
    crop: StartingCrop

    @property
    def is_zoom(self) -> bool:
        return self.direction == "zoom"

    @property
    def hint_name(self) -> str:
        return "coco_zoom" if self.is_zoom else super().hint_name


@dataclass(frozen=True)
class Reach(State):
    """How far the window reaches beyond the row's crop, in pixels, and after how many moves."""

    horizontal: float = 0.0
    vertical: float = 0.0
    horizontal_moves: int = 0
    vertical_moves: int = 0


def _grown(reach: float, moves: int) -> float:
    """The reach after one more move. Divided first, as the published package computes it: the
    limits compare these floats."""
    return reach / moves * (moves + 1)


class CocoEnvironment(Environment[CocoSample, Reach]):
    sample_type = CocoSample
    state_type = Reach
    actions = {
        "to the left": Action.LEFT,
        "to the right": Action.RIGHT,
        "up": Action.UP,
        "down": Action.DOWN,
        "farther": Action.ZOOM_OUT,
    }
    subjects = frozenset({Subject.PHOTO_QUALITY, Subject.FRAMING})
    valid_suggestions = ("Move the camera", "Move farther from the object")

    @property
    def _directions(self) -> list[str]:
        return self.sample.direction.split("_")

    @property
    def max_turns(self) -> int:
        if self.sample.is_zoom:
            return self.sample.granularity + 1
        return self.sample.granularity * len(self._directions)

    def start(self) -> Reach:
        return Reach(
            turn=0,
            image_id=self.sample.first_image,
            horizontal=self.sample.horizontal_step,
            vertical=self.sample.vertical_step,
        )

    def withdrawn(self, state: Reach) -> tuple[str, ...]:
        steps = self.max_turns if self.sample.is_zoom else self.sample.granularity
        widest = self.sample.horizontal_step * steps
        tallest = self.sample.vertical_step * steps
        if self.sample.is_zoom:
            return self.options_for(Action.ZOOM_OUT) if state.horizontal == widest else ()
        gone: list[str] = []
        if state.horizontal >= (widest if self._along("left", "right") else 0):
            gone += [o for action in _HORIZONTAL for o in self.options_for(action)]
        if state.vertical >= (tallest if self._along("up", "down") else 0):
            gone += [o for action in _VERTICAL for o in self.options_for(action)]
        return tuple(gone)

    def _along(self, *directions: str) -> bool:
        return any(d in self._directions for d in directions)

    def move(self, state: Reach, action: Action) -> Reach:
        after = replace(state, turn=state.turn + 1)
        if action not in _VERTICAL:
            moves = state.horizontal_moves + 1
            reach = _grown(state.horizontal, moves)
            after = replace(after, horizontal=reach, horizontal_moves=moves)
        if action not in _HORIZONTAL:
            moves = state.vertical_moves + 1
            reach = _grown(state.vertical, moves)
            after = replace(after, vertical=reach, vertical_moves=moves)
        return after

    def path(self, image_id: int, state: Reach) -> str:
        return self.sample.image_template

    def crop(self, state: Reach) -> Box | None:
        if self._reference:
            return None
        crop = self.sample.crop
        # The row's height and width are the window's lower and right edge, except in a zoom.
        top, left, bottom, right = crop.top, crop.left, crop.height, crop.width
        if self.sample.is_zoom or "up" in self._directions:
            top -= state.vertical
        if self.sample.is_zoom or "left" in self._directions:
            left -= state.horizontal
        if self.sample.is_zoom or "down" in self._directions:
            bottom += state.vertical
        if self.sample.is_zoom or "right" in self._directions:
            right += state.horizontal
        if self.sample.is_zoom:
            # Last, for the order of these additions decides the last bit, and so a pixel.
            bottom, right = bottom + crop.top, right + crop.left
        return Box(left=left, top=top, right=right, bottom=bottom)
