"""Standard errors are what a simulation says they are."""

from __future__ import annotations

import random
from statistics import fmean, stdev

import pytest

from proactivebench_tasks.results.statistics import (
    clustered_standard_error,
    error_of_mean,
    standard_error,
)

SIZES = (16, 6, 200, 200, 200, 16, 200)  # of the seven tasks of a group


def bootstrap(draw: object, rounds: int = 4000) -> float:
    """The spread of a statistic over resamples."""
    return stdev(draw() for _ in range(rounds))  # type: ignore[operator]


def test_error_of_a_task_is_that_of_a_bootstrap() -> None:
    rng = random.Random(0)
    values = [100.0 * (rng.random() < 0.3) for _ in range(200)]
    error = bootstrap(lambda: fmean(rng.choices(values, k=len(values))))
    assert standard_error(values) == pytest.approx(error, rel=0.05)


def test_error_of_a_group_is_that_of_a_bootstrap() -> None:
    rng = random.Random(1)
    tasks = [
        [100.0 * (rng.random() < 0.2 + 0.1 * i) for _ in range(n)] for i, n in enumerate(SIZES)
    ]
    error = bootstrap(lambda: fmean(fmean(rng.choices(t, k=len(t))) for t in tasks), 2000)
    assert error_of_mean([standard_error(t) for t in tasks]) == pytest.approx(error, rel=0.05)


def test_clustered_error_is_that_of_a_bootstrap_over_clusters() -> None:
    rng = random.Random(2)
    videos = [[100.0 * (rng.random() < chance)] * rng.randint(1, 8) for chance in [0.4] * 300]
    values = [value for video in videos for value in video]
    clusters = [number for number, video in enumerate(videos) for _ in video]

    def mean_of_resampled_videos() -> float:
        return fmean(value for video in rng.choices(videos, k=len(videos)) for value in video)

    error = bootstrap(mean_of_resampled_videos, 2000)
    clustered = clustered_standard_error(values, clusters)
    assert clustered == pytest.approx(error, rel=0.08)
    naive = standard_error(values)
    assert clustered is not None and naive is not None and clustered > 1.5 * naive


def test_clusters_of_one_change_nothing() -> None:
    values = [0.0, 100.0, 100.0, 0.0, 100.0]
    assert clustered_standard_error(values, range(5)) == pytest.approx(standard_error(values))


def test_clustered_error_is_the_harness_s() -> None:
    from lmms_eval.api.metrics import clustered_stderr

    rng = random.Random(3)
    values = [rng.choice([0.0, 100.0]) for _ in range(50)]
    clusters = [rng.randint(0, 9) for _ in range(50)]
    theirs = clustered_stderr(values, clusters)
    assert clustered_standard_error(values, clusters) == pytest.approx(theirs)


@pytest.mark.parametrize("values", [[], [1.0]])
def test_too_few_values_have_no_error(values: list[float]) -> None:
    assert standard_error(values) is None
    assert clustered_standard_error(values, ["a"] * len(values)) is None


def test_one_cluster_has_no_error() -> None:
    assert clustered_standard_error([1.0, 2.0], ["a", "a"]) is None


def test_a_group_with_an_unknown_error_has_none() -> None:
    assert error_of_mean([1.0, None]) is None
    assert error_of_mean([]) is None
