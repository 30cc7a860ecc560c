"""Transcript: the record of one multiple-choice sample.

It holds everything a reader needs to follow the sample. Scoring trusts only its answers: it plays
them again through the same ``Episode``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode, Summary
from proactivebench_tasks.environments.grading import Grade
from proactivebench_tasks.environments.random_mode import as_played
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Sample
from proactivebench_tasks.transcripts.conversation import Exchange
from proactivebench_tasks.transcripts.record import Record, Window, complaint, head, window
from proactivebench_tasks.transcripts.variant import Variant


class ExampleRecord(BaseModel):
    """An exchange of a worked example, shown before the first turn."""

    model_config = ConfigDict(frozen=True)

    image: str  # path below the data folder
    crop: Window | None
    answer: str | None


class TurnRecord(BaseModel):
    """One turn: what was shown, what was answered, and the grades of the answer.

    ``output`` is the model's raw text where the graded answer differs from it. ``reused``: answered
    before in this episode, so the model was not called.
    """

    model_config = ConfigDict(frozen=True)

    image: str  # path below the data folder
    image_id: int
    crop: Window | None
    options: tuple[str, ...]
    answer: str
    suggestion: Grade
    category: Grade
    output: str | None = None
    reused: bool = False


class Transcript(Record):
    """A played sample, turn by turn. ``error`` says why it failed; it is ``None`` for most."""

    mode: Mode
    hint: bool
    seed: int
    variant: Variant = Field(alias="setting")
    examples: tuple[ExampleRecord, ...]
    turns: tuple[TurnRecord, ...]
    num_turns: int
    correct_prediction: bool
    stop: str | None
    error: str | None

    @classmethod
    def of(
        cls,
        episode: Episode,
        outputs: Sequence[str],
        reused: Sequence[bool],
        error: Exception | None = None,
        variant: Variant = Variant(),  # noqa: B008 (frozen)
        examples: Sequence[Exchange] = (),
    ) -> Transcript:
        """The record of an episode; ``outputs`` are the model's raw texts, one a turn."""
        summary = episode.summary()
        stop = episode.turns[-1].stop if episode.turns else None
        return cls(
            **head(episode),
            mode=episode.mode,
            hint=episode.hint,
            seed=episode.seed,
            variant=variant,
            examples=tuple(
                ExampleRecord(image=e.image_path, crop=window(e.crop), answer=e.answer)
                for e in examples
            ),
            turns=tuple(
                TurnRecord(
                    image=turn.image_path,
                    image_id=turn.image_id,
                    crop=window(turn.crop),
                    options=turn.options,
                    answer=turn.answer,
                    suggestion=turn.suggestion,
                    category=turn.category,
                    output=output if output != turn.answer else None,
                    reused=again,
                )
                for turn, output, again in zip(episode.turns, outputs, reused, strict=True)
            ),
            num_turns=summary.num_turns,
            correct_prediction=summary.correct_prediction,
            stop="failed" if error else stop and stop.value,
            error=complaint(error),
        )

    @property
    def reused(self) -> int:
        """How many turns were answered without a call of the model."""
        return sum(turn.reused for turn in self.turns)

    def score(self, sample: Sample, protocol: Protocol) -> Summary | None:
        """Play the answers through a fresh episode; ``None`` if the sample failed.

        Raises ``ValueError`` when they do not make a whole episode.
        """
        if self.error is not None:
            return None
        try:
            played = as_played(sample, self.mode, self.seed)
            episode = Episode(played, protocol, self.mode, self.seed)
            for turn in self.turns:
                episode.step(turn.answer)
        except DataError as error:
            raise ValueError(f"not a whole transcript: {error!r}") from error
        if not episode.done:
            raise ValueError("the transcript ends before the episode does")
        return episode.summary()

    def _to_dict(self) -> dict[str, Any]:
        value = super()._to_dict()
        value["setting"] = self.variant.asked_for()
        for turn in value["turns"]:  # most turns have neither
            if turn["output"] is None:
                del turn["output"]
            if not turn["reused"]:
                del turn["reused"]
        return value
