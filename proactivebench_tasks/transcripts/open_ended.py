"""OpenEnded: the record of one open-ended sample, and what a judge said of it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from proactivebench_tasks.environments.episode import Episode, Observation
from proactivebench_tasks.transcripts.record import Record, Window, complaint, head, window


class JudgeIdentity(BaseModel):
    """Everything that a judge's replies depend on, and no secrets."""

    model_config = ConfigDict(frozen=True)

    kind: str
    model: str = ""
    max_tokens: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """What is known of it."""
        return self.model_dump(exclude_unset=True)


class Judgement(BaseModel):
    """What a judge said: its whole reply, and a 0 or 1 for each valid answer.

    ``unscored`` says why there is no verdict. Before a judge was asked, only the kind is known.
    """

    model_config = ConfigDict(frozen=True)

    kind: str
    model: str = ""
    max_tokens: int | None = None
    comparable: bool | None = None
    raw: str | None = None
    verdict: tuple[int, ...] | None = None
    unscored: str | None = None

    @classmethod
    def of(cls, identity: JudgeIdentity, **said: Any) -> Judgement:
        return cls(**identity.to_dict(), **said)

    @property
    def identity(self) -> JudgeIdentity:
        """The judge that it is from."""
        known = self.model_fields_set & JudgeIdentity.model_fields.keys()
        return JudgeIdentity(**{name: getattr(self, name) for name in known})


class OpenEnded(Record):
    """``generated`` is what the judge reads; ``output``, where it differs, the model's raw text."""

    image: str  # path below the data folder
    crop: Window | None
    prompt: str
    valid_answers: str  # comma-separated, as the published package has them
    generated: str
    error: str | None
    judge: Judgement
    output: str | None = None

    @classmethod
    def of(
        cls,
        episode: Episode,
        seen: Observation,
        generated: str,
        output: str,
        judge_kind: str,
        error: Exception | None = None,
    ) -> OpenEnded:
        """The record of an answer that no judge has seen yet."""
        return cls(
            **head(episode),
            image=seen.image_path,
            crop=window(seen.crop),
            prompt=seen.text,
            valid_answers=episode.environment.open_ended_answers(),
            generated=generated,
            error=complaint(error),
            judge=Judgement(kind=judge_kind),
            output=output if output != generated else None,
        )

    def judged(self, judgement: Judgement) -> OpenEnded:
        """The same record with another judgement."""
        return self.model_copy(update={"judge": judgement})

    def _to_dict(self) -> dict[str, Any]:
        value = super()._to_dict()
        value["judge"] = self.judge.model_dump(exclude_unset=True)
        if self.output is None:
            del value["output"]
        return value
