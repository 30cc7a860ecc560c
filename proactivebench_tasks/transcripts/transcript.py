"""Transcript: the record of one multiple-choice sample.

It holds everything a reader needs to follow the sample. Scoring trusts only its answers: it plays
them again through the same ``Episode``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from proactivebench_tasks.environments import lenient
from proactivebench_tasks.environments.episode import Episode, Turn
from proactivebench_tasks.environments.grading import Grade
from proactivebench_tasks.environments.lenient import Mismatch
from proactivebench_tasks.errors import DataError, RecordError
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Sample
from proactivebench_tasks.transcripts.answer import Answer, Cost, Origin
from proactivebench_tasks.transcripts.conversation import Exchange
from proactivebench_tasks.transcripts.record import (
    Crop,
    Part,
    Provenance,
    Record,
    RecordKind,
    head,
    without,
)
from proactivebench_tasks.transcripts.thinking import Spoken, spoken

#: Fields of a turn or an example that are left out where they say nothing.
_OPTIONAL = ("file", "text", "output", "mismatch", "cut", "reused")


class ExampleRecord(Part):
    """An exchange of a worked example, shown before the first turn."""

    image: str  # path below the data folder
    file: str | None = None  # where it opens
    crop: Crop | None
    text: str | None = None
    answer: str | None


class TurnRecord(Part):
    """One turn: what was shown, what was answered, and the grades of the answer.

    With ``history`` in the variant, the turns before were shown, too.
    """

    image: str  # path below the data folder
    file: str | None = None  # where it opens: a path, or an address that fsspec opens
    image_id: int
    crop: Crop | None
    text: str | None = None  # all of the turn's text: question, list, request
    options: tuple[str, ...]
    output: str | None = None  # the model's whole text, where it is not the answer
    answer: str  # what was graded
    suggestion: Grade
    category: Grade
    mismatch: Mismatch | None = None  # why the answer is no option of the list
    cut: bool = False  # the model was cut off while it was thinking
    reused: bool = False  # answered before in this episode, so the model was not called


class Transcript(Record):
    """A played sample, turn by turn. ``error`` says why it failed; it is ``None`` for most."""

    KIND: ClassVar[RecordKind] = RecordKind.MULTIPLE_CHOICE

    kind: RecordKind = KIND
    examples: tuple[ExampleRecord, ...]
    turns: tuple[TurnRecord, ...]
    num_turns: int
    correct_prediction: bool
    stop: str | None
    costs: tuple[Cost, ...] = ()  # one a turn, and one of the turn that failed

    @classmethod
    def of(
        cls,
        episode: Episode,
        answers: Sequence[Answer],
        origin: Provenance,
        costs: Sequence[Cost] = (),
        error: Exception | None = None,
        examples: Sequence[Exchange] = (),
    ) -> Transcript:
        """The record of an episode and of the model's answers in it, one a turn."""
        summary = episode.summary()
        return cls(
            **head(episode, origin, error),
            examples=tuple(
                ExampleRecord(
                    image=each.image_path,
                    file=origin.locate(each.image_path),
                    crop=each.crop,
                    text=each.text,
                    answer=each.answer,
                )
                for each in examples
            ),
            turns=tuple(
                _turn(episode, turn, answer, origin)
                for turn, answer in zip(episode.turns, answers, strict=True)
            ),
            num_turns=summary.num_turns,
            correct_prediction=summary.correct_prediction,
            stop="failed" if error else episode.stop and episode.stop.value,
            costs=tuple(costs),
        )

    def replay(self, sample: Sample, protocol: Protocol) -> Episode | None:
        """The episode that the answers make, played anew; ``None`` if the sample failed.

        Raises ``RecordError`` when they do not make a whole episode.
        """
        if self.error is not None:
            return None
        try:
            episode = self.variant.episode(sample, protocol)
            for turn in self.turns:
                episode.step(turn.answer)
        except (DataError, ValueError) as error:
            raise RecordError(f"not a whole record: {error}") from error
        if not episode.done:
            raise RecordError("the record ends before the episode does")
        return episode

    def to_dict(self) -> dict[str, Any]:
        value = super().to_dict()
        for part in ("examples", "turns"):
            value[part] = [without(each, *_OPTIONAL) for each in value[part]]
        return value


def why_off_list(turn: Turn, said: Spoken) -> Mismatch | None:
    """Why an answer is no option of the list; ``None`` if it is one."""
    if not turn.suggestion is turn.category is Grade.MISMATCH:
        return None
    why = lenient.read(turn.answer, turn.options).why
    return Mismatch.CUT if said.is_cut and why is Mismatch.NOTHING else why


def _turn(episode: Episode, turn: Turn, answer: Answer, origin: Provenance) -> TurnRecord:
    said = spoken(answer.text, origin.tags)
    return TurnRecord(
        image=turn.image_path,
        file=origin.locate(turn.image_path),
        image_id=turn.image_id,
        crop=turn.crop,
        text=episode.protocol.multiple_choice(episode.prompt, turn.options),
        options=turn.options,
        output=answer.text if answer.text != turn.answer else None,
        answer=turn.answer,
        suggestion=turn.suggestion,
        category=turn.category,
        mismatch=why_off_list(turn, said),
        cut=said.is_cut,
        reused=answer.origin is Origin.EPISODE,
    )
