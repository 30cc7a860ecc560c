"""Environment: the rules of one dataset, as functions of a sample and a small frozen state.

A dataset's module overrides what it does differently and nothing else. ``Episode`` (episode.py)
plays one sample by these rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import ClassVar, Generic, TypeVar

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Sample


class Mode(str, Enum):
    """How an episode is played."""

    NORMAL = "normal"
    REFERENCE = "reference"  # nothing is hidden, nothing can be asked
    #: The suggestions are meaningless, and what an accepted one does is drawn: does the model still
    #: take them? Not to be mixed up with the policy ``random`` of the baselines, which plays any
    #: mode by picking any option of the list.
    RANDOM = "random"


class Action(Enum):
    """What an accepted suggestion does to what is shown."""

    LEFT = auto()
    RIGHT = auto()
    UP = auto()
    DOWN = auto()
    ZOOM_OUT = auto()
    REWIND = auto()
    WAIT = auto()
    ROTATE = auto()
    IMPROVE = auto()
    ADD_DETAILS = auto()


@dataclass(frozen=True)
class Box:
    """A window on an image, in its pixels; the order is PIL's ``Image.crop``."""

    left: float
    top: float
    right: float
    bottom: float

    def to_list(self) -> list[float]:
        """``[left, top, right, bottom]``."""
        return [self.left, self.top, self.right, self.bottom]


@dataclass(frozen=True)
class State:
    """Where an episode stands: ``turn`` suggestions were accepted; ``image_id`` is the number of
    the image that is shown."""

    turn: int
    image_id: int


S = TypeVar("S", bound=Sample)


def is_suggestion(option: str) -> bool:
    """Whether an option asks for something; the others refuse to answer."""
    text = option.lower()
    return "cannot" not in text and "do not" not in text


class Environment(Generic[S]):
    """The common rules: every category counts at any time, and turns end after ``num_images``."""

    #: What a row of this dataset is parsed to.
    sample_type: ClassVar[type[Sample]]
    #: What a suggestion does, by a fragment of its lower-cased text.
    actions: ClassVar[Mapping[str, Action]]
    #: Whether the last turn offers nothing more to ask for (MVP-N, ImageNet-C, QuickDraw).
    runs_out: ClassVar[bool] = False
    #: How many leading open-ended answers are suggestions; the rest name the category.
    open_ended_suggestions: ClassVar[int]

    def __init__(self, sample: S, mode: Mode = Mode.NORMAL) -> None:
        self.sample = sample
        self.mode = mode

    @property
    def max_turns(self) -> int:
        return self.sample.num_images

    def start(self) -> State:
        return State(turn=0, image_id=self.sample.first_image)

    # What is on the list, and what is right in it.

    def suggestions(self, state: State) -> tuple[str, ...]:
        """The options listed in this state: suggestions and refusals, in the row's order."""
        if self._reference:
            return ()
        gone = () if self.mode is Mode.RANDOM else self.withdrawn(state)
        return tuple(o for o in self.sample.options if o not in gone)

    def withdrawn(self, state: State) -> tuple[str, ...]:
        """Options that this state cannot offer."""
        return ()

    def helpful(self) -> tuple[str, ...]:
        """The options that are right to ask for, as long as asking helps at all."""
        return tuple(o for o in self.sample.options if is_suggestion(o))

    def correct_suggestions(self, state: State) -> tuple[str, ...]:
        if self.runs_out and state.turn + 1 >= self.sample.num_images:
            return ()
        listed = self.suggestions(state)
        return tuple(o for o in self.helpful() if o in listed)

    def answerable(self, state: State) -> bool:
        """Whether the right category counts in this state."""
        return True

    def correct_categories(self, state: State) -> tuple[str, ...]:
        return (self.sample.answer,) if self.answerable(state) else ()

    # How the image changes.

    def action(self, suggestion: str) -> Action:
        """What a suggestion does; ``DataError`` if its text names no action of this dataset."""
        if (action := self._named(suggestion)) is None:
            raise DataError(
                f"sample {self.sample.id}: suggestion {suggestion!r} names no action; expected one "
                f"of these in its text: {', '.join(map(repr, self.actions))}"
            )
        return action

    @property
    def all_actions(self) -> list[Action]:
        """Every action of this dataset, once."""
        return list(dict.fromkeys(self.actions.values()))

    def _named(self, option: str) -> Action | None:
        text = option.lower()
        return next((action for part, action in self.actions.items() if part in text), None)

    def options_for(self, action: Action) -> tuple[str, ...]:
        """The helpful options that name this action."""
        return tuple(o for o in self.helpful() if self._named(o) is action)

    def move(self, state: State, action: Action) -> State:
        """The state after an accepted suggestion."""
        image_id = self.next_image_id(state, action)
        return replace(state, turn=state.turn + 1, image_id=image_id)

    def next_image_id(self, state: State, action: Action) -> int:
        raise NotImplementedError

    def in_range(self, state: State) -> bool:
        """Whether the state has an image at all."""
        return True

    # What is shown.

    def image_path(self, state: State) -> str:
        """Path of the image that is shown, below the data folder."""
        return self.path(self.sample.reference_image if self._reference else state.image_id, state)

    def path(self, image_id: int, state: State) -> str:
        """Path of the image with this number, below the data folder."""
        return self.sample.image_template.format(image=image_id)

    def crop(self, state: State) -> Box | None:
        """The part of the image that is shown; ``None`` for all of it."""
        return None

    @property
    def _reference(self) -> bool:
        return self.mode is Mode.REFERENCE

    # Open-ended generation.

    def open_ended_answers(self) -> str:
        """The accepted free-form answers: one comma-separated string that ends in a period."""
        raise NotImplementedError

    def _bare_categories(self) -> list[str]:
        return [c.replace(".", "") for c in self.correct_categories(self.start())]


def four_digits(image_id: int) -> str:
    """An image's number as the file names of VSOD, MVP-N and QuickDraw have it."""
    return f"{image_id:04d}"


def derived_seed(*parts: object) -> int:
    """A seed that depends on these values alone, the same on every machine."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big")
