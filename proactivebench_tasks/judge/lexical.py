"""LexicalJudge: no model, but stems and a few synonyms. For the demo and for smoke tests only.

An answer is made when one clause of the text holds everything that the answer is about, and does
not negate it. That is quick, repeatable and crude: the results compare to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from nltk.stem.snowball import SnowballStemmer

from proactivebench_tasks.config import JudgeKind
from proactivebench_tasks.judge.base import Reply
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.transcripts.open_ended import JudgeIdentity

VERSION = 1  # raised by one when verdicts may change: earlier ones are not reused

_CLAUSE = re.compile(
    r"[.!?;:,\n]|\b(?:but|so|then|until|unless|if|because|before|after|while|instead)\b"
)
_WORD = re.compile(r"[a-z0-9]+")
_NEGATION = re.compile(r"\b(?:not|no|never|cannot|without|neither|nor|unable)\b|n.?t\b")

#: Words that say nothing about an answer: grammar, and what every question here is about anyway.
_EMPTY = frozenset(
    _WORD.findall(
        "a an and as at be by can could for from go i in is it its just let me more my of on or "
        "out please should some that the there these this those to up us we will with would you "
        "your object occlusion disappear video image picture photo drawing sketch thing adjust "
        "correct fix improve increase raise reduce restore"
    )
)

#: What stands for what. The second word is an answer's, as the benchmark words it.
_SYNONYMS = {
    "move": "push pull shift slide drag take remove pan tilt step walk change",
    "block": "bricks cubes",
    "camera": "viewpoint perspective angle position viewfinder",
    "rotate": "turn spin flip orientation reorient",
    "wait": "later forward continue play",
    "rewind": "earlier back previous backwards",
    "farther": "further away zoom back distance",
    "add": "draw give continue complete finish provide",
    "detail": "strokes lines",
    "deblur": "sharpen unblur sharper",
    "denoise": "noise grain",
    "brightness": "brighten brighter lighten darken",
    "contrast": "contrasts",
    "saturation": "colour color saturate",
}


class LexicalJudge:
    """Replies as a model would: a line of marks."""

    identity = JudgeIdentity(kind=JudgeKind.LEXICAL.value, model=f"lexical-{VERSION}")
    comparable = False

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        for position, question in enumerate(questions):
            made = (makes(question.generated, answer) for answer in question.answers)
            yield position, Reply(", ".join(str(int(m)) for m in made))


def makes(text: str, answer: str) -> bool:
    """Whether a text gives an answer, by its words."""
    words = _words(answer)
    wanted = {_stem(word) for word in words if word not in _EMPTY} or set(map(_stem, words))
    clauses = (c for c in _CLAUSE.split(text.lower()) if not _NEGATION.search(c))
    return bool(wanted) and any(
        wanted <= {meaning for word in _words(clause) for meaning in _meanings(word)}
        for clause in clauses
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


@lru_cache(maxsize=4096)
def _meanings(word: str) -> frozenset[str]:
    """The stem of a word, and of those that it may stand for."""
    stem = _stem(word)
    meant = {_stem(m) for m, words in _SYNONYMS.items() if stem in map(_stem, words.split())}
    return frozenset({stem, *meant})


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    return _STEMMER.stem(word)


_STEMMER = SnowballStemmer("english")
