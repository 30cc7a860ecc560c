"""What is left of a text without the thinking in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proactivebench_tasks.transcripts.thinking import Spoken, Tags, spoken

THINK: Tags = (("<think>", "</think>"), ("<analysis>", "</analysis>"))
SQUARE: Tags = (("[THINK]", "[/THINK]"),)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("F", "F"),
        (" F \n", "F"),
        ("<think>A or B?</think>F", "F"),
        ("<think></think>\n\nF\n", "F"),
        ("<think>a</think><think>b</think>F", "F"),
        ("<analysis>a</analysis><think>b</think> F", "F"),
        ("F <think>was that right?</think>", "F"),
        ("it began in the prompt</think> F", "F"),
        ("twice</think> and again</think> F", "F"),
        ("F</think>", "F"),  # stray
        ("F</think>\n", "F"),
        ("<think>a</think>F</think>", "F"),
        ("it began in the prompt</think>F</think>", "F"),
        ("</think>F", "F"),
        ("<THINK>no tag</THINK>", "<THINK>no tag</THINK>"),
    ],
)
def test_thinking_is_taken_out(text: str, left: str) -> None:
    assert spoken(text, THINK) == Spoken(left)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>never ends. A tree.", ""),
        ("<think>a</think><think>never ends", ""),
        ("F <think>never ends", "F"),
        ("<think>", ""),
        ("<analysis>never ends</think>", ""),
        ("It began in the prompt.\nAnd no answer came.</think>", ""),
        ("It began in the prompt, " * 20 + "and no answer came</think>", ""),
    ],
)
def test_thinking_that_never_ends_is_cut(text: str, left: str) -> None:
    assert spoken(text, THINK) == Spoken(left, is_cut=True)


@pytest.mark.parametrize("text", ["[THINK]a[/THINK]F", "[THINK][/THINK] F", "F[/THINK]"])
def test_tags_of_any_kind(text: str) -> None:
    assert spoken(text, SQUARE) == Spoken("F")
    assert spoken(text, THINK) == Spoken(text)


@pytest.mark.parametrize("text", [" <think>a</think> F ", "<think>", "", "F</think>"])
def test_without_tags_a_text_is_left_as_it_is(text: str) -> None:
    assert spoken(text, ()) == Spoken(text)


@given(st.lists(st.sampled_from(["<think>", "</think>", "F", " ", "A. B"]), max_size=8))
def test_no_tag_is_left(parts: list[str]) -> None:
    left = spoken("".join(parts), THINK).text
    assert "<think>" not in left
    assert "</think>" not in left


@given(st.lists(st.sampled_from(["<think>x</think>", "F", " ", "A. B"]), max_size=8))
def test_whole_blocks_are_taken_out_as_the_harness_does(parts: list[str]) -> None:
    from lmms_eval.api.reasoning import strip_reasoning_tags

    text = "".join(parts)
    pairs = [list(pair) for pair in THINK]
    assert spoken(text, THINK) == Spoken(strip_reasoning_tags(text, pairs))
