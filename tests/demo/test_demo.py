"""The bundled demo data: its rows, its images, and that ``make`` draws exactly these.

What can be shown of a row is worked out by a small model of the rules in this file, which shares no
code with the environments of the package; a test holds that the two agree.
"""

from __future__ import annotations

import json
import string
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops

from proactivebench_tasks.demo import DATA
from proactivebench_tasks.demo.case import Case
from proactivebench_tasks.demo.draw import Drawing
from proactivebench_tasks.demo.make import SAMPLES, SCENES, make
from proactivebench_tasks.demo.scenes.changeit import SAMPLES_PER_VIDEO
from proactivebench_tasks.environments import ENVIRONMENTS, parse_sample
from proactivebench_tasks.environments.reachable import states
from proactivebench_tasks.protocol.samples import Dataset

Row = Mapping[str, Any]
History = tuple[str, ...]

SPLITS = ("test", "train")
EVERY = [(split, dataset) for split in SPLITS for dataset in Dataset]
every = pytest.mark.parametrize(
    ("split", "dataset"), EVERY, ids=[f"{s}-{d.task}" for s, d in EVERY]
)

FRAGMENTS: Mapping[Dataset, tuple[tuple[str, ...], ...]] = {  # one tuple of words an action
    Dataset.ROD: (("to the left",), ("to the right",)),
    Dataset.VSOD: (("rewind the video.",), ("wait for the",)),
    Dataset.MVPN: (("rotate", "view", "angle", "orientation", "different"),),
    Dataset.IMAGENETC: (
        ("brightness",), ("contrast",), ("saturation",), ("deblur",), ("denoise",),
        ("compression",), ("resolution",), ("artifacts",),
    ),
    Dataset.QUICKDRAW: (("details", "quickdraw", "drawing", "sketch"),),
    Dataset.CHANGEIT: (("rewind the video.",), ("wait for the",)),
    Dataset.COCO: (("to the left",), ("to the right",), ("up",), ("down",), ("farther",)),
}  # fmt: skip


def rows(split: str, dataset: Dataset, data: Path = DATA) -> list[Row]:
    text = (data / split / dataset.jsonl).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def played(split: str, dataset: Dataset) -> list[Row]:
    """The rows that a loader keeps."""
    return [row for row in rows(split, dataset) if row.get("strong_occlusions", True)]


def actions(dataset: Dataset, text: str) -> list[int]:
    """Indices of the actions that a suggestion names."""
    groups = enumerate(FRAGMENTS[dataset])
    return [i for i, words in groups if any(word in text.lower() for word in words)]


def is_refusal(text: str) -> bool:
    return "cannot" in text.lower() or "do not" in text.lower()


# -- a small model of the rules: what a state shows follows from the accepted suggestions ----------


@dataclass(frozen=True)
class View:
    """What one state of an episode shows, and what is right in it."""

    image_path: str
    box: tuple[float, float, float, float] | None
    options: tuple[str, ...]
    correct: tuple[str, ...]
    answerable: bool = True


def max_turns(dataset: Dataset, row: Row) -> int:
    if dataset is Dataset.CHANGEIT:
        return int(row["max_steps"])
    if dataset is Dataset.COCO:
        ways = row["direction"].split("_")
        return int(row["granularity"]) * len(ways) + int(row["direction"] == "zoom")
    return int(row["num_images"])


