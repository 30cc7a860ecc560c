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

import hashlib
import random
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.environments.environment import Action, Box, Mode
from proactivebench_tasks.environments.grading import Verdict, grade

if TYPE_CHECKING:
    from proactivebench_tasks.protocol import Protocol
    from proactivebench_tasks.samples import Dataset, Sample


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
        return () if self._reference else self.environment.suggestions(self.state)

    @property
    def correct_suggestions(self) -> tuple[str, ...]:
        return () if self._reference else self.environment.correct_suggestions(self.state)

    @property
    def correct_categories(self) -> tuple[str, ...]:
        return self.environment.correct_categories(self.state)

    def observe(self) -> Observation:
        """What the model sees now."""
        prompt = self.protocol.prompt(
            self.dataset, self.sample, reference=self._reference, hint=self.hint
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
        suggestions, categories = self.suggestions, self.sample.categories
        asked = Verdict.MISMATCH
        if not self._reference:
            asked = grade(answer, suggestions, self.correct_suggestions)
        named = grade(answer, categories, self.correct_categories, offset=len(suggestions))

        before = self.state
        stop: Stop | None = None
        if named is Verdict.CORRECT:
            stop = Stop.SOLVED
        elif asked is Verdict.CORRECT:
            self.state = self.environment.move(before, self._action(answer))
            if not self.environment.in_range(self.state):
                stop = Stop.OUT_OF_RANGE
            elif len(self.turns) + 1 >= self.environment.max_turns:
                stop = Stop.MAX_TURNS
        else:
            stop = Stop.MISMATCH if asked is named is Verdict.MISMATCH else Stop.WRONG

        turn = Turn(
            image=self.environment.image(before),
            image_id=before.image,
            crop=self.environment.crop(before),
            options=suggestions + categories,
            answer=answer,
            suggestion=asked,
            category=named,
            stop=stop,
        )
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

    def _action(self, answer: str) -> Action:
        """What the accepted suggestion does to the image."""
        if self.mode is Mode.RANDOM:
            seed = derived_seed(self.seed, self.dataset.value, self.sample.id, len(self.turns))
            return random.Random(seed).choice(
                list(dict.fromkeys(self.environment.actions.values()))
            )
        for option in self.correct_suggestions:
            if grade(answer, self.suggestions, [option]) is Verdict.CORRECT:
                return self.environment.action(option)
        raise AssertionError("only called for an accepted suggestion")

    @property
    def _reference(self) -> bool:
        return self.mode is Mode.REFERENCE


def derived_seed(*parts: object) -> int:
    """A seed that depends on these values alone, the same on every machine."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big")
