"""Metrics: what a sample's transcript is worth, as the numbers that the harness averages."""

from __future__ import annotations

from collections.abc import Iterable

from proactivebench_tasks.environments.episode import Summary
from proactivebench_tasks.judge import verdict
from proactivebench_tasks.transcripts.open_ended import OpenEnded


def multiple_choice(summary: Summary | None, reused: int = 0) -> dict[str, float]:
    """One sample's metrics; ``None`` for a sample that failed and so has no result.

    ``acc`` (%), ``ps`` (suggestions a sample), ``asked``, ``max_steps``, ``mismatch``, ``failed``
    (%), ``reused`` (turns answered without a call). A failed sample counts as 0 in all but
    ``failed``, as the paper's protocol knows none.
    """
    if summary is None:
        zeros = dict.fromkeys(("acc", "ps", "asked", "max_steps", "mismatch", "reused"), 0.0)
        return zeros | {"failed": 100.0}
    return {
        "acc": 100.0 * summary.correct_prediction,
        "ps": float(summary.suggestions),
        "asked": 100.0 * (summary.suggestions > 0),
        "max_steps": 100.0 * summary.reached_max_turns,
        "mismatch": 100.0 * summary.mismatch,
        "failed": 0.0,
        "reused": float(reused),
    }


def total(values: Iterable[float]) -> float:
    """The sum over samples: the harness has means only."""
    return sum(values)


def open_ended(record: OpenEnded | None) -> dict[str, float]:
    """One sample's metrics, all in %; ``None``, or a record with an error, for one that failed.

    ``acc`` (names the category), ``ps`` (makes a suggestion), ``agg`` (either), ``unscored`` (an
    answer without a usable verdict: the official protocol counts it as 0 in the other three, and
    so do they here), ``failed``.
    """
    if record is None or record.error is not None:
        return dict.fromkeys(("acc", "ps", "agg", "unscored"), 0.0) | {"failed": 100.0}
    marks = record.judge.verdict
    score = verdict.score(marks, record.dataset)
    return {
        "acc": 100.0 * score.category,
        "ps": 100.0 * score.suggestion,
        "agg": 100.0 * score.aggregate,
        "unscored": 100.0 * (marks is None),
        "failed": 0.0,
    }