def look(dataset: Dataset, row: Row, history: History) -> View:
    taken = Counter(action for text in history for action in actions(dataset, text))
    options = tuple(row["options"])
    suggestions = tuple(option for option in options if not is_refusal(option))
    template, first, count = row["image_template"], row["first_image"], row["num_images"]
    moved, box = taken[1] - taken[0], None
    if dataset is Dataset.ROD:
        path = template.format(image=(first + moved) % count)
        return View(path, box, options, suggestions, bool(history))
    if dataset is Dataset.VSOD:
        path = template.format(image=f"{(first + moved) % count:04d}")
    elif dataset is Dataset.CHANGEIT:
        step = row["step_size"]
        frame = first + moved * step
        assert 0 <= frame < count, f"sample {row['id']}: a move leaves the video"
        gone = "Rewind" if frame < step else "Wait for the" if frame + step >= count else None
        options = tuple(option for option in options if not (gone and gone in option))
        path = template.format(image=frame)
    elif dataset is Dataset.COCO:
        box, limited = _crop(row, taken)
        options = tuple(o for o in options if not limited.intersection(actions(dataset, o)))
        path = template
    else:
        if len(history) + 1 == count:
            suggestions = ()
        elif dataset is Dataset.IMAGENETC:
            suggestions = (row["quality_answer"],)
        if dataset is Dataset.IMAGENETC:
            path = template.format(level=first - len(history))
        elif dataset is Dataset.QUICKDRAW:
            path = template.format(image=f"{first + len(history):04d}")
        else:
            number = row["valid_images"][len(history)] if history else first
            path = template.format(
                image=f"{number:04d}", informative=int(len(history) + 1 == count)
            )
    return View(path, box, options, tuple(o for o in suggestions if o in options))


def _crop(row: Row, taken: Mapping[int, int]) -> tuple[tuple[float, float, float, float], set[int]]:
    """The box, and the actions that have reached their limit."""
    ways, crop = row["direction"].split("_"), row["crop"]
    zoom = row["direction"] == "zoom"
    turns = row["granularity"] + zoom
    across = row["horizontal_step"] * (1 + taken[0] + taken[1] + taken[4])
    along = row["vertical_step"] * (1 + taken[2] + taken[3] + taken[4])
    box = (
        crop["left"] - across * (zoom or "left" in ways),
        crop["top"] - along * (zoom or "up" in ways),
        crop["width"] + across * (zoom or "right" in ways) + crop["left"] * zoom,
        crop["height"] + along * (zoom or "down" in ways) + crop["top"] * zoom,
    )
    if zoom:
        return box, {4} if across == row["horizontal_step"] * turns else set()
    limited = set()
    if across >= row["horizontal_step"] * turns * bool({"left", "right"}.intersection(ways)):
        limited |= {0, 1}
    if along >= row["vertical_step"] * turns * bool({"up", "down"}.intersection(ways)):
        limited |= {2, 3}
    return box, limited


def views(dataset: Dataset, row: Row, history: History = ()) -> Iterator[View]:
    """Every state of every episode that accepted suggestions can lead to."""
    view = look(dataset, row, history)
    yield view
    if len(history) + 1 < max_turns(dataset, row):
        for option in view.correct:
            yield from views(dataset, row, (*history, option))


def solved_by_letter(dataset: Dataset, row: Row, letter: int) -> bool:
    """Whether one who says the same letter in every turn solves the sample."""
    history: History = ()
    while len(history) < max_turns(dataset, row):
        view = look(dataset, row, history)
        if letter >= len(view.options):
            category = row["categories"][letter - len(view.options) :][:1]
            return view.answerable and category == [row["answer"]]
        if view.options[letter] not in view.correct:
            return False
        history = (*history, view.options[letter])
    return False


def reference(dataset: Dataset, row: Row) -> str:
    number = row["reference_image"]
    padded = dataset in (Dataset.VSOD, Dataset.MVPN, Dataset.QUICKDRAW)
    image = f"{number:04d}" if padded else number
    return str(row["image_template"].format(image=image, level=number, informative=1))


# -- rows -----------------------------------------------------------------------------------------


@every
def test_every_row_is_a_valid_sample(split: str, dataset: Dataset) -> None:
    for row in rows(split, dataset):
        sample = parse_sample(dataset, row)
        assert sample.model_dump(mode="json") == row  # nothing is ignored, and nothing changed


@every
def test_a_split_has_its_number_of_samples(split: str, dataset: Dataset) -> None:
    assert len(played(split, dataset)) == SAMPLES[split] >= (16 if split == "test" else 8)


def test_one_test_row_is_there_for_the_loader_to_leave_out() -> None:
    weak = [row for row in rows("test", Dataset.VSOD) if not row["strong_occlusions"]]
    assert len(weak) == 1


