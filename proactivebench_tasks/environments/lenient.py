"""Lenient reading: what an answer that is no option may have meant, and why it is none.

The published rules (``grading``) take a letter up to the first full stop, or an option's text.
Play and ``acc`` follow them and nothing else. ``acc_lenient`` also counts the last answer of an
episode where it names one option, and only one, in another form:

- the option's text, whatever its case, markup and last punctuation: ``a tree``, ``**A tree**``
- a letter of the list, in markup or with punctuation: ``(D)``, ``**D**``, ``D)``, ``\\boxed{D}``
- either of these after words that announce it: ``Answer: D``, ``The correct option is D``
- either of these first, with more text after it: ``D) A tree``, ``A tree, because it has leaves``

An answer that names several options so names none, and a letter that is not on the list neither. A
letter counts as one if it stands alone, or if punctuation or a line break follows it: the ``A`` of
``A tree`` does not. The rule is ours; the difference between the two accuracies tells form from
proactiveness.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Mismatch(str, Enum):
    """Why an answer is no option of the list."""

    NOTHING = "nothing"  # it is empty
    CUT = "cut"  # it is empty, because the model was cut off while it was thinking
    OTHER_FORM = "other form"  # it is one option, in another form
    TEXT_BEFORE = "text before"  # words that announce it stand before one option
    TEXT_AFTER = "text after"  # more text follows one option
    SEVERAL = "several"  # it names several options
    NO_SUCH_LETTER = "no such letter"  # it is a letter that is not on the list
    OTHER_SCRIPT = "other script"  # it has letters, but none of the Latin alphabet
    OTHER = "other"  # it is anything else


@dataclass(frozen=True)
class Reading:
    """``choice`` is the position of the one option that is meant, ``None`` if there is none."""

    choice: int | None
    why: Mismatch


_BOXED = re.compile(r"\\(?:boxed|text|mathrm|textbf|mathbf)\s*\{([^{}]*)\}")
_MARKUP = re.compile("[*_`#$\"'\u201c\u201d\u2018\u2019\xab\xbb]+")  # with typographic quotes
_SPACE = re.compile(r"\s+")
_ANNOUNCED = re.compile(
    r"^(?:so|thus|therefore|hence)?[,\s]*"
    r"(?:(?:the|my|i)\s+)?(?:(?:final|correct|best|right|most likely)\s+)?"
    r"(?:answer|option|choice|pick|response|choose|select)"
    r"(?:\s+(?:is|would be|option|letter|choice))*\s*[:=\-]*\s*",
    re.IGNORECASE,
)
_LETTER = re.compile(r"^[(\[{]*\s*([A-Za-z])\s*(?:[)\]}.:,;\-\u2013\u2014]+(?=\s|$|[^\w])|$)")
_LETTER_LINE = re.compile(r"^[(\[{]*\s*([A-Z])\s*[)\]}]*\s*\n")
_SEVERAL = re.compile(r"^\W*[A-Z]\W{0,2}\s*(?:[,/&;+|]|or\b|and\b)+\s*\W{0,2}[A-Z](?=\W|$)")


def read(answer: str, options: Sequence[str]) -> Reading:
    """What an answer that the published rules took for no option may mean.

    ``options`` is the whole list as shown: suggestions, refusals, categories.
    """
    if not answer.strip():
        return Reading(None, Mismatch.NOTHING)
    text = _plain(answer)
    if (reading := _one_of(text, options, Mismatch.OTHER_FORM)) is not None:
        return reading
    announced = _ANNOUNCED.match(text)
    if announced and announced.group().strip():
        rest = text[announced.end() :]
        if (reading := _one_of(rest, options, Mismatch.TEXT_BEFORE)) is not None:
            return reading
    if not re.search(r"[A-Za-z]", text) and re.search(r"[^\W\d_]", text):
        return Reading(None, Mismatch.OTHER_SCRIPT)
    return Reading(None, Mismatch.OTHER)


def _one_of(text: str, options: Sequence[str], why: Mismatch) -> Reading | None:
    """The option at the beginning of a text; ``why`` is the reason if nothing follows it."""
    labels = [_bare(option) for option in options]
    if (whole := _bare(text)) in labels:
        return Reading(labels.index(whole), why)
    if _SEVERAL.match(text):
        return Reading(None, Mismatch.SEVERAL)
    letter = _LETTER.match(text) or _LETTER_LINE.match(text)
    if letter is not None:
        rest = text[letter.end() :].strip()
        position = ord(letter.group(1).upper()) - ord("A")
        if position >= len(options):
            return Reading(None, Mismatch.NO_SUCH_LETTER)
        if rest and _label_at_start(rest, labels) not in (None, position):
            return Reading(None, Mismatch.SEVERAL)  # a letter, and another option's text
        after = rest and _bare(rest) != labels[position]
        return Reading(position, Mismatch.TEXT_AFTER if after else why)
    named = _label_at_start(text, labels)
    return None if named is None else Reading(named, Mismatch.TEXT_AFTER)


def _label_at_start(text: str, labels: Sequence[str]) -> int | None:
    """The position of the longest label that the text begins with, at the end of a word."""
    bare = _SPACE.sub(" ", text).lower()
    found = [
        (len(label), -position)
        for position, label in enumerate(labels)
        if label and bare.startswith(label) and not bare[len(label) : len(label) + 1].isalnum()
    ]
    return -max(found)[1] if found else None


def _plain(text: str) -> str:
    """A text without markup."""
    while (boxed := _BOXED.sub(r"\1", text)) != text:
        text = boxed
    return _MARKUP.sub("", text).strip()


def _bare(text: str) -> str:
    """A text by which two spellings of one option are equal."""
    return _SPACE.sub(" ", _plain(text)).strip(" .,;:!?()[]{}").lower()
