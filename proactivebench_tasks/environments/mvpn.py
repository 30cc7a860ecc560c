"""MVP-N: views of an object that tell nothing, until the last one."""

from __future__ import annotations

from proactivebench_tasks.environments.environment import Action, Environment, State, frame
from proactivebench_tasks.protocol.samples import MvpnSample


class MvpnEnvironment(Environment[MvpnSample]):
    actions = dict.fromkeys(("rotate", "view", "angle", "orientation", "different"), Action.ROTATE)
    runs_out = True
    open_ended_suggestions = 2

    def next_image(self, state: State, action: Action) -> int:
        return self.sample.valid_images[state.turn + 1]

    def path(self, image: int, state: State) -> str:
        informative = self._reference or state.turn + 1 == self.sample.num_images
        return self.sample.image_template.format(image=frame(image), informative=int(informative))

    def open_ended_answers(self) -> str:
        return "Rotate the object, Move the camera."
