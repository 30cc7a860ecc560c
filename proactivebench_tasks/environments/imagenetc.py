"""ImageNet-C: a corrupted photo that gets cleaner with each right request."""

from __future__ import annotations

from proactivebench_tasks.environments.environment import Action, Environment, State
from proactivebench_tasks.protocol.samples import ImagenetcSample

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


class ImagenetcEnvironment(Environment[ImagenetcSample]):
    actions = dict.fromkeys(_REPAIRS, Action.IMPROVE)
    runs_out = True
    open_ended_suggestions = 1

    def helpful(self) -> tuple[str, ...]:
        if self.sample.quality_answer in self.sample.options:
            return (self.sample.quality_answer,)
        return super().helpful()

    def next_image(self, state: State, action: Action) -> int:
        return state.image - 1

    def path(self, image: int, state: State) -> str:
        return self.sample.image_template.format(level=image)

    def open_ended_answers(self) -> str:
        asks = [o.replace(".", "") for o in self.correct_suggestions(self.start())]
        return ", ".join(asks + self._bare_categories()) + "."
