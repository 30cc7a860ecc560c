"""Statistics: how sure a mean is, of one task and of a group of tasks.

Source: Miller, "Adding Error Bars to Evals", arXiv 2411.00640, equations 1 and 4.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
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


def is_same(before: float, now: float) -> bool:
    """Whether two figures are equal, but for the last bits."""
    return math.isclose(before, now, rel_tol=1e-9, abs_tol=1e-9)


@dataclass(frozen=True)
class Errors:
    """The standard errors of a mean; ``None`` for one that is not known.

    ``plain`` takes all samples for independent of each other, ``clustered`` clusters of them alone.
    ``has_clusters``: some cluster has more than one sample, so that the two differ.
    """

    plain: float | None
    clustered: float | None
    has_clusters: bool

    @classmethod
    def of(cls, values: Sequence[float], clusters: Sequence[Hashable]) -> Errors:
        """Of the mean over the samples of a task."""
        return cls(
            standard_error(values),
            clustered_standard_error(values, clusters),
            len(set(clusters)) < len(clusters),
        )

    @classmethod
    def of_mean(cls, tasks: Sequence[Errors]) -> Errors:
        """Of the plain mean over tasks, from the tasks' own."""
        return cls(
            error_of_mean([each.plain for each in tasks]),
            error_of_mean([each.clustered for each in tasks]),
            any(each.has_clusters for each in tasks),
        )
