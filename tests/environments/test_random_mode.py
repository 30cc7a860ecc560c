"""Random mode's suggestions: which ones stand on the list, and where."""

from __future__ import annotations

import pytest
from fakes import world

from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.random_mode import as_played, meaningless
from proactivebench_tasks.protocol.samples import Dataset, Sample


def samples(dataset: Dataset) -> list[Sample]:
    return [parse_sample(dataset, row) for row in world.rows(dataset, list(range(12)))]


@pytest.mark.parametrize("dataset", list(Dataset))
def test_meaningless_suggestions_take_the_places_of_the_samples_own(dataset: Dataset) -> None:
    for sample in samples(dataset):
        played = as_played(sample, Mode.RANDOM, seed=0)
        for own, shown in zip(sample.options, played.options, strict=True):
            assert shown in meaningless(dataset) if own != world.REFUSAL else shown == own
        assert len(set(played.options)) == len(sample.options)


@pytest.mark.parametrize("dataset", list(Dataset))
def test_the_same_suggestions_are_drawn_again_with_the_same_seed(dataset: Dataset) -> None:
    for sample in samples(dataset):
        drawn = as_played(sample, Mode.RANDOM, seed=0)
        assert as_played(sample, Mode.RANDOM, seed=0) == drawn


@pytest.mark.parametrize("mode", [Mode.NORMAL, Mode.REFERENCE])
@pytest.mark.parametrize("dataset", list(Dataset))
def test_other_modes_leave_the_sample_as_it_is(dataset: Dataset, mode: Mode) -> None:
    for sample in samples(dataset):
        assert as_played(sample, mode, seed=0) is sample


def test_suggestions_vary_with_the_sample() -> None:
    drawn = {as_played(sample, Mode.RANDOM, seed=0).options for sample in samples(Dataset.ROD)}
    assert len(drawn) > 3


def test_suggestions_vary_with_the_seed() -> None:
    sample = samples(Dataset.ROD)[0]
    assert len({as_played(sample, Mode.RANDOM, seed).options for seed in range(12)}) > 3
