"""COCO: one image, shown through a window that shows too little and can be moved or widened."""

from __future__ import annotations

from dataclasses import dataclass, replace

from proactivebench_tasks.environments.environment import Action, Box, Environment, State
from proactivebench_tasks.protocol.samples import CocoSample

_HORIZONTAL = (Action.LEFT, Action.RIGHT)
_VERTICAL = (Action.UP, Action.DOWN)


@dataclass(frozen=True)
class Window(State):
    """How far the window reaches beyond the row's crop, in pixels, and after how many moves."""

    horizontal: float = 0.0
    vertical: float = 0.0
    horizontal_moves: int = 0
    vertical_moves: int = 0


def _grown(reach: float, moves: int) -> float:
    """The reach after one more move. Divided first, as the published package computes it: the
    limits compare these floats."""
    return reach / moves * (moves + 1)


class CocoEnvironment(Environment[CocoSample]):
    actions = {
        "to the left": Action.LEFT,
        "to the right": Action.RIGHT,
        "up": Action.UP,
        "down": Action.DOWN,
        "farther": Action.ZOOM_OUT,
    }
    open_ended_suggestions = 2

    @property
    def _directions(self) -> list[str]:
        return self.sample.direction.split("_")

    @property
    def _zoom(self) -> bool:
        return self.sample.direction == "zoom"

    @property
    def max_turns(self) -> int:
        if self._zoom:
            return self.sample.granularity + 1
        return self.sample.granularity * len(self._directions)

    def start(self) -> Window:
        return Window(
            turn=0,
            image=self.sample.first_image,
            horizontal=self.sample.horizontal_step,
            vertical=self.sample.vertical_step,
        )

    def withdrawn(self, state: State) -> tuple[str, ...]:
        assert isinstance(state, Window)
        steps = self.max_turns if self._zoom else self.sample.granularity
        widest = self.sample.horizontal_step * steps
        tallest = self.sample.vertical_step * steps
        if self._zoom:
            return self.options_for(Action.ZOOM_OUT) if state.horizontal == widest else ()
        gone: list[str] = []
        if state.horizontal >= (widest if self._along("left", "right") else 0):
            gone += [o for action in _HORIZONTAL for o in self.options_for(action)]
        if state.vertical >= (tallest if self._along("up", "down") else 0):
            gone += [o for action in _VERTICAL for o in self.options_for(action)]
        return tuple(gone)

    def _along(self, *directions: str) -> bool:
        return any(d in self._directions for d in directions)

    def move(self, state: State, action: Action) -> State:
        assert isinstance(state, Window)
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

    def path(self, image: int, state: State) -> str:
        return self.sample.image_template

    def crop(self, state: State) -> Box | None:
        if self._reference:
            return None
        assert isinstance(state, Window)
        crop = self.sample.crop
        # The row's height and width are the window's lower and right edge, except in a zoom.
        top, left, bottom, right = crop.top, crop.left, crop.height, crop.width
        if self._zoom or "up" in self._directions:
            top -= state.vertical
        if self._zoom or "left" in self._directions:
            left -= state.horizontal
        if self._zoom or "down" in self._directions:
            bottom += state.vertical
        if self._zoom or "right" in self._directions:
            right += state.horizontal
        if self._zoom:  # last: the order of these additions decides the last bit, and so a pixel
            bottom, right = bottom + crop.top, right + crop.left
        return Box(left=left, top=top, right=right, bottom=bottom)

    def open_ended_answers(self) -> str:
        asks = ["Move the camera", "Move farther from the object"]
        return ", ".join(asks + self._bare_categories()) + "."
