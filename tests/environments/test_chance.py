"""Chance level: worked out exactly, it is the same as what playing every list of answers gives."""

from __future__ import annotations

from fractions import Fraction

import pytest
from fakes import world

from proactivebench_tasks.environments import chance, parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset, Sample


def by_playing(sample: Sample, mode: Mode) -> tuple[Fraction, Fraction]:
    """Probability of being solved and expected turns, by playing every path of answers."""

    def from_here(answers: list[str]) -> tuple[Fraction, Fraction]:
        episode = Episode(sample, BUILTIN, mode)
        for answer in answers:
            episode.step(answer)
        if episode.done:
            return Fraction(episode.summary().correct_prediction), Fraction(len(answers))
        options = episode.observe().options
        paths = [from_here([*answers, option]) for option in options]
        return (
            sum((p[0] for p in paths), Fraction()) / len(options),
            sum((p[1] for p in paths), Fraction()) / len(options),
        )

    return from_here([])


@pytest.mark.parametrize("mode", [Mode.NORMAL, Mode.REFERENCE])
@pytest.mark.parametrize("dataset", list(Dataset))
def test_chance_equals_playing_every_path(dataset: Dataset, mode: Mode) -> None:
    for row in world.rows(dataset, list(range(4))):
        sample = parse_sample(dataset, row)
        solved, turns = by_playing(sample, mode)
        got = chance.of_sample(sample, mode)
        assert got.acc == pytest.approx(100 * float(solved))
        assert got.ps == pytest.approx(float(turns) - 1)


def test_reference_chance_is_one_in_the_number_of_categories() -> None:
    sample = parse_sample(Dataset.ROD, world.rows(Dataset.ROD, [1])[0])
    assert chance.of_sample(sample, Mode.REFERENCE) == chance.Chance(25.0, 0.0)


@pytest.mark.parametrize(
    ("dataset", "fields"),
    [
        (Dataset.VSOD, {"num_images": 5000}),
        (Dataset.QUICKDRAW, {"num_images": 5000}),
        (Dataset.COCO, {"granularity": 5000}),
        (Dataset.CHANGEIT, {"num_images": 9001, "first_image": 4500, "max_steps": 5000}),
    ],
)
def test_chance_of_a_sample_of_thousands_of_turns_is_that_of_an_endless_one(
    dataset: Dataset, fields: dict[str, int]
) -> None:
    sample = parse_sample(dataset, world.rows(dataset, [1])[0] | fields)
    episode = Episode(sample, BUILTIN)
    asking = len(episode.correct_suggestions) / len(episode.options)
    got = chance.of_sample(sample)
    assert got.acc == pytest.approx(100 / len(episode.options) / (1 - asking))
    assert got.ps == pytest.approx(asking / (1 - asking))


def test_random_mode_weighs_every_draw() -> None:
    """A ChangeIt sample of two turns that starts at the first image of its video: of the two moves
    that can be drawn, one leaves the video and so ends the episode."""
    row = world.rows(Dataset.CHANGEIT, [0, 1])[1]
    assert (row["num_images"], row["step_size"], row["max_steps"]) == (3, 1, 2)
    got = chance.of_sample(parse_sample(Dataset.CHANGEIT, row), Mode.RANDOM)
    # Of 7 options 1 is right and 2 are suggestions. Half of the moves that are drawn after a
    # suggestion stay in the video; the second turn is then like the first.
    again = Fraction(2, 7) * Fraction(1, 2)
    assert got.acc == pytest.approx(100 * float(Fraction(1, 7) * (1 + again)))
    assert got.ps == pytest.approx(float(again))


def test_the_mean_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        chance.mean([])
