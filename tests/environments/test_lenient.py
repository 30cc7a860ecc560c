"""The lenient reading: one option in another form counts, nothing else does, and it says why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proactivebench_tasks.environments.grading import Grade, grade
from proactivebench_tasks.environments.lenient import Mismatch, Reading, read

OPTIONS = (
    "Move the blocks to the left.",
    "Move the blocks to the right.",
    "I cannot tell.",
    "A tree.",
    "A boat.",
    "A pine tree.",
)
TREE = 3


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("(D)", Mismatch.OTHER_FORM),
        ("[D]", Mismatch.OTHER_FORM),
        ("**D**", Mismatch.OTHER_FORM),
        ("`D`", Mismatch.OTHER_FORM),
        ('"D"', Mismatch.OTHER_FORM),
        ("D)", Mismatch.OTHER_FORM),
        ("D:", Mismatch.OTHER_FORM),
        ("\\boxed{D}", Mismatch.OTHER_FORM),
        ("$\\boxed{\\text{D}}$", Mismatch.OTHER_FORM),
        ("A tree", Mismatch.OTHER_FORM),
        ("a  TREE!", Mismatch.OTHER_FORM),
        ("**A tree**", Mismatch.OTHER_FORM),
        ("D) A tree", Mismatch.OTHER_FORM),
        ("(D) A tree.", Mismatch.OTHER_FORM),
        ("D: a tree", Mismatch.OTHER_FORM),
        ("Answer: D", Mismatch.TEXT_BEFORE),
        ("answer is D", Mismatch.TEXT_BEFORE),
        ("The correct answer is (D).", Mismatch.TEXT_BEFORE),
        ("Final answer: **D. A tree.**", Mismatch.TEXT_BEFORE),
        ("The best option is A tree.", Mismatch.TEXT_BEFORE),
        ("Option D", Mismatch.TEXT_BEFORE),
        ("I choose D", Mismatch.TEXT_BEFORE),
        ("D) because it has leaves", Mismatch.TEXT_AFTER),
        ("D\nIt has leaves.", Mismatch.TEXT_AFTER),
        ("A tree, because it has leaves", Mismatch.TEXT_AFTER),
        ("A tree\n\nIt has leaves", Mismatch.TEXT_AFTER),
    ],
)
def test_one_option_in_another_form_is_read(answer: str, why: Mismatch) -> None:
    assert read(answer, OPTIONS) == Reading(TREE, why)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", Mismatch.NOTHING),
        (" \n\t", Mismatch.NOTHING),
        ("A, D", Mismatch.SEVERAL),
        ("A and D", Mismatch.SEVERAL),
        ("(B) or (D)", Mismatch.SEVERAL),
        ("A/D", Mismatch.SEVERAL),
        ("D) A boat.", Mismatch.SEVERAL),
        ("Z", Mismatch.NO_SUCH_LETTER),
        ("(G)", Mismatch.NO_SUCH_LETTER),
        ("\u6811", Mismatch.OTHER_SCRIPT),
        ("\u0434\u0435\u0440\u0435\u0432\u043e", Mismatch.OTHER_SCRIPT),
        ("I see a tree", Mismatch.OTHER),
        ("A treehouse", Mismatch.OTHER),
        ("Drink", Mismatch.OTHER),
        ("A", Mismatch.OTHER_FORM),  # the letter of the first option, not an article
        ("12", Mismatch.OTHER),
    ],
)
def test_what_names_no_single_option_is_not_read_as_the_tree(answer: str, why: Mismatch) -> None:
    reading = read(answer, OPTIONS)
    assert reading.why is why
    assert reading.choice in (None, 0)


def test_the_longest_option_that_fits_is_meant() -> None:
    assert read("A pine tree, I think", OPTIONS).choice == 5


def test_an_article_is_no_letter() -> None:
    assert read("A boat on a lake", OPTIONS).choice == 4
    assert read("A view of a lake", OPTIONS).choice is None


@given(
    st.sampled_from(range(len(OPTIONS))), st.sampled_from(["({})", "**{}**", "{})", "Answer: {}"])
)
def test_every_letter_is_read_in_every_form(position: int, form: str) -> None:
    answer = form.format(chr(ord("A") + position))
    assert grade(answer, OPTIONS, OPTIONS) is Grade.MISMATCH  # or there is nothing to read
    assert read(answer, OPTIONS).choice == position


@given(st.text(max_size=200))
def test_any_text_is_read_as_one_option_or_none(answer: str) -> None:
    reading = read(answer, OPTIONS)
    assert reading.choice is None or 0 <= reading.choice < len(OPTIONS)


def test_a_long_answer_takes_no_time() -> None:
    assert read("(" * 100_000 + "\\boxed{" * 1000, OPTIONS).choice is None
