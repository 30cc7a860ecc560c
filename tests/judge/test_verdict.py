"""Verdicts, by the published package's recorded decisions and at their edges."""

from __future__ import annotations

from pathlib import Path

import pytest

from proactivebench_tasks.conformance import replay
from proactivebench_tasks.judge.verdict import Unusable, marks, score
from proactivebench_tasks.protocol.samples import Dataset

VECTORS = Path(__file__).parents[1] / "vectors" / "judge.jsonl.gz"


def test_recorded_verdicts_come_out_the_same() -> None:
    assert str(replay(VECTORS, wording=False)) == "70 verdicts, 0 differ"


@pytest.mark.network
def test_recorded_verdicts_and_messages_come_out_the_same() -> None:
    assert str(replay(VECTORS)) == "70 verdicts, 0 differ"


@pytest.mark.parametrize(
    ("raw", "verdict"),
    [
        ("1,0", [1, 0]),
        ("0, 0\nno: 1 , 1", [1, 1]),
        ("1, 1</think>0, 1", [0, 1]),
        ("<think>1, 1</think>0, 0</think>1, 0", [1, 0]),
        ("<think>1, 1", [1, 1]),  # the official rule drops up to the end of thinking, if any
        ("[1,\n0]", [1, 0]),
    ],
)
def test_last_run_of_marks_after_the_thinking_counts(raw: str, verdict: list[int]) -> None:
    assert marks(raw, "Ask, A tree.") == verdict


@pytest.mark.parametrize("raw", ["", "none", "1, 0</think>", "1", "1, 0, 0", "1, 0\n1"])
def test_reply_without_a_mark_for_each_answer_is_unusable(raw: str) -> None:
    with pytest.raises(Unusable):
        marks(raw, "Ask, A tree.")


def test_category_with_a_comma_counts_twice_and_blank_pieces_not_at_all() -> None:
    assert marks("0, 0, 1", "Ask, One, two.") == [0, 0, 1]
    assert marks("0, 1", "Ask,, Two.") == [0, 1]


@pytest.mark.parametrize("dataset", Dataset)
def test_leading_marks_stand_for_suggestions(dataset: Dataset) -> None:
    leading = {"rod": 2, "vsod": 3, "mvpn": 2, "imagenetc": 1, "quickdraw": 1, "changeit": 2}
    asks = leading.get(dataset.task, 2)
    for i in range(4):
        verdict = [int(i == j) for j in range(4)]
        assert score(verdict, dataset).suggestion is (i < asks)
        assert score(verdict, dataset).category is (i >= asks)
        assert score(verdict, dataset).aggregate
    assert not score(None, dataset).aggregate
