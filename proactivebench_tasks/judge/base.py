"""Judge: what marks open-ended answers. Its kinds differ in where the reply comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.transcripts.open_ended import JudgeIdentity


@dataclass(frozen=True)
class Reply:
    """The judge's text, thinking included; or, in ``error``, why there is none."""

    raw: str | None
    error: str | None = None


class Judge(Protocol):
    """Answers questions. ``ask`` may be called often; what it needs, it loads once."""

    @property
    def identity(self) -> JudgeIdentity:
        """Everything that its replies depend on, and no secrets."""

    @property
    def comparable(self) -> bool:
        """Whether its verdicts may be set beside those of a judge model."""

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        """A reply to each question, as it arrives, with the question's position."""
