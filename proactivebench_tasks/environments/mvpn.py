"""MVP-N: views of an object that tell nothing, until the last one.

- Start: image ``first_image``.
- Actions: any suggestion to turn the object or to look from elsewhere shows the next of
  ``valid_images``.
- End: after ``num_images`` turns; the last of them shows the informative view and offers nothing
  more to ask for.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from proactivebench_tasks.environments.environment import Action, Environment, State, Subject
from proactivebench_tasks.protocol.samples import Dataset, Sample


class MvpnSample(Sample):
    """Views of an object, the last of ``valid_images`` being the informative one."""

    dataset: ClassVar[Dataset] = Dataset.MVPN
    placeholders: ClassVar[frozenset[str]] = frozenset({"image", "informative"})

    valid_images: Annotated[tuple[int, ...], Field(strict=False)]

    @model_validator(mode="after")
    def _enough_views(self) -> MvpnSample:
        if len(self.valid_images) < self.num_images:
            raise ValueError(
                f"valid_images has {len(self.valid_images)} entries, fewer than num_images "
                f"({self.num_images})"
            )
        return self


class MvpnEnvironment(Environment[MvpnSample, State]):
    sample_type = MvpnSample
    state_type = State
    actions = dict.fromkeys(("rotate", "view", "angle", "orientation", "different"), Action.ROTATE)
    runs_out = True
    subjects = frozenset({Subject.OBJECT_IN_HAND, Subject.PHOTO_QUALITY, Subject.FRAMING})
    digits = 4
    has_worked_examples = True
    valid_suggestions = ("Rotate the object", "Move the camera")

    def asked_enough(self, state: State) -> bool:
        return False  # it asks until there is nothing more to ask for: the informative view

    def next_image_id(self, state: State, action: Action) -> int:
        return self.sample.valid_images[state.turn + 1]

    def path(self, image_id: int, state: State) -> str:
        informative = self._reference or state.turn + 1 == self.sample.num_images
        return self.sample.image_template.format(
            image=self.padded(image_id), informative=int(informative)
        )

    def open_ended_categories(self) -> tuple[str, ...]:
        return ()  # the first view tells nothing
