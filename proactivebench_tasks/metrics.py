"""Metrics: what a sample's transcript is worth, as the numbers that the harness averages."""

from __future__ import annotations

from proactivebench_tasks.environments.base import Summary


def multiple_choice(summary: Summary | None) -> dict[str, float]:
    """One sample's metrics; ``None`` for a sample that failed and so has no result.

    ``acc`` (%), ``ps`` (suggestions a sample), ``asked``, ``max_steps``, ``mismatch``, ``failed``
    (%). A failed sample counts as 0 in all but ``failed``, as the paper's protocol knows none.
    """
    if summary is None:
        zeros = dict.fromkeys(("acc", "ps", "asked", "max_steps", "mismatch"), 0.0)
        return zeros | {"failed": 100.0}
    return {
        "acc": 100.0 * summary.correct_prediction,
        "ps": float(summary.suggestions),
        "asked": 100.0 * (summary.suggestions > 0),
        "max_steps": 100.0 * summary.reached_max_turns,
        "mismatch": 100.0 * summary.mismatch,
        "failed": 0.0,
    }
