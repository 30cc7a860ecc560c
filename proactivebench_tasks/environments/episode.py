"""Episode: one sample, played turn by turn. Start reading here.

    episode = Episode(Dataset.ROD, sample, protocol)
    while not episode.done:
        seen = episode.observe()        # image, window, prompt, lettered list
        turn = episode.step(answer)     # graded; the image may change
    episode.summary()

An episode ends when a turn names the right category, or neither that nor a right suggestion, or
when every turn is used. What differs between datasets is in their ``Environment``; wording comes
from the ``Protocol``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.environments.environment import (
    Action,
    Box,
    Environment,
    Mode,
    State,
    derived_seed,
)
from proactivebench_tasks.environments.grading import Verdict, grade

if TYPE_CHECKING:
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

    image: str  # path below the data folder
    crop: Box | None
    prompt: str
    options: tuple[str, ...]
    text: str  # the multiple-choice text: prompt, lettered options, request


@dataclass(frozen=True)
class Turn:
    """One answer and what came of it. ``image_id`` is the state's image number before it."""

    image: str
    image_id: int
    crop: Box | None
    options: tuple[str, ...]
    answer: str
    suggestion: Verdict
    category: Verdict
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
class Judgement:
    """An answer's grades as a suggestion and a category; ``accepted`` is the suggestion taken."""

    suggestion: Verdict
    category: Verdict
    accepted: str | None = None


def judge(environment: Environment[Any], state: State, answer: str) -> Judgement:
    """Grade an answer in a state. The right category goes before a right suggestion."""
    listed = environment.suggestions(state)
    helpful = environment.correct_suggestions(state)
    asked = grade(answer, listed, helpful)
    right = environment.correct_categories(state)
    named = grade(answer, environment.sample.categories, right, offset=len(listed))
    if named is Verdict.CORRECT or asked is not Verdict.CORRECT:
        return Judgement(asked, named)
    accepted = next(o for o in helpful if grade(answer, listed, [o]) is Verdict.CORRECT)
    return Judgement(asked, named, accepted)


def advance(
    environment: Environment[Any], state: State, judged: Judgement, drawn: Action | None = None
) -> tuple[State, Stop | None]:
    """The state after a turn, and why the episode ends if it does.

    ``drawn`` is what an accepted suggestion does in random mode, whatever its text.
    """
    if judged.category is Verdict.CORRECT:
        return state, Stop.SOLVED
    if judged.accepted is None:
        off_list = judged.suggestion is judged.category is Verdict.MISMATCH
        return state, Stop.MISMATCH if off_list else Stop.WRONG
    after = environment.move(state, drawn or environment.action(judged.accepted))
    if not environment.in_range(after):
        return after, Stop.OUT_OF_RANGE
    return after, Stop.MAX_TURNS if after.turn == environment.max_turns else None


class Episode:
    """One sample being played. ``seed`` matters in random mode only, together with the sample."""

    def __init__(
        self,
        dataset: Dataset,
        sample: Sample,
        protocol: Protocol,
        mode: Mode = Mode.NORMAL,
        seed: int = 0,
        hint: bool = False,
    ) -> None:
        self.dataset = dataset
        self.sample = sample
        self.protocol = protocol
        self.mode = mode
        self.hint = hint
        self.environment = ENVIRONMENTS[dataset](sample, mode)
        self.state = self.environment.start()
        self.turns: list[Turn] = []
        self.seed = seed

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
            self.dataset, self.sample, reference=self.mode is Mode.REFERENCE, hint=self.hint
        )
        options = self.suggestions + self.sample.categories
        return Observation(
            image=self.environment.image(self.state),
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
        judged = judge(self.environment, before, answer)
        after, stop = advance(self.environment, before, judged, self._drawn())
        turn = Turn(
            image=self.environment.image(before),
            image_id=before.image,
            crop=self.environment.crop(before),
            options=self.suggestions + self.sample.categories,
            answer=answer,
            suggestion=judged.suggestion,
            category=judged.category,
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
        seed = derived_seed(self.seed, self.dataset.value, self.sample.id, len(self.turns))
        return random.Random(seed).choice(self.environment.all_actions)
