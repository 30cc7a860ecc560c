"""OpenEnded: the record of one open-ended sample, and what a judge said of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from proactivebench_tasks.environments.episode import Episode, Observation
from proactivebench_tasks.transcripts.answer import Answer, Cost
from proactivebench_tasks.transcripts.record import (
    Crop,
    Part,
    Provenance,
    Record,
    RecordKind,
    head,
    without,
)
from proactivebench_tasks.transcripts.thinking import spoken


class JudgeIdentity(BaseModel):
    """Everything that a judge's replies depend on, and no secrets."""

    model_config = ConfigDict(frozen=True)

    kind: str
    model: str = ""
    max_tokens: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """What is known of it."""
        return without(self.model_dump(), "model", "max_tokens")


class Judgement(Part):
    """What a judge said: its whole reply, and a 0 or 1 for each valid answer.

    ``unscored`` says why there is no verdict. Before a judge was asked, only its kind is known.
    """

    kind: str
    model: str = ""
    max_tokens: int | None = None
    comparable: bool | None = None
    raw: str | None = None
    finish: str | None = None  # why the judge stopped writing, if its server said so
    verdict: tuple[int, ...] | None = None
    unscored: str | None = None

    @classmethod
    def of(cls, identity: JudgeIdentity, **said: Any) -> Judgement:
        return cls(**identity.to_dict(), **said)

    @property
    def identity(self) -> JudgeIdentity:
        """The judge that it is from."""
        return JudgeIdentity(kind=self.kind, model=self.model, max_tokens=self.max_tokens)

    def to_dict(self) -> dict[str, Any]:
        """What is known; before a judge was asked, its kind alone."""
        return self.model_dump(exclude_unset=True)


class OpenEnded(Record):
    """An answer in the model's own words. ``generated`` is what the judge reads."""

    KIND: ClassVar[RecordKind] = RecordKind.OPEN_ENDED

    kind: RecordKind = KIND
    image: str  # path below the data folder
    file: str | None = None  # where it opens: a path, or an address that fsspec opens
    crop: Crop | None
    prompt: str  # all of the text that was shown
    valid_answers: str  # comma-separated, as the published package has them
    output: str | None = None  # the model's whole text, where it is not what the judge reads
    generated: str
    cut: bool = False  # the model was cut off while it was thinking
    judge: Judgement
    costs: tuple[Cost, ...] = ()

    @classmethod
    def of(
        cls,
        episode: Episode,
        seen: Observation,
        answer: Answer | None,
        origin: Provenance,
        costs: Sequence[Cost] = (),
        error: Exception | None = None,
    ) -> OpenEnded:
        """The record of an answer that no judge has seen yet; of a failed sample without one."""
        output = answer.text if answer else ""
        said = spoken(output, origin.tags)
        return cls(
            **head(episode, origin, error),
            image=seen.image_path,
            file=origin.locate(seen.image_path),
            crop=seen.crop,
            prompt=seen.text,
            valid_answers=episode.environment.open_ended_answers(),
            output=output if output != said.text else None,
            generated=said.text,
            cut=said.is_cut,
            judge=Judgement(kind=origin.variant.judge),
            costs=tuple(costs),
        )

    def judged(self, judgement: Judgement) -> OpenEnded:
        """The same record with another judgement."""
        return self.model_copy(update={"judge": judgement})

    def to_dict(self) -> dict[str, Any]:
        value = super().to_dict()
        value["judge"] = self.judge.to_dict()
        return without(value, "file", "output", "cut")
