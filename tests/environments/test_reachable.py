"""Reachable images: exactly those that are shown when a sample is played in all possible ways."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import world

from proactivebench_tasks.environments import ENVIRONMENTS, parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.environments.reachable import image_paths, states
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset, Sample


def sample_of(dataset: Dataset, number: int = 4, **fields: Any) -> Sample:
    return parse_sample(dataset, world.rows(dataset, list(range(number + 1)))[number] | fields)


def shown_by_playing(sample: Sample, mode: Mode) -> set[str]:
    """Paths of the images of all episodes, by playing each of them from the start."""
    shown: set[str] = set()

    def play(history: list[str]) -> None:
        episode = Episode(sample, BUILTIN, mode=mode)
        for answer in history:
            episode.step(answer)
        if episode.done:
            return
        shown.add(episode.observe().image_path)
        for option in episode.correct_suggestions:
            play([*history, option])

    play([])
    return shown


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("dataset", list(Dataset))
def test_all_that_playing_shows_and_nothing_else(dataset: Dataset, number: int) -> None:
    sample = sample_of(dataset, number)
    normal = ENVIRONMENTS[dataset](sample, Mode.NORMAL)
    shown = shown_by_playing(sample, Mode.NORMAL)
    assert {normal.image_path(state) for state in states(normal)} == shown
    assert image_paths(sample) >= shown | shown_by_playing(sample, Mode.REFERENCE)


def test_reference_image_is_one_of_them() -> None:
    sample = sample_of(Dataset.IMAGENETC, 3, reference_image=0, first_image=3)
    assert f"{Dataset.IMAGENETC.value}/3_0.png" in image_paths(sample)


def test_image_that_is_shown_repeatedly_does_not_end_the_search() -> None:
    sample = sample_of(Dataset.MVPN, 3, valid_images=[2, 2, 2, 7])
    assert f"{Dataset.MVPN.value}/3_1_0007.png" in image_paths(sample)


def test_videos_are_walked_through_by_their_step_size() -> None:
    sample = sample_of(Dataset.CHANGEIT, first_image=4, num_images=20, step_size=3, max_steps=99)
    names = {path.split("_")[-1] for path in image_paths(sample)}
    assert names == {f"{number}.png" for number in (0, 1, 4, 7, 10, 13, 16, 19)}


def test_images_beyond_the_last_turn_are_not_reachable() -> None:
    sample = sample_of(Dataset.CHANGEIT, first_image=10, num_images=20, step_size=1, max_steps=3)
    names = {path.split("_")[-1] for path in image_paths(sample)}
    assert names == {f"{number}.png" for number in (0, 8, 9, 10, 11, 12)}  # 0 is the reference


def test_broken_file_of_rod_is_never_asked_for() -> None:
    stem = "ROD/natural_bluebl_greenr-banana-s"
    sample = sample_of(
        Dataset.ROD, num_images=9, image_template=stem + "{image}.png", first_image=4
    )
    found = image_paths(sample)
    assert stem + "6.png" not in found
    assert {stem + "5.png", stem + "7.png"} <= found


def test_long_videos_are_enumerated_fast() -> None:
    sample = sample_of(Dataset.VSOD, num_images=2000)
    assert len(image_paths(sample)) == 2000


def test_suggestion_that_leads_nowhere_is_an_error() -> None:
    sample = sample_of(Dataset.QUICKDRAW, options=["Sing a song."])
    with pytest.raises(DataError, match="'Sing a song\\.' names no action"):
        image_paths(sample)
