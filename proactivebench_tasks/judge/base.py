"""Judge: what marks open-ended answers.

There are three. They differ in where a reply comes from: ``OpenAIJudge`` asks a server, ``HFJudge``
a model in this process, and ``LexicalJudge`` compares words without any model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.transcripts.open_ended import JudgeIdentity


@dataclass(frozen=True)
class Reply:
    """What came of one question: in ``raw`` the judge's whole text, with its thinking, or else, in
    ``error``, the reason why there is no text."""

    raw: str | None
    error: str | None = None


class Judge(Protocol):
    """Answers questions. One judge serves all tasks of a run, so ``ask`` may be called often; a
    judge that needs a model loads the model once, in the first call."""

    @property
    def identity(self) -> JudgeIdentity:
        """Everything that the replies depend on, and no secrets. Judges of the same identity share
        the replies in ``ReplyCache``."""

    @property
    def comparable(self) -> bool:
        """Whether its verdicts may be compared with those of other judges. Those of a judge without
        a model may not."""

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        """Ask all questions. Yields the position of a question and the reply to it, each as soon as
        there is one, so in any order.

        A question that cannot be answered has a ``Reply`` with an error. ``JudgeError`` is raised
        when there is no judge at all, for instance because its model cannot be loaded.
        """
