"""Conformance: our decisions are those that the published package took, as recorded.

``tests/vectors`` holds episodes that the published package played, and verdicts of its judge. All
of them agree with ours; of a recording that is altered, the altered field is found and named.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proactivebench_tasks.conformance import Difference, replay
from proactivebench_tasks.environments import ENVIRONMENTS, parse_sample
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Dataset

VECTORS = Path(__file__).parent / "vectors"
EPISODES = VECTORS / "episodes.jsonl.gz"

STEP_FIELDS = ["image", "crop", "options", "action_verdict", "category_verdict", "stop"]
HASHES = ["prompt_sha256", "hint_prompt_sha256", "mcqa_prompt_sha256"]
EPISODE_FIELDS = [
    "open_ended_answers",
    "num_turns",
    "correct_prediction",
    "reached_max_steps",
    "image_ids",
]


def recorded(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def vectors() -> list[dict[str, Any]]:
    return recorded(EPISODES)


@pytest.fixture
def record(vectors: list[dict[str, Any]]) -> dict[str, Any]:
    """A recorded episode of COCO with three turns or more, in normal mode."""
    return copy.deepcopy(
        next(
            each
            for each in vectors
            if each["dataset"] == "coco2014" and each["mode"] == "normal" and each["num_turns"] > 2
        )
    )


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(*records: object) -> Path:
        path = tmp_path / "episodes.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in records))
        return path

    return write


def other(value: Any) -> Any:
    """A value of the same kind that is not this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "?"
    return [other(value[0]), *value[1:]]


# Agreement


def test_all_recorded_episodes_agree_without_wording() -> None:
    outcome = replay(EPISODES, wording=False)
    assert (outcome.episodes, outcome.differences) == (420, ())


@pytest.mark.network
def test_all_recorded_episodes_agree_with_the_official_wording() -> None:
    outcome = replay(EPISODES)
    assert (outcome.episodes, outcome.differences) == (420, ())


@pytest.mark.parametrize("number", range(70))
def test_recorded_open_ended_answers_are_ours(number: int) -> None:
    row = recorded(VECTORS / "judge.jsonl.gz")[number]
    dataset = Dataset(row["dataset"])
    environment = ENVIRONMENTS[dataset](parse_sample(dataset, row["sample"]))
    assert environment.open_ended_answers() == row["valid_answers"]


def test_all_recorded_verdicts_agree_without_wording() -> None:
    outcome = replay(VECTORS / "judge.jsonl.gz", wording=False)
    assert (outcome.episodes, outcome.verdicts, outcome.differences) == (0, 70, ())


@pytest.mark.network
def test_all_recorded_verdicts_agree_with_the_official_wording() -> None:
    outcome = replay(VECTORS / "judge.jsonl.gz")
    assert (outcome.verdicts, outcome.differences) == (70, ())


@pytest.mark.parametrize("field", ["valid_answers", "verdict"])
def test_altered_field_of_a_verdict_is_found(write: Callable[..., Path], field: str) -> None:
    row = recorded(VECTORS / "judge.jsonl.gz")[0]
    ours = row[field]
    theirs = {**ours, "aggregate": 1 - ours["aggregate"]} if field == "verdict" else other(ours)
    (difference,) = replay(write(row | {field: theirs}), wording=False).differences
    assert difference == Difference(row["dataset"], 1, None, field, theirs, ours)


def test_every_dataset_and_mode_is_recorded(vectors: list[dict[str, Any]]) -> None:
    assert {(each["dataset"], each["mode"]) for each in vectors} >= {
        (dataset.value, mode) for dataset in Dataset for mode in ("normal", "reference")
    }


def test_plain_file_is_read_like_a_packed_one(
    vectors: list[dict[str, Any]], write: Callable[..., Path]
) -> None:
    assert replay(write(*vectors[:30]), wording=False).episodes == 30


