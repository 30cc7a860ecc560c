"""ImageNet-C: a corrupted photo that gets cleaner with each right request.

- Start: corruption level ``first_image``.
- Actions: the one suggestion that repairs this corruption lowers the level by one.
- End: after ``num_images`` turns; the last of them offers nothing more to ask for.
"""

from __future__ import annotations

from typing import ClassVar

from proactivebench_tasks.environments.environment import (
    Action,
    Environment,
    State,
    Subject,
    without_periods,
)
from proactivebench_tasks.protocol.samples import Dataset, Sample, Text

_REPAIRS = (
    "brightness",
    "contrast",
    "saturation",
    "deblur",
    "denoise",
    "compression",
    "resolution",
    "artifacts",
)


class ImagenetcSample(Sample):
    """Corrupted photo; ``quality_answer`` is the suggestion that repairs it."""

    dataset: ClassVar[Dataset] = Dataset.IMAGENETC
    placeholders: ClassVar[frozenset[str]] = frozenset({"level"})

    quality_answer: Text


class ImagenetcEnvironment(Environment[ImagenetcSample, State]):
    sample_type = ImagenetcSample
    state_type = State
    actions = dict.fromkeys(_REPAIRS, Action.IMPROVE)
    runs_out = True
    subjects = frozenset({Subject.PHOTO_QUALITY, Subject.FRAMING, Subject.OBJECT_IN_HAND})

    def helpful(self) -> tuple[str, ...]:
        if self.sample.quality_answer in self.sample.options:
            return (self.sample.quality_answer,)
        return super().helpful()

    def next_image_id(self, state: State, action: Action) -> int:
        return state.image_id - 1

    def path(self, image_id: int, state: State) -> str:
        return self.sample.image_template.format(level=image_id)

    def open_ended_suggestions(self) -> tuple[str, ...]:
        return without_periods(self.correct_suggestions(self.start()))

    @classmethod
    def num_open_ended_suggestions(cls) -> int:
        # So the benchmark counts, also where the first state has none or several that are correct.
        return 1
