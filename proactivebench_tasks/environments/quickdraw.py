"""QuickDraw: a sketch that gains strokes."""

from __future__ import annotations

from proactivebench_tasks.environments.environment import Action, Environment, State, frame
from proactivebench_tasks.protocol.samples import QuickdrawSample


class QuickdrawEnvironment(Environment[QuickdrawSample]):
    actions = dict.fromkeys(("details", "quickdraw", "drawing", "sketch"), Action.ADD_DETAILS)
    runs_out = True
    open_ended_suggestions = 1

    def next_image(self, state: State, action: Action) -> int:
        return state.image + 1

    def path(self, image: int, state: State) -> str:
        return self.sample.image_template.format(image=frame(image))

    def open_ended_answers(self) -> str:
        return ", ".join(["Add more details to the drawing", *self._bare_categories()]) + "."
