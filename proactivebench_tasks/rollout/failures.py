"""Failures: how many samples may fail before a run stops."""

from __future__ import annotations

import os

from proactivebench_tasks.errors import HarnessError

#: A number of samples ("20") or a share of a task's ("5%"); above it the run stops.
MAX_FAILED = "PROACTIVEBENCH_MAX_FAILED"


def allowed(episodes: int) -> float:
    """How many of a task's samples may fail: all of them, unless ``MAX_FAILED`` says otherwise.

    ``HarnessError`` when it says neither a number nor a share.
    """
    value = os.environ.get(MAX_FAILED, "").strip()
    if not value:
        return float("inf")
    try:
        number = float(value.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise HarnessError(
            f"{MAX_FAILED} is {value!r}; expected a number of samples (20) or a share (5%)"
        )
    return number / 100 * episodes if value.endswith("%") else number
