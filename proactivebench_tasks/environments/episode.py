"""Episode: one sample, played turn by turn. Start reading here.

    episode = Episode(sample, protocol)
    while not episode.done:
        seen = episode.observe()        # image, window, prompt, lettered list
        turn = episode.step(answer)     # graded; the image may change
    episode.summary()

An episode ends when a turn names the right category, or neither that nor a right suggestion, or
when every turn is used. What differs between datasets is in their ``Environment``; wording comes
from the ``Protocol``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from proactivebench_tasks.environments import ENVIRONMENTS, random_mode
from proactivebench_tasks.environments.environment import (
    Action,
    Box,
    Environment,
    Mode,
    State,
)
from proactivebench_tasks.environments.grading import Grade, grade
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset, Sample


class Stop(str, Enum):
    """Why an episode ended."""

    SOLVED = "solved"
    WRONG = "wrong"  # an option was chosen that does not help: category, refusal or suggestion
    MISMATCH = "mismatch"  # the answer was no option
    MAX_TURNS = "max_turns"
    OUT_OF_RANGE = "out_of_range"  # random mode: a drawn move left the video


@dataclass(frozen=True)
class Observation:
    """What the model is shown in one turn. ``options`` are the suggestions, then the categories."""

    image_path: str  # below the data folder
    crop: Box | None
    prompt: str
    options: tuple[str, ...]
    text: str  # the multiple-choice text: prompt, lettered options, request


@dataclass(frozen=True)
class Turn:
    """One answer and what came of it. Image and window are those that were shown before it."""

    image_path: str
    image_id: int
    crop: Box | None
    options: tuple[str, ...]
    answer: str
    suggestion: Grade
    category: Grade
    stop: Stop | None


@dataclass(frozen=True)
class Summary:
    """The result of a finished episode."""

    num_turns: int
    correct_prediction: bool
    reached_max_turns: bool
    mismatch: bool

    @property
    def suggestions(self) -> int:
        """Proactive suggestions, ``ps``."""
        return self.num_turns - 1


@dataclass(frozen=True)
class TurnGrade:
    """An answer's grades as a suggestion and a category; ``accepted`` is the suggestion taken."""

    suggestion: Grade
    category: Grade
    accepted: str | None = None


def grade_turn(environment: Environment[Any], state: State, answer: str) -> TurnGrade:
    """Grade an answer in a state. The right category goes before a right suggestion."""
    listed = environment.suggestions(state)
    helpful = environment.correct_suggestions(state)
    asked = grade(answer, listed, helpful)
    right = environment.correct_categories(state)
    named = grade(answer, environment.sample.categories, right, offset=len(listed))
    if named is Grade.CORRECT or asked is not Grade.CORRECT:
        return TurnGrade(asked, named)
    accepted = next(o for o in helpful if grade(answer, listed, [o]) is Grade.CORRECT)
    return TurnGrade(asked, named, accepted)


def advance(
    environment: Environment[Any], state: State, graded: TurnGrade, drawn: Action | None = None
) -> tuple[State, Stop | None]:
    """The state after a turn, and why the episode ends if it does.

    ``drawn`` is what an accepted suggestion does in random mode, whatever its text.
    """
    if graded.category is Grade.CORRECT:
        return state, Stop.SOLVED
    if graded.accepted is None:
        off_list = graded.suggestion is graded.category is Grade.MISMATCH
        return state, Stop.MISMATCH if off_list else Stop.WRONG
    after = environment.move(state, drawn or environment.action(graded.accepted))
    if not environment.in_range(after):
        return after, Stop.OUT_OF_RANGE
    return after, Stop.MAX_TURNS if after.turn == environment.max_turns else None


class Episode:
    """One sample being played. ``seed`` matters in random mode only, together with the sample."""

    def __init__(
        self,
        sample: Sample,
        protocol: Protocol,
        mode: Mode = Mode.NORMAL,
        seed: int = 0,
        hint: bool = False,
    ) -> None:
        self.sample = sample
        self.protocol = protocol
        self.mode = mode
        self.seed = seed
        self.hint = hint
        self.environment = ENVIRONMENTS[sample.dataset](sample, mode)
        self.state = self.environment.start()
        self.turns: list[Turn] = []

    @property
    def dataset(self) -> Dataset:
        return self.sample.dataset

    @property
    def done(self) -> bool:
        return bool(self.turns) and self.turns[-1].stop is not None

    @property
    def suggestions(self) -> tuple[str, ...]:
        """Suggestions and refusals on the list now."""
        return self.environment.suggestions(self.state)

    @property
    def correct_suggestions(self) -> tuple[str, ...]:
        return self.environment.correct_suggestions(self.state)

    @property
    def correct_categories(self) -> tuple[str, ...]:
        return self.environment.correct_categories(self.state)

    def observe(self) -> Observation:
        """What the model sees now."""
        prompt = self.protocol.prompt(
            self.sample, reference=self.mode is Mode.REFERENCE, hint=self.hint
        )
        options = self.suggestions + self.sample.categories
        return Observation(
            image_path=self.environment.image_path(self.state),
            crop=self.environment.crop(self.state),
            prompt=prompt,
            options=options,
            text=self.protocol.multiple_choice(prompt, options),
        )

    def step(self, answer: str) -> Turn:
        """Grade an answer and move on. ``ValueError`` when the episode is over; ``DataError`` when
        the sample's own suggestion names no action or leads out of the video."""
        if self.done:
            raise ValueError(f"sample {self.sample.id}: the episode is over")
        before = self.state
        graded = grade_turn(self.environment, before, answer)
        after, stop = advance(self.environment, before, graded, self._drawn())
        turn = Turn(
            image_path=self.environment.image_path(before),
            image_id=before.image_id,
            crop=self.environment.crop(before),
            options=self.suggestions + self.sample.categories,
            answer=answer,
            suggestion=graded.suggestion,
            category=graded.category,
            stop=stop,
        )
        self.state = after
        self.turns.append(turn)
        return turn

    def summary(self) -> Summary:
        """The result so far; final when ``done``."""
        last = self.turns[-1] if self.turns else None
        return Summary(
            num_turns=len(self.turns),
            correct_prediction=last is not None and last.stop is Stop.SOLVED,
            reached_max_turns=len(self.turns) == self.environment.max_turns,
            mismatch=last is not None and last.stop is Stop.MISMATCH,
        )

    def _drawn(self) -> Action | None:
        """What an accepted suggestion does in random mode, drawn anew each turn."""
        if self.mode is not Mode.RANDOM:
            return None
        return random_mode.drawn_action(self.environment, self.seed, turn=len(self.turns))
