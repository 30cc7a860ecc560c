"""Grading, answer by answer: its text counts first, then its letter.

Where a grade looks odd, the published package grades so, and numbers must compare with its.
"""

from __future__ import annotations

import pytest

from proactivebench_tasks.environments.grading import Grade, grade

C, W, M = Grade.CORRECT, Grade.WRONG, Grade.MISMATCH

SUGGESTIONS = ["Move the blocks.", "I cannot tell.", "Look behind them."]  # A, B, C
CATEGORIES = ["Ice cream.", "E. coli.", "t-shirt"]  # D, E, F


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # The text of a label, give or take case, spaces and a letter before it.
        ("Move the blocks.", C),
        ("  move THE\nblocks.", M),  # of the white space inside, only spaces are dropped
        ("  move THE blocks.\n", C),
        ("m o v e theblocks.", C),
        ("A. Move the blocks.", C),
        ("A.Move the blocks.", C),
        ("A.\n\tMove the blocks.", C),
        ("C. Move the blocks.", C),  # the letter is not held against it
        ("The answer is A. Move the blocks.", C),
        ("I say B. no, A. Move the blocks.", C),  # up to the last letter and period
        ("I cannot tell.", W),
        # One character off is another text.
        ("Move the blocks", M),
        ("Move the blocks..", M),
        ("a. Move the blocks.", C),  # no such prefix in lower case, but the letter before "."
        ("A) Move the blocks.", M),
        ("A: Move the blocks.", M),
        ("Move the blocks. Or not.", M),
        ("Move the\tblocks.", M),
        # The letter alone.
        ("A", C),
        ("a", C),
        (" c \n", C),
        ("C.", C),
        ("c . whatever follows", C),
        ("B", W),
        ("D", M),  # beyond the list
        ("@", M),
        ("[", M),
        ("AC", M),
        ("A B", M),
        ("A\nC", M),
        ("A, because", M),
        # No answer at all.
        ("", M),
        (" ", M),
        (".", M),
        (".A", M),
        ("..A.", M),
        # More than one line: the prefix is looked for in the first one only.
        ("Well\nA. Move the blocks.", M),
        ("A. Move the blocks.\nI am sure.", C),  # by the letter
        ("Move the blocks.\nI am sure.", M),
        ("So, A.\nMove the blocks.", C),
        ("Z.\nA. Move the blocks.", M),
    ],
)
def test_suggestion_is_graded(answer: str, expected: Grade) -> None:
    correct = ["Move the blocks.", "Look behind them."]
    assert grade(answer, SUGGESTIONS, correct) is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Ice cream.", C),
        ("D", C),
        ("d. Ice cream.", C),
        ("A. Ice cream.", C),
        ("E", W),
        ("F", W),
        ("A", M),  # the suggestions' letters
        ("C", M),
        ("G", M),
        ("t-shirt", W),
        ("T-SHIRT", W),
        ("t-shirt.", M),  # the period belongs to the text
        ("E. coli.", W),
        ("coli.", W),  # its own "E." reads as a letter
        ("E. Ice cream.", C),
    ],
)
def test_letters_of_categories_follow_the_suggestions(answer: str, expected: Grade) -> None:
    assert grade(answer, CATEGORIES, ["Ice cream."], offset=3) is expected


def test_nothing_is_correct_where_nothing_can_be() -> None:
    assert [grade(answer, CATEGORIES, []) for answer in ("A", "Ice cream.", "x")] == [W, W, M]


def test_empty_list_matches_nothing() -> None:
    assert [grade(answer, [], []) for answer in ("A", "", "Ice cream.")] == [M, M, M]


def test_text_counts_before_the_letter() -> None:
    # "B." is the letter of the correct label, and the text of the wrong one.
    assert grade("B. x", ["x", "y"], ["y"]) is W
    assert grade("B. y", ["x", "y"], ["x"]) is W
    assert grade("a", ["x", "A"], ["x"]) is W
    assert grade("a", ["x", "A"], ["A"]) is C


def test_text_of_a_right_and_a_wrong_label_counts_as_right() -> None:
    assert grade("cat.", ["A. cat.", "C at."], ["C at."]) is C


def test_label_whose_text_reads_as_a_letter_has_none_left() -> None:
    assert grade("", ["Vitamin C."], ["Vitamin C."]) is C


def test_letters_go_on_after_z() -> None:
    labels = [str(number) + "!" for number in range(28)]
    assert grade("[", labels, ["26!"]) is C
    assert grade("\\", labels, ["26!"]) is W


def test_answer_in_another_script_is_a_mismatch_and_no_error() -> None:
    for answer in ("是", "\uff21", "\x00", "\ud800", "İ"):
        assert grade(answer, SUGGESTIONS, SUGGESTIONS) is M


def test_beyond_32_options_a_letter_that_fits_the_right_label_is_correct() -> None:
    labels = [f"thing {n}." for n in range(40)]  # 1 has letter b, and so has 33
    assert grade("B", labels, [labels[1]]) is C
    assert grade("B", labels, [labels[33]]) is C
    assert grade("B", labels, [labels[2]]) is W


def test_of_a_label_listed_twice_the_first_letter_counts() -> None:
    labels = ["A cup.", "A cup.", "A dog."]
    assert grade("A", labels, ["A cup."]) is C
    assert grade("B", labels, ["A cup."]) is W
