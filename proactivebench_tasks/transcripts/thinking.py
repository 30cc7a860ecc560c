"""Thinking: what a model says between reasoning tags, and what is left of its text without it.

Which tags these are is a setting of the harness: ``--reasoning_tags``, or ``reasoning_tags`` of a
task. For other tasks the harness takes the thinking out before it scores; for an episode that is
too late, since each answer decides the next turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Characters of one line that are taken for an answer, and not for thinking, before a stray tag.
_ANSWER = 200

#: Pairs of an opening and a closing tag, such as ``(("<think>", "</think>"),)``; none for no tags.
Tags = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Spoken:
    """A model's text without its thinking. ``is_cut``: the thinking never ended."""

    text: str
    is_cut: bool = False


def spoken(text: str, tags: Sequence[tuple[str, str]]) -> Spoken:
    """What is left of ``text`` without the thinking.

    - A whole block, from an opening tag to the next closing one, is taken out.
    - A closing tag without an opening one ends thinking that began in the prompt: what stands
      before it goes. But if nothing stands behind it, and one short line before it, then the tag is
      a stray one, and the line stays.
    - An opening tag without a closing one begins thinking that was cut off: what follows it goes.

    The harness's own function leaves the last of these as it is, and loses the answer before a
    stray closing tag; in all else the two agree. Without tags the text is returned as it is.
    """
    if not tags:
        return Spoken(text)
    is_cut = False
    for opening, closing in tags:
        while (start := text.find(opening)) >= 0:
            end = text.find(closing, start + len(opening))
            if end < 0:
                text, is_cut = text[:start], True
                break
            text = text[:start] + text[end + len(closing) :]
        while (bare := text.rstrip()).endswith(closing):
            text = bare.removesuffix(closing)
            if closing not in text and not _is_answer(text):
                text, is_cut = "", True
        text = text.rpartition(closing)[2]
    return Spoken(text.strip(), is_cut)


def _is_answer(text: str) -> bool:
    """Whether a text may be an answer rather than thinking: one short line, or nothing."""
    return len(text.strip()) <= _ANSWER and "\n" not in text.strip()
