"""QuickDraw: a sketch that gains strokes.

- Start: drawing ``first_image``.
- Actions: any suggestion to go on drawing shows the next one.
- End: after ``num_images`` turns; the last of them offers nothing more to ask for.
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


class QuickdrawSample(Sample):
    """Unfinished sketch."""

    dataset: ClassVar[Dataset] = Dataset.QUICKDRAW


class QuickdrawEnvironment(Environment[QuickdrawSample]):
    sample_type = QuickdrawSample
    actions = dict.fromkeys(("details", "quickdraw", "drawing", "sketch"), Action.ADD_DETAILS)
    runs_out = True
    open_ended_suggestions = 1

    def next_image_id(self, state: State, action: Action) -> int:
        return state.image_id + 1

    def path(self, image_id: int, state: State) -> str:
        return self.sample.image_template.format(image=four_digits(image_id))

    def open_ended_answers(self) -> str:
        return ", ".join(["Add more details to the drawing", *self._bare_categories()]) + "."
