"""Grading: is a model's answer one of the labels it was shown, and a correct one?

Source: the benchmark's published package, 0.1.1, as recorded in ``tests/vectors``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Sequence
from enum import Enum

_LETTER_PREFIX = re.compile(r"^.*[A-Z]\.\s*")


class Grade(str, Enum):
    """What an answer is against a list of labels."""

    CORRECT = "correct"
    WRONG = "wrong"
    MISMATCH = "mismatch"  # none of the labels


def grade(answer: str, labels: Sequence[str], correct: Collection[str], offset: int = 0) -> Grade:
    """Grade ``answer`` against ``labels``, of which those in ``correct`` are right.

    Text counts first, then the letter: label ``j`` has letter ``chr(65 + j + offset)``, so
    ``offset`` is the number of options listed above these labels. Beyond 32 of them letters repeat
    once they are lower-cased; one that fits a correct label is correct. Of a label that is listed
    twice the first letter counts.
    """
    text = _normalise(answer)
    if text in {_normalise(label) for label in labels if label in correct}:
        return Grade.CORRECT
    if text in map(_normalise, labels):
        return Grade.WRONG

    letter = answer.split(".")[0].lower().strip()
    if letter in {_letter(labels.index(label) + offset) for label in correct if label in labels}:
        return Grade.CORRECT
    known = letter in {_letter(j + offset) for j in range(len(labels))}
    return Grade.WRONG if known else Grade.MISMATCH


def _letter(position: int) -> str:
    return chr(65 + position).lower()


@functools.lru_cache(maxsize=4096)
def _normalise(text: str) -> str:
    return _LETTER_PREFIX.sub("", text).lower().strip().replace(" ", "")
