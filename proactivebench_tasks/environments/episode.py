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
from proactivebench_tasks.environments.environment import Action, Box, Environment, Mode, State
from proactivebench_tasks.environments.grading import Grade, TurnGrade, grade_turn
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
    def num_suggestions(self) -> int:
        """Proactive suggestions, ``ps``."""
        return self.num_turns - 1


def advance(
    environment: Environment[Any, Any], state: State, graded: TurnGrade, drawn: Action | None = None
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
    if environment.is_lost(after):
        return after, Stop.OUT_OF_RANGE
    return after, Stop.MAX_TURNS if after.turn == environment.max_turns else None


class Episode:
    """One sample being played. ``sample`` is the sample as it is shown: in random mode its
    suggestions are meaningless ones, which the seed and the sample decide. With ``own_options`` it
    keeps its own, as in the recordings of the published package."""

    def __init__(
        self,
        sample: Sample,
        protocol: Protocol,
        mode: Mode = Mode.NORMAL,
        seed: int = 0,
        hint: bool = False,
        own_options: bool = False,
    ) -> None:
        self.sample = sample if own_options else random_mode.as_played(sample, mode, seed)
        self.protocol = protocol
        self.mode = mode
        self.seed = seed
        self.hint = hint
        self.environment = ENVIRONMENTS[sample.dataset](self.sample, mode)
        self.state = self.environment.start()
        self.turns: list[Turn] = []

    @property
    def dataset(self) -> Dataset:
        return self.sample.dataset

    @property
    def stop(self) -> Stop | None:
        """Why it ended; ``None`` as long as it goes on."""
        return self.turns[-1].stop if self.turns else None

    @property
    def done(self) -> bool:
        return self.stop is not None

    @property
    def options(self) -> tuple[str, ...]:
        """The whole list now, as it is lettered."""
        return self.environment.options(self.state)

    @property
    def listed(self) -> tuple[str, ...]:
        """Suggestions and refusals on the list now."""
        return self.environment.listed(self.state)

    @property
    def correct_suggestions(self) -> tuple[str, ...]:
        return self.environment.correct_suggestions(self.state)

    @property
    def correct_categories(self) -> tuple[str, ...]:
        return self.environment.correct_categories(self.state)

    @property
    def prompt(self) -> str:
        """The question, the same in every turn."""
        reference = self.mode is Mode.REFERENCE
        return self.protocol.prompt(self.sample, reference=reference, hint=self.hint)

    def observe(self) -> Observation:
        """What the model sees now; ``DataError`` when the sample's suggestions led to no image."""
        return Observation(
            image_path=self.environment.image_path(self.state),
            crop=self.environment.crop(self.state),
            prompt=self.prompt,
            options=self.options,
            text=self.protocol.multiple_choice(self.prompt, self.options),
        )

    def step(self, answer: str) -> Turn:
        """Grade an answer and move on. ``ValueError`` when the episode is over; ``DataError`` when
        the sample's own suggestion names no action, or the one before led to no image."""
        if self.done:
            raise ValueError(f"sample {self.sample.id}: the episode is over")
        before = self.state
        graded = grade_turn(self.environment, before, answer)
        drawn = random_mode.drawn_action(self.environment, self.seed, turn=len(self.turns))
        after, stop = advance(self.environment, before, graded, drawn)
        turn = Turn(
            image_path=self.environment.image_path(before),
            image_id=before.image_id,
            crop=self.environment.crop(before),
            options=self.options,
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
        return Summary(
            num_turns=len(self.turns),
            correct_prediction=self.stop is Stop.SOLVED,
            reached_max_turns=len(self.turns) == self.environment.max_turns,
            mismatch=self.stop is Stop.MISMATCH,
        )
