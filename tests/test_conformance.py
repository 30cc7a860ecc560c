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
from proactivebench_tasks.environments.episode import Episode
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


LAST_MOVES = VECTORS / "episodes_last_move.jsonl.gz"


def test_last_moves_out_of_the_video_agree_without_wording() -> None:
    assert str(replay(LAST_MOVES, wording=False)) == "6 episodes, 0 differ"


@pytest.mark.network
def test_last_moves_out_of_the_video_agree_with_the_official_wording() -> None:
    assert str(replay(LAST_MOVES)) == "6 episodes, 0 differ"


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


# Rows that cannot be compared


def without(record: dict[str, Any], name: str) -> dict[str, Any]:
    return {field: value for field, value in record.items() if field != name}


def in_step(record: dict[str, Any], step: int, **fields: object) -> dict[str, Any]:
    """A recorded episode with other fields in one of its steps."""
    steps = list(record["steps"])
    steps[step] = steps[step] | fields
    return record | {"steps": steps}


#: What is made of a recorded episode, and the place and a part of the reason that are then told.
UNPLAYABLE: dict[str, tuple[Callable[[dict[str, Any]], object], str, str]] = {
    "a number": (lambda r: 3, "line 2", "expected a JSON object, found 3"),
    "null": (lambda r: None, "line 2", "expected a JSON object, found None"),
    "a list": (lambda r: [r], "line 2", "expected a JSON object, found [{"),
    "a text": (lambda r: "row", "line 2", "expected a JSON object, found 'row'"),
    "empty": (lambda r: {}, "line 2", "field 'dataset' is missing"),
    "no dataset": (lambda r: without(r, "dataset"), "line 2", "field 'dataset' is missing"),
    "no mode": (lambda r: without(r, "mode"), "coco2014, line 2", "field 'mode' is missing"),
    "no sample": (lambda r: without(r, "sample"), "coco2014, line 2", "field 'sample' is missing"),
    "no steps": (lambda r: without(r, "steps"), "coco2014, line 2", "field 'steps' is missing"),
    "unknown dataset": (lambda r: r | {"dataset": "COCO"}, "COCO, line 2", "unknown dataset"),
    "dataset of no text": (lambda r: r | {"dataset": [1]}, "line 2", "unknown dataset [1]"),
    "unknown mode": (lambda r: r | {"mode": "oracle"}, "coco2014, line 2", "'oracle'"),
    "sample of no fields": (lambda r: r | {"sample": {}}, "coco2014, line 2", "'id' is missing"),
    "sample at fault": (
        lambda r: r | {"sample": r["sample"] | {"granularity": 0}},
        "coco2014, line 2",
        "field 'granularity'",
    ),
    "sample of another dataset": (
        lambda r: r | {"dataset": "ChangeIt"},
        "ChangeIt, line 2",
        "field 'step_size' is missing",
    ),
    "steps that are a number": (lambda r: r | {"steps": 3}, "coco2014, line 2", "TypeError"),
    "a step that is a number": (
        lambda r: r | {"steps": [3]},
        "coco2014, line 2, step 0",
        "expected a JSON object, found 3",
    ),
    "an answer that is no text": (
        lambda r: in_step(r, 1, answer=None),
        "coco2014, line 2, step 1",
        "field 'answer': expected a text, found None",
    ),
    "a suggestion without an action": (
        lambda r: in_step(
            r | {"sample": r["sample"] | {"options": ["Whistle."]}}, 0, answer="Whistle."
        ),
        "coco2014, line 2, step 0",
        "suggestion 'Whistle.' names no action",
    ),
    "a verdict alone": (lambda r: {"verdict": {}}, "line 2", "field 'dataset' is missing"),
    "a verdict without a reply": (
        lambda r: r | {"verdict": {}, "valid_answers": r["open_ended_answers"]},
        "coco2014, line 2",
        "field 'raw' is missing",
    ),
    "a reply that is no text": (
        lambda r: r | {"verdict": {}, "valid_answers": r["open_ended_answers"], "raw": 3},
        "coco2014, line 2",
        "AttributeError",
    ),
}


def check_is_one_difference(path: Path, place: str, reason: str) -> None:
    """The second of three lines cannot be compared, the others are: the third differs, too."""
    outcome = replay(path, wording=False)
    assert outcome.episodes + outcome.verdicts == 3
    unplayable, last = outcome.differences
    assert (unplayable.line, last.line, last.field) == (2, 3, "num_turns")
    told, _, why = str(unplayable).partition(", cannot be compared: ")
    assert told == place
    assert reason in why


