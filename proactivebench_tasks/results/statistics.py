"""Statistics: how sure a mean is, of one task and of a group of tasks.

Source: Miller, "Adding Error Bars to Evals", arXiv 2411.00640, equations 1 and 4.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from statistics import fmean, stdev


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean of independent values; ``None`` for fewer than two."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def clustered_standard_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """Of the mean of values that depend on each other within a cluster (the samples of one video).

    Clusters are taken for independent of each other. ``None`` for fewer than two clusters. Where
    every cluster is a single value this is ``standard_error``.
    """
    deviations: dict[Hashable, float] = defaultdict(float)
    mean = fmean(values) if values else 0.0
    squares = 0.0
    for value, cluster in zip(values, clusters, strict=True):
        deviations[cluster] += value - mean
        squares += (value - mean) ** 2
    if len(deviations) < 2:
        return None
    n = len(values)
    between = sum(deviation**2 for deviation in deviations.values()) - squares
    return math.sqrt(max(0.0, squares / (n - 1) / n + between / n**2))


def error_of_mean(errors: Sequence[float | None]) -> float | None:
    """Standard error of the plain mean over tasks, from the tasks' own: they are independent of
    each other, and each counts alike, whatever its size. ``None`` if one is not known."""
    known = [error for error in errors if error is not None]
    if not known or len(known) < len(errors):
        return None
    return math.sqrt(sum(error**2 for error in known)) / len(known)
