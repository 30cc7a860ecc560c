"""Reach: exactly the pictures that playing a sample in every possible way shows."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import world

from proactivebench_tasks.environments import ENVIRONMENTS, parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.environments.reachable import pictures, states
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset, Sample


def sample(dataset: Dataset, number: int = 4, **fields: Any) -> Sample:
    return parse_sample(dataset, world.rows(dataset, list(range(number + 1)))[number] | fields)


def played(dataset: Dataset, it: Sample, mode: Mode) -> set[str]:
    """The pictures of all episodes, by playing each of them from the start."""
    shown: set[str] = set()

    def play(history: list[str]) -> None:
        episode = Episode(it, BUILTIN, mode=mode)
        for answer in history:
            episode.step(answer)
        if episode.done:
            return
        shown.add(episode.observe().image)
        for option in episode.correct_suggestions:
            play([*history, option])

    play([])
    return shown


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("dataset", list(Dataset))
def test_all_that_playing_shows_and_nothing_else(dataset: Dataset, number: int) -> None:
    it = sample(dataset, number)
    normal = ENVIRONMENTS[dataset](it, Mode.NORMAL)
    assert {normal.image(state) for state in states(normal)} == played(dataset, it, Mode.NORMAL)
    shown = played(dataset, it, Mode.NORMAL) | played(dataset, it, Mode.REFERENCE)
    assert pictures(dataset, it) >= shown


def test_reference_picture_is_one_of_them() -> None:
    it = sample(Dataset.IMAGENETC, 3, reference_image=0, first_image=3)
    assert f"{Dataset.IMAGENETC.value}/3_0.png" in pictures(Dataset.IMAGENETC, it)


def test_views_that_come_twice_do_not_end_the_way() -> None:
    it = sample(Dataset.MVPN, 3, valid_images=[2, 2, 2, 7])
    assert f"{Dataset.MVPN.value}/3_1_0007.png" in pictures(Dataset.MVPN, it)


def test_step_of_a_video_is_kept() -> None:
    it = sample(Dataset.CHANGEIT, first_image=4, num_images=20, step_size=3, max_steps=99)
    images = {path.split("_")[-1] for path in pictures(Dataset.CHANGEIT, it)}
    assert images == {f"{number}.png" for number in (0, 1, 4, 7, 10, 13, 16, 19)}


def test_last_turn_is_the_last() -> None:
    it = sample(Dataset.CHANGEIT, first_image=10, num_images=20, step_size=1, max_steps=3)
    images = {path.split("_")[-1] for path in pictures(Dataset.CHANGEIT, it)}
    assert images == {f"{number}.png" for number in (0, 8, 9, 10, 11, 12)}  # 0: the reference


def test_broken_file_of_rod_is_never_asked_for() -> None:
    stem = "ROD/natural_bluebl_greenr-banana-s"
    it = sample(Dataset.ROD, num_images=9, image_template=stem + "{image}.png", first_image=4)
    found = pictures(Dataset.ROD, it)
    assert stem + "6.png" not in found
    assert {stem + "5.png", stem + "7.png"} <= found


def test_long_videos_are_enumerated_fast() -> None:
    it = sample(Dataset.VSOD, num_images=2000)
    assert len(pictures(Dataset.VSOD, it)) == 2000


def test_suggestion_that_leads_nowhere_is_an_error() -> None:
    it = sample(Dataset.QUICKDRAW, options=["Sing a song."])
    with pytest.raises(DataError, match="'Sing a song\\.' names no action"):
        pictures(Dataset.QUICKDRAW, it)