@pytest.mark.parametrize("what", UNPLAYABLE)
def test_row_that_cannot_be_played_is_one_difference_and_the_rest_is_compared(
    record: dict[str, Any], write: Callable[..., Path], what: str
) -> None:
    spoil, place, reason = UNPLAYABLE[what]
    row = spoil(copy.deepcopy(record))
    check_is_one_difference(write(record, row, record | {"num_turns": 99}), place, reason)


@pytest.mark.parametrize(
    "text", ["{", "nonsense", '{"dataset": 1}}', '{"dataset": ', "[" * 100_000, "NaN,"]
)
def test_line_that_is_no_json_is_one_difference_and_the_rest_is_compared(
    record: dict[str, Any], write: Callable[..., Path], text: str
) -> None:
    path = write(record, "HERE", record | {"num_turns": 99})
    path.write_text(path.read_text().replace('"HERE"', text))
    check_is_one_difference(path, "line 2", "not JSON: ")


@pytest.mark.parametrize("field", EPISODE_FIELDS)
def test_missing_field_of_an_episode_is_one_difference(
    record: dict[str, Any], write: Callable[..., Path], field: str
) -> None:
    path = write(record, without(record, field), record | {"num_turns": 99})
    check_is_one_difference(path, "coco2014, line 2", f"field {field!r} is missing")


@pytest.mark.parametrize("field", ["answer", *STEP_FIELDS])
def test_missing_field_of_a_step_is_one_difference(
    record: dict[str, Any], write: Callable[..., Path], field: str
) -> None:
    spoilt = copy.deepcopy(record)
    del spoilt["steps"][1][field]
    path = write(record, spoilt, record | {"num_turns": 99})
    check_is_one_difference(path, "coco2014, line 2, step 1", f"field {field!r} is missing")


def test_frame_outside_the_video_is_a_difference_of_its_step(
    write: Callable[..., Path],
) -> None:
    """The package records no such episode: it ends in an error where the frame is to be shown."""
    record = copy.deepcopy(recorded(LAST_MOVES)[0])
    record["sample"]["max_steps"] += 1
    record["steps"][-1]["stop"] = False
    record["steps"].append(record["steps"][-1])
    (difference,) = replay(write(record), wording=False).differences
    assert (difference.step, difference.field) == (len(record["steps"]) - 1, None)
    assert "its suggestions lead to image" in str(difference)


def test_error_inside_the_engine_is_a_difference_of_its_row(
    record: dict[str, Any], write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Episode, answer: str) -> None:
        raise ZeroDivisionError("by nothing")

    path = write(record, record)
    monkeypatch.setattr(Episode, "step", broken)
    outcome = replay(path, wording=False)
    assert [str(each) for each in outcome.differences] == [
        f"coco2014, line {line}, step 0, cannot be compared: ZeroDivisionError: by nothing"
        for line in (1, 2)
    ]


# Files that cannot be read


def message(path: Path) -> str:
    with pytest.raises(DataError) as error:
        replay(path, wording=False)
    return str(error.value)


@pytest.mark.parametrize("name", ["gone.jsonl", "gone.jsonl.gz"])
def test_missing_file_is_named(tmp_path: Path, name: str) -> None:
    assert message(tmp_path / name).startswith(f"{tmp_path / name}: cannot be read")


def test_folder_is_named(tmp_path: Path) -> None:
    assert message(tmp_path).startswith(f"{tmp_path}: cannot be read")


def test_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"\xff\xfe\0")
    assert message(path).startswith(f"{path}: cannot be read: 'utf-8' codec can't decode")


def test_plain_file_that_says_it_is_packed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl.gz"
    path.write_text("{}")
    assert message(path).startswith(f"{path}: cannot be read")


@pytest.mark.parametrize("damage", ["torn", "overwritten"])
def test_damaged_packed_file_is_named(tmp_path: Path, damage: str) -> None:
    content = EPISODES.read_bytes()
    middle = len(content) // 2
    path = tmp_path / "e.jsonl.gz"
    rest = b"" if damage == "torn" else b"\xff" * 64 + content[middle + 64 :]
    path.write_bytes(content[:middle] + rest)
    assert message(path).startswith(f"{path}: ")
