"""ChangeIt: a video frame from before (or after) the moment that shows the answer."""

from __future__ import annotations

from proactivebench_tasks.environments.environment import Action, Environment, Mode, State
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import ChangeitSample


class ChangeitEnvironment(Environment[ChangeitSample]):
    actions = {"rewind the video.": Action.REWIND, "wait for the": Action.WAIT}
    open_ended_suggestions = 2

    @property
    def max_turns(self) -> int:
        return self.sample.max_steps

    def withdrawn(self, state: State) -> tuple[str, ...]:
        if state.image - self.sample.step_size < 0:
            return ("Rewind the video.",)
        if state.image + self.sample.step_size >= self.sample.num_images:
            return tuple(o for o in self.sample.options if "Wait for the" in o)[:1]
        return ()

    def next_image(self, state: State, action: Action) -> int:
        step = -1 if action is Action.REWIND else 1
        image = state.image + step * self.sample.step_size
        if self.mode is not Mode.RANDOM and not 0 <= image < self.sample.num_images:
            raise DataError(
                f"sample {self.sample.id}: {action.name.lower()} leads from frame {state.image} to "
                f"frame {image}, outside the video's {self.sample.num_images} frames"
            )
        return image

    def in_range(self, state: State) -> bool:
        return 0 <= state.image < self.sample.num_images

    def open_ended_answers(self) -> str:
        asks = [o.replace(".", "") for o in self.correct_suggestions(self.start())]
        return ",".join([*asks, "Rewind the video", *self._bare_categories()]) + "."
