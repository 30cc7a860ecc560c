"""LexicalJudge: a judge without a model, for the demo and for smoke tests only.

A text makes an answer if the answer's content words, or synonyms of them, stand together in one
clause of the text, and the clause has no negation. Words are compared by their stems. That is quick
and repeatable, but crude: the resulting numbers are comparable to no others.
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

#: Part of the judge's identity. Add one with every change that may change a verdict, so that
#: replies of earlier versions are not taken from the cache.
VERSION = 2

_CLAUSE = re.compile(
    r"[.!?;:,\n]|\b(?:but|so|then|until|unless|if|because|before|after|while|instead)\b"
)
_WORD = re.compile(r"[a-z0-9]+")
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|without|neither|nor|unable)\b"
    r"|n['\u2019`\u00b4]t\b"  # isn't, with any apostrophe that people type
    r"|\b(?:ai|are|ca|could|did|do|does|had|has|have|is|must|need|should|was|were|wo|would)nt\b"
)

#: Words that do not count in an answer: grammar, and words for images and for changing an image,
#: which answers about entirely different things hold.
_EMPTY = frozenset(
    _WORD.findall(
        "a an and as at be by can could for from go i in is it its just let me more my of on or "
        "out please should some that the there these this those to up us we will with would you "
        "your object occlusion disappear video image picture photo drawing sketch thing adjust "
        "correct fix improve increase raise reduce restore"
    )
)

#: From a word of the benchmark's answers to the words that count as this word in a text.
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
    """Replies in the form that the protocol asks a judge model for: a line of marks, ``0, 1``."""

    identity = JudgeIdentity(kind=JudgeKind.LEXICAL.value, model=f"lexical-{VERSION}")
    comparable = False

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        for position, question in enumerate(questions):
            marks = (int(makes(question.generated, answer)) for answer in question.answers)
            yield position, Reply(", ".join(map(str, marks)))


def makes(text: str, answer: str) -> bool:
    """Whether a text makes an answer, by the rule in this module's docstring.

    An answer of nothing but words that do not count is compared by all of its words.
    """
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
    """The stem of a word of the text, and the stems of the answers' words that it counts as."""
    stem = _stem(word)
    counts_as = {_stem(m) for m, words in _SYNONYMS.items() if stem in map(_stem, words.split())}
    return frozenset({stem, *counts_as})


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    return _STEMMER.stem(word)


_STEMMER = SnowballStemmer("english")
