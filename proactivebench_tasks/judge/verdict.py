"""Verdict: the marks in a judge's reply, one for each valid answer, and what they are worth.

Source of the rules: the benchmark's published package, 0.1.1, as recorded in ``tests/vectors``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.protocol.samples import Dataset

_MARKS = re.compile(r"[01](?:\s*,\s*[01])*")


class Unusable(ValueError):
    """A reply without a usable verdict. The official protocol counts it as all zeros."""


@dataclass(frozen=True)
class Score:
    """What a verdict says of an answer."""

    suggestion: bool
    category: bool

    @property
    def aggregate(self) -> bool:
        return self.suggestion or self.category


def marks(raw: str, valid_answers: str) -> list[int]:
    """The verdict in a judge's raw reply: a 0 or 1 for each valid answer.

    The last run of marks after the thinking counts. ``Unusable`` when there is none, or when its
    length is not the number of answers.
    """
    visible = raw.rpartition("</think>")[2]
    found = _MARKS.findall(visible)
    if not found:
        raise Unusable("no verdict in the reply")
    verdict = [int(mark) for mark in found[-1].split(",")]
    # Blank pieces make no answer, though the judge's list shows them.
    expected = sum(bool(answer.strip()) for answer in valid_answers.split(","))
    if len(verdict) != expected:
        raise Unusable(f"the verdict has {len(verdict)} marks for {expected} answers")
    return verdict


def score(verdict: Sequence[int] | None, dataset: Dataset) -> Score:
    """What the marks come to: the leading ones stand for suggestions, the rest for the category."""
    leading = ENVIRONMENTS[dataset].open_ended_suggestions
    verdict = verdict or ()
    return Score(any(verdict[:leading]), any(verdict[leading:]))
