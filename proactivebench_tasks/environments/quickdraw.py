"""QuickDraw: a sketch that gains strokes.

- Start: drawing ``first_image``.
- Actions: any suggestion to go on drawing shows the next one.
- End: after ``num_images`` turns; the last of them offers nothing more to ask for.
"""

from __future__ import annotations

from typing import ClassVar

from proactivebench_tasks.environments.environment import Action, Environment, State, Subject
from proactivebench_tasks.protocol.samples import Dataset, Sample


class QuickdrawSample(Sample):
    """Unfinished sketch."""

    dataset: ClassVar[Dataset] = Dataset.QUICKDRAW


class QuickdrawEnvironment(Environment[QuickdrawSample, State]):
    sample_type = QuickdrawSample
    state_type = State
    actions = dict.fromkeys(("details", "quickdraw", "drawing", "sketch"), Action.ADD_DETAILS)
    runs_out = True
    subjects = frozenset({Subject.PEN_STROKES, Subject.FRAMING})
    digits = 4
    valid_suggestions = ("Add more details to the drawing",)

    def next_image_id(self, state: State, action: Action) -> int:
        return state.image_id + 1
