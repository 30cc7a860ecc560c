"""Judge: what marks open-ended answers. Three kinds differ in where the reply comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.judge.settings import JudgeSettings, Kind


@dataclass(frozen=True)
class Reply:
    """The judge's text, thinking included; or, in ``error``, why there is none."""

    raw: str | None
    error: str | None = None


class Judge(Protocol):
    """Answers questions. ``ask`` may be called often; what it needs, it loads once."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that its replies depend on, and no secrets."""

    @property
    def comparable(self) -> bool:
        """Whether its verdicts may be set beside those of a judge model."""

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        """A reply to each question, as it arrives, with the question's position."""


@lru_cache(maxsize=1)
def make(settings: JudgeSettings) -> Judge:
    """The judge of these settings; the same one for every task of a run, so it loads once."""
    # Imported here: each needs a library that the others do without, and that is slow to load.
    if settings.kind is Kind.OPENAI:
        from proactivebench_tasks.judge.openai import ServerJudge

        return ServerJudge(settings)
    if settings.kind is Kind.HF:
        from proactivebench_tasks.judge.hf import LocalJudge

        return LocalJudge(settings)
    if settings.kind is Kind.LEXICAL:
        from proactivebench_tasks.judge.lexical import LexicalJudge

        return LexicalJudge()
    raise JudgeError(f"judge {settings.kind.value!r} judges nothing")
