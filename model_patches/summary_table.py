"""Prints our summary after lmms-eval's tables, as the last thing on the terminal.

lmms-eval's tables list every metric of every task in alphabetical order, and set the one score of a
paired comparison beside each of them. Needed since lmms-eval 0.7.0, which has no place for a
summary of a task's own. This can go once there is one.
"""

from __future__ import annotations

import functools
from typing import Any

from proactivebench_tasks.model_patches import place

_PART = "proactivebench"  # results.summary.PART, which is not imported for the plain start


def apply() -> None:
    """Let ``make_table`` append the summary to the last table that is printed."""
    import lmms_eval.utils as utils

    original = place.find(utils, "make_table")
    if getattr(original, "appends", False):
        return

    @functools.wraps(original)
    def make_table(result_dict: Any, column: str = "results", *args: Any, **kwargs: Any) -> Any:
        if _PART not in result_dict:
            return original(result_dict, column, *args, **kwargs)
        from proactivebench_tasks.results.table import render, without_comparison

        text = original(without_comparison(result_dict, column), column, *args, **kwargs)
        last = "groups" if "groups" in result_dict else "results"
        return f"{text}\n\n{render(result_dict)}\n" if column == last else text

    make_table.appends = True  # type: ignore[attr-defined]
    utils.make_table = make_table
