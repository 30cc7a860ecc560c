"""Makes lmms-eval's efficiency block right for our tasks.

lmms-eval counts a sample's tokens once, though with ``--repeats`` it is played several times, and
does not tell how long the model took. Our records know both. Needed since lmms-eval 0.7.0. This can
go once the block counts every repeat, and calls and seconds.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from proactivebench_tasks.model_patches import place
from proactivebench_tasks.results.summary import PART

_SUMS = (
    "docs",
    "docs_with_token_counts",
    "total_input_tokens",
    "total_output_tokens",
    "total_tokens",
    "total_correct_score",
    "total_calls",
    "total_seconds",
)


def apply() -> None:
    from lmms_eval import evaluator

    original = place.find(evaluator, "build_efficiency_summary")
    if getattr(original, "mended", False):
        return

    @functools.wraps(original)
    def build_efficiency_summary(results: dict[str, Any]) -> dict[str, Any]:
        summary: dict[str, Any] = original(results)
        ours = results.get(PART, {}).get("tasks", {})
        if ours:
            by_task = summary.setdefault("by_task", {})
            by_task.update({name: _of_task(task) for name, task in ours.items()})
            summary["overall"] = _overall(by_task.values())
        return summary

    build_efficiency_summary.mended = True  # type: ignore[attr-defined]
    evaluator.build_efficiency_summary = build_efficiency_summary


def _of_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """What lmms-eval has for a task, in its names, from our summary of it."""
    costs = task["costs"]
    times = task.get("repeats", {}).get("count", 1)
    tokens_in, tokens_out = costs.get("input_tokens", 0), costs.get("output_tokens", 0)
    return _with_rates(
        {
            "docs": float(task["samples"]),
            "docs_with_token_counts": float(task["samples"] if tokens_in or tokens_out else 0),
            "total_input_tokens": float(tokens_in),
            "total_output_tokens": float(tokens_out),
            "total_tokens": float(tokens_in + tokens_out),
            # Each time that a sample was played counts, as its tokens do.
            "total_correct_score": times * task["samples"] * task["metrics"]["acc"]["mean"] / 100,
            "total_calls": float(costs.get("calls", 0)),
            "total_seconds": round(costs.get("seconds", 0.0), 3),
        }
    )


def _overall(tasks: Any) -> dict[str, Any]:
    return _with_rates({name: sum(task.get(name, 0.0) for task in tasks) for name in _SUMS})


def _with_rates(figures: dict[str, Any]) -> dict[str, Any]:
    docs, correct = figures["docs_with_token_counts"], figures["total_correct_score"]
    tokens = figures["total_output_tokens"]
    return figures | {
        "avg_output_tokens_per_sample": tokens / docs if docs else 0.0,
        "tokens_per_correct_answer": tokens / correct if correct else None,
    }