def test_blank_lines_are_passed_over_and_counted_as_lines(
    record: dict[str, Any], tmp_path: Path
) -> None:
    record["num_turns"] += 1
    (tmp_path / "e.jsonl").write_text(f"\n \n{json.dumps(record)}\n\n")
    outcome = replay(tmp_path / "e.jsonl", wording=False)
    assert (outcome.episodes, outcome.differences[0].line) == (1, 3)


# Differences


@pytest.mark.parametrize("field", STEP_FIELDS)
@pytest.mark.parametrize("step", [0, 1])
def test_altered_field_of_a_step_is_found(
    record: dict[str, Any], write: Callable[..., Path], field: str, step: int
) -> None:
    ours = record["steps"][step][field]
    record["steps"][step][field] = other(ours)
    (difference,) = replay(write(record), wording=False).differences
    assert difference == Difference("coco2014", 1, step, field, other(ours), ours)


@pytest.mark.network
@pytest.mark.parametrize("field", HASHES)
def test_altered_hash_is_found(
    record: dict[str, Any], write: Callable[..., Path], field: str
) -> None:
    ours = record["steps"][1][field]
    record["steps"][1][field] = other(ours)
    (difference,) = replay(write(record)).differences
    assert difference == Difference("coco2014", 1, 1, field, other(ours), ours)


def test_altered_hash_is_not_looked_at_without_wording(
    record: dict[str, Any], write: Callable[..., Path]
) -> None:
    record["steps"][0] |= dict.fromkeys(HASHES, "?")
    assert replay(write(record), wording=False).differences == ()


@pytest.mark.parametrize("field", EPISODE_FIELDS)
def test_altered_field_of_an_episode_is_found(
    record: dict[str, Any], write: Callable[..., Path], field: str
) -> None:
    ours = record[field]
    record[field] = other(ours)
    (difference,) = replay(write(record), wording=False).differences
    assert difference == Difference("coco2014", 1, None, field, other(ours), ours)


def test_open_ended_answers_outside_normal_mode_are_found(
    vectors: list[dict[str, Any]], write: Callable[..., Path]
) -> None:
    record = next(each for each in vectors if each["mode"] == "reference")
    outcome = replay(write(record | {"open_ended_answers": "Move it."}), wording=False)
    assert [difference.field for difference in outcome.differences] == ["open_ended_answers"]


def test_every_field_of_the_recording_is_compared(record: dict[str, Any]) -> None:
    given = {"dataset", "mode", "sample", "steps"}
    assert set(record) == given | set(EPISODE_FIELDS)
    assert set(record["steps"][0]) == {"answer", *STEP_FIELDS, *HASHES}


def test_altered_answer_is_found_in_its_step(
    record: dict[str, Any], write: Callable[..., Path]
) -> None:
    record["steps"][1]["answer"] = "no option at all"
    (difference,) = replay(write(record), wording=False).differences
    assert (difference.step, difference.field) == (1, "action_verdict")


def test_step_too_many_is_found(record: dict[str, Any], write: Callable[..., Path]) -> None:
    steps = record["steps"]
    record["steps"] = [*steps, steps[-1]]
    (difference,) = replay(write(record), wording=False).differences
    assert (difference.step, difference.field) == (len(steps), "stop")


def test_step_too_few_is_found(record: dict[str, Any], write: Callable[..., Path]) -> None:
    turns = record["num_turns"]
    record["steps"] = record["steps"][:-1]
    (difference,) = replay(write(record), wording=False).differences
    assert difference == Difference("coco2014", 1, None, "num_turns", turns, turns - 1)


def test_each_differing_episode_is_named_once_with_its_line(
    vectors: list[dict[str, Any]], write: Callable[..., Path]
) -> None:
    records = copy.deepcopy(vectors[:6])
    for number in (1, 4):
        records[number] |= {"num_turns": 9, "image_ids": []}
    outcome = replay(write(*records), wording=False)
    assert outcome.episodes == 6
    assert [(d.line, d.field) for d in outcome.differences] == [(2, "num_turns"), (5, "num_turns")]


