"""Verdict: the marks in a judge's reply, one for each valid answer, and what they are worth.

Source of the rules: the benchmark's published package, ``proactivebench`` 0.1.1, whose decisions
are recorded in ``tests/vectors/judge.jsonl.gz``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.protocol.protocol import num_answers
from proactivebench_tasks.protocol.samples import Dataset

_MARKS = re.compile(r"[01](?:\s*,\s*[01])*")


class Unusable(ValueError):
    """A reply without a usable verdict. The official protocol counts it as all zeros."""


@dataclass(frozen=True)
class Score:
    """What a verdict says of one open-ended answer."""

    suggestion: bool  # the answer makes a valid proactive suggestion
    category: bool  # the answer names the category

    @property
    def aggregate(self) -> bool:
        """The answer does one or the other."""
        return self.suggestion or self.category


def marks(raw: str, valid_answers: str) -> list[int]:
    """The verdict in a judge's raw reply: a 0 or 1 for each valid answer.

    What counts is the last run of marks, with commas between them, after the last ``</think>``.
    ``valid_answers`` is the benchmark's comma-separated text. Raises ``Unusable`` if there is no
    such run, or if it has more or fewer marks than there are answers.
    """
    visible = raw.rpartition("</think>")[2]
    found = _MARKS.findall(visible)
    if not found:
        raise Unusable("no verdict in the reply")
    verdict = [int(mark) for mark in found[-1].split(",")]
    expected = num_answers(valid_answers)
    if len(verdict) != expected:
        raise Unusable(f"the verdict has {len(verdict)} marks for {expected} answers")
    return verdict


def score(verdict: Sequence[int] | None, dataset: Dataset) -> Score:
    """What the marks of a verdict come to; of ``None``, no verdict, that is nothing.

    A dataset's valid answers begin with its suggestions; the answers that follow name the category.
    """
    leading = ENVIRONMENTS[dataset].num_open_ended_suggestions()
    verdict = verdict or ()
    return Score(any(verdict[:leading]), any(verdict[leading:]))
