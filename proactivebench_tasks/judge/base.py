"""Judge: what marks open-ended answers.

There are three. They differ in where a reply comes from: ``OpenAIJudge`` asks a server, ``HFJudge``
a model in this process, and ``LexicalJudge`` compares words without any model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from proactivebench_tasks.config import JUDGE
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.transcripts.open_ended import JudgeIdentity

#: How servers say that a reply is whole. Some do not say.
_WHOLE = frozenset({"", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete"})

#: How they say that a reply was cut off at a limit on tokens.
_CUT = frozenset({"length", "max_tokens", "max_length", "model_length"})

#: A mark that begins thinking or, with a slash, ends it.
_THINKING = re.compile(r"</?(?:think|thinking|thought|reasoning|seed:think)>|\[/?THINK\]|◁/?think▷")


@dataclass(frozen=True)
class Reply:
    """What came of one question: in ``raw`` the judge's text, with its thinking, or else, in
    ``error``, the reason why there is no text.

    ``finish``: why the judge stopped writing, in the word of its server; ``None`` if it is not
    known.
    """

    raw: str | None
    error: str | None = None
    finish: str | None = None

    @property
    def fault(self) -> str | None:
        """Why no verdict may be read from it; ``None`` if one may.

        A reply that is not whole has no verdict, whatever marks stand in it: they may be those that
        the judge was only considering. The published script does not look at this.
        """
        if self.raw is None:
            return self.error
        finish = (self.finish or "").lower()
        told = f"(finish_reason {self.finish})"
        if finish in _CUT:
            what = "the reply" if self.raw.strip() else "empty reply: the thinking"
            return (
                f"{what} was cut off at the limit on tokens {told}: set {JUDGE}_MAX_TOKENS, or the "
                "server's own limit, higher"
            )
        if finish == "content_filter":
            return f"a content filter stopped the reply {told}"
        if not self.raw.strip():
            return f"empty reply {told}"
        if finish not in _WHOLE:
            return f"the reply is not whole {told}"
        last = ["/" in mark[0] for mark in _THINKING.finditer(self.raw)][-1:]
        return "the reply ends while thinking: no mark ends it" if last == [False] else None


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
