"""Baseline policies against what can be worked out: bounds by hand, chance level by enumeration.

The policy ``random`` picks any option of the list; it has nothing to do with the mode ``random``.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from fakes import world

from proactivebench_tasks.baselines.policies import POLICIES
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode, Stop, Summary
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset

TURNS = range(1, 7)  # the world's rows 0 to 5 have this many turns, those of ROD one more


def rows(dataset: Dataset) -> list[dict[str, Any]]:
    return world.rows(dataset, list(range(6)))


def start(dataset: Dataset, row: dict[str, Any], mode: Mode = Mode.NORMAL) -> Episode:
    return Episode(parse_sample(dataset, row), BUILTIN, mode)


def play(episode: Episode, policy: str, rng: random.Random | None = None) -> Summary:
    rng = rng or random.Random(0)
    while not episode.done:
        episode.step(POLICIES[policy](episode, rng))
    return episode.summary()


def summaries(dataset: Dataset, policy: str, mode: Mode = Mode.NORMAL) -> list[Summary]:
    return [play(start(dataset, row, mode), policy) for row in rows(dataset)]


# Bounds


@pytest.mark.parametrize("mode", [Mode.NORMAL, Mode.REFERENCE])
@pytest.mark.parametrize("dataset", Dataset)
def test_oracle_solves_every_sample(dataset: Dataset, mode: Mode) -> None:
    assert all(summary.correct_prediction for summary in summaries(dataset, "oracle", mode))


@pytest.mark.parametrize("dataset", Dataset)
def test_oracle_asks_only_where_it_has_to(dataset: Dataset) -> None:
    wanted = 1 if dataset is Dataset.ROD else 0
    assert {summary.num_suggestions for summary in summaries(dataset, "oracle")} == {wanted}


@pytest.mark.parametrize("dataset", Dataset)
def test_always_asking_solves_nothing(dataset: Dataset) -> None:
    assert not any(s.correct_prediction for s in summaries(dataset, "always_ask"))


@pytest.mark.parametrize("dataset", Dataset)
def test_always_asking_uses_every_turn(dataset: Dataset) -> None:
    more = 1 if dataset is Dataset.ROD else 0
    asked = [summary.num_suggestions for summary in summaries(dataset, "always_ask")]
    assert asked == [turns + more - 1 for turns in TURNS]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("dataset", Dataset)
def test_refusing_ends_at_once_unsolved(dataset: Dataset, mode: Mode) -> None:
    for summary in summaries(dataset, "refuse", mode):
        assert (summary.num_turns, summary.correct_prediction) == (1, False)


def test_refusing_takes_the_refusal_from_the_list() -> None:
    for dataset in Dataset:
        episode = start(dataset, rows(dataset)[3])
        play(episode, "refuse")
        assert episode.turns[0].answer == world.REFUSAL


def test_refusing_without_a_refusal_on_the_list_is_no_option() -> None:
    row = rows(Dataset.QUICKDRAW)[0] | {"options": ["Add details."]}
    episode = start(Dataset.QUICKDRAW, row)
    play(episode, "refuse")
    assert episode.turns[0].stop is Stop.MISMATCH


@pytest.mark.parametrize("dataset", Dataset)
def test_answering_at_once_solves_all_that_can_be_answered_at_once(dataset: Dataset) -> None:
    for summary in summaries(dataset, "reactive"):
        assert summary.num_turns == 1
        assert summary.correct_prediction is (dataset is not Dataset.ROD)


@pytest.mark.parametrize("policy", ["oracle", "always_ask", "refuse", "reactive"])
def test_only_the_random_policy_draws(policy: str) -> None:
    rng = random.Random(0)
    before = rng.getstate()
    play(start(Dataset.CHANGEIT, rows(Dataset.CHANGEIT)[5]), policy, rng)
    assert rng.getstate() == before


# Chance


def leaves(
    dataset: Dataset, row: dict[str, Any], mode: Mode, answers: str = ""
) -> Iterator[tuple[Fraction, Summary]]:
    """All ways an episode can go when each option shown is as likely as the others, by their
    letters, with their probabilities."""
    episode = start(dataset, row, mode)
    for answer in answers:
        episode.step(answer)
    if episode.done:
        yield Fraction(1), episode.summary()
        return
    letters = "ABCDEFGHI"[: len(episode.observe().options)]
    for letter in letters:
        for probability, summary in leaves(dataset, row, mode, answers + letter):
            yield probability / len(letters), summary


def moments(values: list[tuple[Fraction, int]]) -> tuple[Fraction, Fraction]:
    """Mean and variance."""
    mean = sum((p * value for p, value in values), Fraction())
    return mean, sum((p * (value - mean) ** 2 for p, value in values), Fraction())


@pytest.mark.parametrize("mode", [Mode.NORMAL, Mode.REFERENCE])
@pytest.mark.parametrize("dataset", Dataset)
@pytest.mark.parametrize("metric", ["correct_prediction", "num_suggestions"])
def test_random_policy_reaches_the_chance_level(dataset: Dataset, mode: Mode, metric: str) -> None:
    seeds = 250
    mean, variance, played = Fraction(), Fraction(), 0
    for row in rows(dataset):
        ways = list(leaves(dataset, row, mode))
        assert sum(probability for probability, _ in ways) == 1
        row_mean, row_variance = moments([(p, getattr(summary, metric)) for p, summary in ways])
        mean += row_mean
        variance += row_variance
        for seed in range(seeds):
            summary = play(start(dataset, row, mode), "random", random.Random(seed))
            played += getattr(summary, metric)
    error = float(variance * seeds) ** 0.5
    assert abs(played - seeds * float(mean)) <= 4 * error
    assert error < 60  # of 1500 episodes: the tolerance does not swallow everything


def test_enumeration_by_hand() -> None:
    # One turn, two suggestions, a refusal, four categories: one option of seven is right.
    one, two = rows(Dataset.VSOD)[:2]
    acc, _ = moments([(p, s.correct_prediction) for p, s in leaves(Dataset.VSOD, one, Mode.NORMAL)])
    assert acc == Fraction(1, 7)
    # Two turns: 1/7 now, or one of two suggestions and then 1/7.
    ways = list(leaves(Dataset.VSOD, two, Mode.NORMAL))
    acc, _ = moments([(p, s.correct_prediction) for p, s in ways])
    ps, _ = moments([(p, s.num_suggestions) for p, s in ways])
    assert (acc, ps) == (Fraction(1, 7) + Fraction(2, 7) * Fraction(1, 7), Fraction(2, 7))


def test_random_policy_takes_every_option_on_the_list() -> None:
    episode = start(Dataset.CHANGEIT, rows(Dataset.CHANGEIT)[5])  # rewinding is withdrawn
    answers = {POLICIES["random"](episode, random.Random(seed)) for seed in range(200)}
    assert answers == set(episode.observe().options)


def test_random_policy_is_a_function_of_its_source() -> None:
    episode = start(Dataset.VSOD, rows(Dataset.VSOD)[5])
    answers = [
        [POLICIES["random"](episode, rng) for _ in range(20)]
        for rng in (random.Random(1), random.Random(1))
    ]
    assert answers[0] == answers[1]


# Samples that offer nothing to ask for


@pytest.mark.parametrize("policy", ["oracle", "always_ask"])
def test_sample_without_suggestions_is_played_to_its_end(policy: str) -> None:
    row = rows(Dataset.ROD)[3] | {"options": [world.REFUSAL]}
    assert not play(start(Dataset.ROD, row), policy).correct_prediction
