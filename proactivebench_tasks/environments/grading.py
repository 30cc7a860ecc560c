"""Grading: is a model's answer one of the labels it was shown, and a correct one?

Source: the benchmark's published package, 0.1.1, as recorded in ``tests/vectors``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from proactivebench_tasks.environments.environment import Environment, State
from proactivebench_tasks.protocol.protocol import letter

_LETTER_PREFIX = re.compile(r"^.*[A-Z]\.\s*")


class Grade(str, Enum):
    """What an answer is against a list of labels."""

    CORRECT = "correct"
    WRONG = "wrong"
    MISMATCH = "mismatch"  # none of the labels


def grade(answer: str, labels: Sequence[str], correct: Collection[str], offset: int = 0) -> Grade:
    """Grade ``answer`` against ``labels``, of which those in ``correct`` are right.

    Text counts first, then the letter. ``offset`` is the number of options listed above these
    labels. Beyond 32 of them letters repeat once they are lower-cased; one that fits a correct
    label is correct. Of a label that is listed twice the first letter counts.
    """
    text = _normalise(answer)
    if text in {_normalise(label) for label in labels if label in correct}:
        return Grade.CORRECT
    if text in map(_normalise, labels):
        return Grade.WRONG

    said = answer.split(".")[0].lower().strip()
    letters = [letter(position + offset).lower() for position in range(len(labels))]
    if said in {letters[labels.index(label)] for label in correct if label in labels}:
        return Grade.CORRECT
    return Grade.WRONG if said in letters else Grade.MISMATCH


@dataclass(frozen=True)
class TurnGrade:
    """An answer's grades as a suggestion and a category; ``accepted`` is the suggestion taken."""

    suggestion: Grade
    category: Grade
    accepted: str | None = None


def grade_turn(environment: Environment[Any, Any], state: State, answer: str) -> TurnGrade:
    """Grade an answer in a state. The right category goes before a right suggestion."""
    listed = environment.listed(state)
    helpful = environment.correct_suggestions(state)
    asked = grade(answer, listed, helpful)
    right = environment.correct_categories(state)
    named = grade(answer, environment.sample.categories, right, offset=len(listed))
    if named is Grade.CORRECT or asked is not Grade.CORRECT:
        return TurnGrade(asked, named)
    accepted = next(o for o in helpful if grade(answer, listed, [o]) is Grade.CORRECT)
    return TurnGrade(asked, named, accepted)


@functools.lru_cache(maxsize=4096)
def _normalise(text: str) -> str:
    return _LETTER_PREFIX.sub("", text).lower().strip().replace(" ", "")