@every
def test_options_are_one_refusal_and_suggestions_of_one_action_each(
    split: str, dataset: Dataset
) -> None:
    for row in rows(split, dataset):
        suggestions = [option for option in row["options"] if not is_refusal(option)]
        assert suggestions and len(row["options"]) == len(set(row["options"]))
        assert len(row["options"]) == len(suggestions) + 1
        assert all(len(actions(dataset, option)) == 1 for option in suggestions), row["options"]


@every
def test_refusals_and_categories_vary_in_position(split: str, dataset: Dataset) -> None:
    kept = played(split, dataset)
    assert len({[is_refusal(o) for o in row["options"]].index(True) for row in kept}) > 1
    positions = Counter(row["categories"].index(row["answer"]) for row in kept)
    assert set(positions.values()) == {len(kept) // 4}


@every
def test_categories_are_four_different_sentences(split: str, dataset: Dataset) -> None:
    for row in rows(split, dataset):
        assert len(set(row["categories"])) == len(row["categories"]) == 4
        assert all(category.endswith(".") for category in row["categories"])


def test_a_photo_has_wrong_repairs_to_choose_from() -> None:
    for split in SPLITS:
        for row in rows(split, Dataset.IMAGENETC):
            assert row["quality_answer"] in row["options"]
            assert len(row["options"]) >= 4


@every
def test_episodes_differ_in_length(split: str, dataset: Dataset) -> None:
    lengths = {max_turns(dataset, row) for row in rows(split, dataset)}
    assert len(lengths) >= 3 and min(lengths) >= 2 and max(lengths) <= 8


@pytest.mark.parametrize("split", SPLITS)
def test_a_fixed_letter_solves_about_as_many_as_chance(split: str) -> None:
    for letter in range(len(string.ascii_uppercase)):
        shares = []
        for dataset in Dataset:
            solved = [solved_by_letter(dataset, row, letter) for row in played(split, dataset)]
            shares.append(sum(solved) / len(solved))
        assert max(shares) <= 0.4, (string.ascii_uppercase[letter], shares)
        assert sum(shares) / len(shares) <= 0.3


@pytest.mark.parametrize("dataset", Dataset, ids=lambda dataset: dataset.task)
def test_splits_share_no_id_and_no_thing(dataset: Dataset) -> None:
    both = [rows(split, dataset) for split in SPLITS]
    ids = [row["id"] for split in both for row in split]
    assert len(ids) == len(set(ids))
    test, train = ({name for row in split for name in row["categories"]} for split in both)
    assert not test & train


# -- images ---------------------------------------------------------------------------------------


@every
def test_engine_shows_what_the_model_of_the_rules_says(split: str, dataset: Dataset) -> None:
    for row in rows(split, dataset):
        environment = ENVIRONMENTS[dataset](parse_sample(dataset, row))
        shown = set()
        for state in states(environment):
            crop = environment.crop(state)
            box = (crop.left, crop.top, crop.right, crop.bottom) if crop else None
            shown.add((environment.image_path(state), box))
        assert shown == {(view.image_path, view.box) for view in views(dataset, row)}


@every
def test_every_image_of_every_episode_is_there(split: str, dataset: Dataset) -> None:
    needed = set()
    for row in rows(split, dataset):
        needed |= {view.image_path for view in views(dataset, row)} | {reference(dataset, row)}
    folder = DATA / split / dataset.value
    shipped = {path.relative_to(DATA / split).as_posix() for path in folder.rglob("*.png")}
    assert needed <= shipped
    if dataset is not Dataset.CHANGEIT:  # a video is shipped whole
        assert needed == shipped


@pytest.mark.parametrize("split", SPLITS)
def test_every_crop_lies_inside_its_image(split: str) -> None:
    for row in rows(split, Dataset.COCO):
        width, height = Image.open(DATA / split / row["image_template"]).size
        for view in views(Dataset.COCO, row):
            assert view.box is not None
            left, top, right, bottom = view.box
            assert left >= 0 and right <= width and top >= 0 and bottom <= height, row["id"]
            assert right - left >= 28 and bottom - top >= 28, row["id"]


@pytest.mark.parametrize("split", SPLITS)
def test_a_video_shows_the_thing_before_the_turns_run_out(split: str) -> None:
    for row in rows(split, Dataset.CHANGEIT):
        folder = DATA / split / row["image_template"]
        frames = range(row["num_images"])
        assert all((folder.parent / f"{frame}.png").exists() for frame in frames)
        final = (DATA / split / reference(Dataset.CHANGEIT, row)).read_bytes()
        seen = {(DATA / split / v.image_path).read_bytes() for v in views(Dataset.CHANGEIT, row)}
        assert final in seen


@pytest.mark.parametrize("dataset", Dataset, ids=lambda dataset: dataset.task)
def test_splits_share_no_image(dataset: Dataset) -> None:
    def images(split: str) -> set[bytes]:
        paths = {v.image_path: v for row in rows(split, dataset) for v in views(dataset, row)}
        if dataset is Dataset.IMAGENETC:  # the worst level may be plain black or grey
            worst = {look(dataset, row, ()).image_path for row in rows(split, dataset)}
            paths = {path: view for path, view in paths.items() if path not in worst}
        return {Image.open(DATA / split / path).convert("RGB").tobytes() for path in paths}

    assert not images("test") & images("train")


def test_the_shipped_files_stay_small_and_few() -> None:
    sizes = [path.stat().st_size for path in DATA.rglob("*") if path.is_file()]
    assert sum(sizes) < 1_800_000
    assert len(sizes) < 1_200


# -- drawing --------------------------------------------------------------------------------------


class Empty(Case):
    """The same case with nothing to find in it."""

    @property
    def drawing(self) -> Drawing:
        return ()


@pytest.mark.parametrize("dataset", [Dataset.ROD, Dataset.VSOD, Dataset.MVPN, Dataset.CHANGEIT])
@pytest.mark.parametrize("split", SPLITS)
def test_the_first_image_hides_the_thing_and_the_reference_shows_it(
    split: str, dataset: Dataset
) -> None:
    per_stage = SAMPLES_PER_VIDEO if dataset is Dataset.CHANGEIT else 1
    for index in range(SAMPLES[split]):
        full = SCENES[dataset](Case(dataset, split, index, per_stage))
        empty = SCENES[dataset](Empty(dataset, split, index, per_stage))
        first, last = look(dataset, full.row, ()).image_path, reference(dataset, full.row)
        assert full.images[first].tobytes() == empty.images[first].tobytes(), first
        assert differing(full.images[last], empty.images[last]) > 0.005, last


@pytest.mark.parametrize("split", SPLITS)
def test_make_writes_the_shipped_rows_and_draws_the_shipped_images(
    split: str, tmp_path: Path
) -> None:
    make(tmp_path / split, split)
    for dataset in Dataset:
        assert rows(split, dataset, tmp_path) == rows(split, dataset), dataset
    shipped = {path.relative_to(DATA) for path in (DATA / split).rglob("*.png")}
    assert {path.relative_to(tmp_path) for path in tmp_path.rglob("*.png")} == shipped
    unlike = [
        path
        for path in shipped
        if differing(Image.open(tmp_path / path), Image.open(DATA / path)) > 0.001
    ]
    assert not unlike, "draw them anew: python -m proactivebench_tasks.demo.make FOLDER"


def test_the_comparison_tells_one_stroke_from_the_next() -> None:
    row = rows("test", Dataset.QUICKDRAW)[0]
    first, second = (
        Image.open(DATA / "test" / look(Dataset.QUICKDRAW, row, history).image_path)
        for history in ((), ("Add more details.",))
    )
    assert differing(first, second) > 0.001


def test_per_dataset_makes_the_first_few_of_the_same_samples(tmp_path: Path) -> None:
    make(tmp_path / "train", "train", per_dataset=1)
    for dataset in Dataset:
        assert rows("train", dataset, tmp_path) == rows("train", dataset)[:1]


def differing(one: Image.Image, other: Image.Image) -> float:
    """Share of pixels that differ by more than what another version of Pillow may round."""
    assert one.size == other.size
    grey = ImageChops.difference(one.convert("RGB"), other.convert("RGB")).convert("L")
    return sum(grey.histogram()[40:]) / (one.width * one.height)
