"""Environment: the rules of one dataset, as functions of a sample and a small frozen state.

A dataset's module overrides what it does differently and nothing else. ``Episode`` (episode.py)
plays one sample by these rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
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


#: The actions of a video, by a fragment of a suggestion's lower-cased text.
VIDEO_ACTIONS: Mapping[str, Action] = {
    "rewind the video.": Action.REWIND,
    "wait for the": Action.WAIT,
}


def direction(action: Action) -> int:
    """Where an action leads in a series of images: -1 back, 1 on."""
    return -1 if action in (Action.LEFT, Action.REWIND) else 1


class Subject(Enum):
    """What an image may have that a suggestion acts on."""

    BLOCKS = auto()
    VIDEO = auto()
    OBJECT_IN_HAND = auto()
    PHOTO_QUALITY = auto()
    PEN_STROKES = auto()
    FRAMING = auto()


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
T = TypeVar("T", bound=State)


def is_suggestion(option: str) -> bool:
    """Whether an option asks for something; the others refuse to answer."""
    text = option.lower()
    return "cannot" not in text and "do not" not in text


class Environment(Generic[S, T]):
    """The common rules: every category counts at any time, an action leads to the image before or
    after in a circle, and turns end after ``num_images``."""

    #: What a row of this dataset is parsed to.
    sample_type: ClassVar[type[Sample]]
    #: What a state of this dataset is.
    state_type: type[T]
    #: What a suggestion does, by a fragment of its lower-cased text.
    actions: ClassVar[Mapping[str, Action]]
    #: Whether the last turn offers nothing more to ask for (MVP-N, ImageNet-C, QuickDraw).
    runs_out: ClassVar[bool] = False
    #: What the images have; random mode suggests what acts on something else.
    subjects: ClassVar[frozenset[Subject]]
    #: Digits that the number of an image has in its path, at least.
    digits: ClassVar[int] = 1
    #: Whether the paper shows worked examples of this dataset.
    has_worked_examples: ClassVar[bool] = False
    #: The suggestions that are valid in open-ended generation, where they are the same for all
    #: samples. Where they are not, a dataset has its own ``open_ended_suggestions``.
    valid_suggestions: ClassVar[tuple[str, ...]] = ()
    #: What stands between two valid answers in the text of ``open_ended_answers``.
    separator: ClassVar[str] = ", "

    def __init__(self, sample: S, mode: Mode = Mode.NORMAL) -> None:
        self.sample = sample
        self.mode = mode

    @property
    def max_turns(self) -> int:
        return self.sample.num_images

    def start(self) -> T:
        return self.state_type(turn=0, image_id=self.sample.first_image)

    # What is on the list, and what is right in it.

    def options(self, state: T) -> tuple[str, ...]:
        """The whole list of this state, as it is lettered: suggestions and refusals, then the
        categories."""
        return self.listed(state) + self.sample.categories

    def listed(self, state: T) -> tuple[str, ...]:
        """The suggestions and refusals that this state lists, in the row's order."""
        if self._reference:
            return ()
        gone = () if self.mode is Mode.RANDOM else self.withdrawn(state)
        return tuple(o for o in self.sample.options if o not in gone)

    def withdrawn(self, state: T) -> tuple[str, ...]:
        """Options that this state cannot offer."""
        return ()

    def helpful(self) -> tuple[str, ...]:
        """The options that are right to ask for, as long as asking helps at all."""
        return tuple(o for o in self.sample.options if is_suggestion(o))

    def correct_suggestions(self, state: T) -> tuple[str, ...]:
        if self.runs_out and state.turn + 1 >= self.sample.num_images:
            return ()
        listed = self.listed(state)
        return tuple(o for o in self.helpful() if o in listed)

    def answerable(self, state: T) -> bool:
        """Whether the right category counts in this state."""
        return True

    def correct_categories(self, state: T) -> tuple[str, ...]:
        return (self.sample.answer,) if self.answerable(state) else ()

    def asked_enough(self, state: T) -> bool:
        """Whether a worked example names the category now. Else it asks, if there is something to
        ask for. The paper's rule for ROD; for datasets without worked examples it is ours."""
        return state.turn > 0 and self.answerable(state)

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

    def move(self, state: T, action: Action) -> T:
        """The state after an accepted suggestion."""
        image_id = self.next_image_id(state, action)
        return replace(state, turn=state.turn + 1, image_id=image_id)

    def next_image_id(self, state: T, action: Action) -> int:
        return (state.image_id + direction(action)) % self.sample.num_images

    def in_range(self, state: T) -> bool:
        """Whether the state has an image at all."""
        return True

    def is_lost(self, state: T) -> bool:
        """Whether a move that random mode drew left the images, which ends the episode."""
        return self.mode is Mode.RANDOM and not self.in_range(state)

    def require_image(self, state: T) -> None:
        """``DataError`` if a suggestion of the sample led to a state that has no image."""
        if not self.in_range(state):
            raise DataError(
                f"sample {self.sample.id}: its suggestions lead to image {state.image_id} in turn "
                f"{state.turn + 1}, outside the {self.sample.num_images} images of num_images"
            )

    # What is shown.

    def image_path(self, state: T) -> str:
        """Path of the image that is shown, below the data folder; ``DataError`` for none."""
        if self._reference:
            return self.path(self.sample.reference_image, state)
        self.require_image(state)
        return self.path(state.image_id, state)

    def path(self, image_id: int, state: T) -> str:
        """Path of the image with this number, below the data folder."""
        return self.sample.image_template.format(image=self.padded(image_id))

    def padded(self, image_id: int) -> str:
        """An image's number as it is written in its path."""
        return f"{image_id:0{self.digits}d}"

    def crop(self, state: T) -> Box | None:
        """The part of the image that is shown; ``None`` for all of it."""
        return None

    @property
    def _reference(self) -> bool:
        return self.mode is Mode.REFERENCE

    # Open-ended generation.

    def open_ended_answers(self) -> str:
        """The valid answers, suggestions first: one comma-separated text that ends in a period."""
        answers = (*self.open_ended_suggestions(), *self.open_ended_categories())
        return self.separator.join(answers) + "."

    def open_ended_suggestions(self) -> tuple[str, ...]:
        """The valid answers that make a suggestion, without periods."""
        return self.valid_suggestions

    def open_ended_categories(self) -> tuple[str, ...]:
        """The valid answers that name the category, without periods: those that are correct in the
        first state."""
        return without_periods(self.correct_categories(self.start()))

    @classmethod
    def num_open_ended_suggestions(cls) -> int:
        """How many of the valid answers, read back from their text, the benchmark takes for
        suggestions: the first ones. The others count as names of the category."""
        return len(cls.valid_suggestions)


def without_periods(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts as they stand among the valid open-ended answers."""
    return tuple(text.replace(".", "") for text in texts)


def derived_seed(*parts: object) -> int:
    """A seed that depends on these values alone, the same on every machine."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big")