def test_difference_reads_as_a_place_and_two_values() -> None:
    in_step = Difference("ChangeIt", 3, 1, "stop", False, True)
    assert str(in_step) == "ChangeIt, line 3, step 1, stop: recorded False, ours True"
    of_all = Difference("ChangeIt", 3, None, "num_turns", 2, 1)
    assert str(of_all) == "ChangeIt, line 3, num_turns: recorded 2, ours 1"


# Files that are no recording


def message(path: Path) -> str:
    with pytest.raises(DataError) as error:
        replay(path, wording=False)
    return str(error.value)


@pytest.mark.parametrize("name", ["gone.jsonl", "gone.jsonl.gz"])
def test_missing_file_is_named(tmp_path: Path, name: str) -> None:
    assert message(tmp_path / name).startswith(f"{tmp_path / name}: cannot be read")


def test_folder_is_named(tmp_path: Path) -> None:
    assert message(tmp_path).startswith(f"{tmp_path}: cannot be read")


@pytest.mark.parametrize("content", ["{", "nonsense", '{"dataset": 1}}'])
def test_file_that_is_no_json_lines_is_named_with_the_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(content)
    assert message(path).startswith(f"{path}, line 1: not JSON: ")


def test_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"\xff\xfe\0")
    assert message(path).startswith(f"{path}: cannot be read: 'utf-8' codec can't decode")


def test_plain_file_that_says_it_is_packed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl.gz"
    path.write_text("{}")
    assert message(path).startswith(f"{path}: cannot be read")


@pytest.mark.parametrize(
    "content",
    [
        "3",
        "null",
        "[]",
        '"row"',
        "{}",
        '{"dataset": "MVP-N"}',
        '{"dataset": "MVP-N", "sample": 3}',
    ],
)
def test_line_that_is_no_episode_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text("\n" + content)
    assert message(path).startswith(f"{path}, line 2: ")


@pytest.mark.parametrize("field", ["dataset", "mode", "sample", "steps", *EPISODE_FIELDS])
def test_episode_without_a_field_is_named(
    record: dict[str, Any], write: Callable[..., Path], field: str
) -> None:
    del record[field]
    path = write(record)
    assert message(path) == f"{path}, line 1: no recorded episode (KeyError({field!r}))"


@pytest.mark.parametrize("field", ["answer", *STEP_FIELDS])
def test_step_without_a_field_is_named(
    record: dict[str, Any], write: Callable[..., Path], field: str
) -> None:
    del record["steps"][0][field]
    path = write(record)
    assert message(path) == f"{path}, line 1: no recorded episode (KeyError({field!r}))"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"dataset": "COCO"}, "unknown dataset 'COCO'"),
        ({"mode": "oracle"}, "oracle"),
        ({"steps": 3}, "no recorded episode"),
        ({"steps": [3]}, "no recorded episode"),
        ({"steps": [{"answer": None}]}, "no recorded episode"),
        ({"sample": {}}, "field 'id' is missing"),
    ],
)
def test_field_that_makes_no_sense_is_named_with_its_line(
    record: dict[str, Any], write: Callable[..., Path], fields: dict[str, Any], said: str
) -> None:
    path = write(record | fields)
    assert message(path).startswith(f"{path}, line 1: ")
    assert said in message(path)


@pytest.mark.parametrize("damage", ["torn", "overwritten"])
def test_damaged_packed_file_is_named(tmp_path: Path, damage: str) -> None:
    content = EPISODES.read_bytes()
    middle = len(content) // 2
    path = tmp_path / "e.jsonl.gz"
    rest = b"" if damage == "torn" else b"\xff" * 64 + content[middle + 64 :]
    path.write_bytes(content[:middle] + rest)
    assert message(path).startswith(f"{path}: ")


def test_line_that_is_no_json_is_named(record: dict[str, Any], write: Callable[..., Path]) -> None:
    path = write(record, record)
    path.write_text(path.read_text() + '{"dataset": \n')
    assert message(path).startswith(f"{path}, line 3: not JSON: ")
