"""Where rows come from: what is kept of a data folder, when it is read again, what is refused.

Official rows are read with wording of our own and ids that the test chooses; only the test that is
marked ``network`` reads them with the official ids.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import world

from proactivebench_tasks.config import CACHE, DATA_DIR
from proactivebench_tasks.data import prepared, rows, suite
from proactivebench_tasks.data.hub_store import HubStore
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.errors import DataError, ProactiveBenchError
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset

ROD = Dataset.ROD
Fault = Callable[[], str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with the rows 3, 5 and 8 of each dataset, named by the environment."""
    folder = tmp_path / "data"
    folder.mkdir()
    for dataset in Dataset:
        write(folder, dataset, world.rows(dataset, [3, 5, 8]))
    monkeypatch.setenv(DATA_DIR, str(folder))
    return folder


@pytest.fixture(autouse=True)
def ids(monkeypatch: pytest.MonkeyPatch) -> dict[Dataset, frozenset[int]]:
    """The ids that count, for a test to change. The official protocol is ours with these."""
    ids = dict.fromkeys(Dataset, frozenset({3, 5, 8}))
    protocol = replace(BUILTIN, sample_ids=ids)
    monkeypatch.setattr(published, "load", lambda: protocol)
    return ids


@pytest.fixture
def fault(folder: Path) -> Fault:
    """Reads the rows of ROD, which must not work; the message."""

    def fault() -> str:
        with pytest.raises(DataError) as error:
            prepared.prepared(Suite.OFFICIAL, ROD)
        return str(error.value)

    return fault


def write(folder: Path, dataset: Dataset, table: list[dict[str, Any]]) -> None:
    (folder / dataset.jsonl).write_text("".join(json.dumps(row) + "\n" for row in table))


def lines_of(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def kept(path: str | Path) -> list[int]:
    return [row["id"] for row in lines_of(path)]


# What is kept


@pytest.mark.parametrize("dataset", Dataset)
def test_attribute_of_a_tasks_name_is_the_path_of_its_rows(folder: Path, dataset: Dataset) -> None:
    path = getattr(prepared, dataset.task)
    assert isinstance(path, str)  # the YAML loader hands it to datasets
    assert kept(path) == [3, 5, 8]


@pytest.mark.parametrize("dataset", Dataset)
def test_row_comes_out_as_the_sample_that_went_in(folder: Path, dataset: Dataset) -> None:
    (row, *_) = lines_of(getattr(prepared, dataset.task))
    assert parse_sample(dataset, row) == parse_sample(dataset, world.rows(dataset, [3])[0])


def test_row_says_where_it_came_from(folder: Path) -> None:
    text = (folder / ROD.jsonl).read_text().splitlines()
    (folder / ROD.jsonl).write_text("\n".join([text[0], "", "  ", text[1], text[2]]))
    assert [(row["dataset"], row["suite"], row["line"]) for row in lines_of(prepared.rod)] == [
        (ROD.value, "official", 1),
        (ROD.value, "official", 4),
        (ROD.value, "official", 5),
    ]


def test_row_has_a_key_that_no_other_row_has(folder: Path) -> None:
    write(folder, ROD, world.rows(ROD, [3, 3, 5]))
    keys = [row["row"] for d in Dataset for row in lines_of(getattr(prepared, d.task))]
    keys += [row["row"] for d in Dataset for row in lines_of(getattr(prepared, f"demo_{d.task}"))]
    assert len(keys) > 100
    assert len(set(keys)) == len(keys)


def test_row_keeps_its_key_wherever_its_jsonl_lies(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [row["row"] for row in lines_of(prepared.rod)]
    monkeypatch.setenv(DATA_DIR, str(folder.rename(tmp_path / "elsewhere")))
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    assert [row["row"] for row in lines_of(prepared.rod)] == before


def test_ids_that_the_protocol_does_not_list_are_dropped(
    folder: Path, ids: dict[Dataset, frozenset[int]]
) -> None:
    ids[ROD] = frozenset({8, 3, 77})
    assert kept(prepared.rod) == [3, 8]


def test_ids_are_those_of_the_dataset(folder: Path, ids: dict[Dataset, frozenset[int]]) -> None:
    ids[ROD] = frozenset({5})
    assert kept(prepared.vsod) == [3, 5, 8]


def test_repeated_id_is_kept_as_often_as_it_is_there(folder: Path) -> None:
    write(folder, ROD, world.rows(ROD, [3, 3, 5]))
    assert [(row["id"], row["line"]) for row in lines_of(prepared.rod)] == [(3, 1), (3, 2), (5, 3)]


@pytest.mark.parametrize("dataset", [Dataset.VSOD, Dataset.ROD])
def test_rows_without_strong_occlusions_are_dropped(folder: Path, dataset: Dataset) -> None:
    first, second, third = world.rows(dataset, [3, 5, 8])
    strong = {"strong_occlusions": True}
    write(folder, dataset, [first | strong, second | {"strong_occlusions": False}, third | strong])
    assert kept(getattr(prepared, dataset.task)) == [3, 8]


def test_columns_of_no_use_are_left_out(folder: Path) -> None:
    write(folder, ROD, [world.rows(ROD, [3])[0] | {"note": {"deep": [1]}}])
    (row,) = lines_of(prepared.rod)
    assert "note" not in row


def test_text_in_other_scripts_comes_through(folder: Path) -> None:
    odd = "Was ist\u2019s? 猫\u2028\x85 <b>"
    write(folder, ROD, [world.rows(ROD, [3])[0] | {"prompt": odd}])
    line, rest = Path(prepared.rod).read_bytes().split(b"\n")
    assert (json.loads(line)["prompt"], rest) == (odd, b"")


def test_demo_rows_are_all_kept_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test").mkdir()
    write(tmp_path / "test", ROD, world.rows(ROD, [100, 101]))
    monkeypatch.setattr(suite, "DEMO_DATA", tmp_path)
    monkeypatch.delenv(DATA_DIR, raising=False)
    assert [(row["id"], row["suite"]) for row in lines_of(prepared.demo_rod)] == [
        (100, "demo"),
        (101, "demo"),
    ]


@pytest.mark.parametrize("name", ["rods", "ROD", "demo_", "demo_rods", "demo_demo_rod", "", "a.b"])
def test_other_names_are_no_attributes(folder: Path, name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        getattr(prepared, name)


@pytest.mark.parametrize("name", ["__wrapped__", "_rod", "__path__"])
def test_private_names_are_no_attributes(name: str) -> None:
    assert not hasattr(prepared, name)


# When it is made again


def test_rows_are_made_once(folder: Path) -> None:
    path = Path(prepared.rod)
    path.write_text("made before\n")
    assert prepared.rod == str(path)
    assert path.read_text() == "made before\n"


def test_rows_are_not_validated_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = prepared.rod
    monkeypatch.delattr(rows, "parse_sample")
    assert prepared.rod == before


def test_rows_are_made_again_when_the_jsonl_changes(folder: Path) -> None:
    before = prepared.rod
    write(folder, ROD, world.rows(ROD, [5]))
    assert kept(prepared.rod) == [5]
    assert kept(before) == [3, 5, 8]  # whoever still reads it can go on


def test_rows_are_made_again_when_the_jsonl_changes_and_is_as_long_as_before(folder: Path) -> None:
    assert kept(prepared.rod) == [3, 5, 8]
    lines = (folder / ROD.jsonl).read_text().splitlines(keepends=True)
    (folder / ROD.jsonl).write_text("".join(reversed(lines)))
    assert kept(prepared.rod) == [8, 5, 3]


def test_rows_are_those_of_before_when_the_jsonl_changes_back(folder: Path) -> None:
    before = prepared.rod
    content = (folder / ROD.jsonl).read_bytes()
    write(folder, ROD, world.rows(ROD, [5]))
    after = prepared.rod
    (folder / ROD.jsonl).write_bytes(content)
    assert prepared.rod == before != after


def test_touching_the_jsonl_changes_nothing(folder: Path) -> None:
    before = prepared.rod
    os.utime(folder / ROD.jsonl, (1, 1))
    assert prepared.rod == before


def test_rows_are_made_again_for_another_protocol(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = prepared.rod
    other = replace(BUILTIN, version="other", sample_ids=dict.fromkeys(Dataset, frozenset({8})))
    monkeypatch.setattr(published, "load", lambda: other)
    assert (kept(before), kept(prepared.rod)) == ([3, 5, 8], [8])


def test_demo_and_official_rows_do_not_mix(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "test").mkdir()
    (folder / "test" / ROD.jsonl).write_bytes((folder / ROD.jsonl).read_bytes())
    monkeypatch.setattr(suite, "DEMO_DATA", folder)
    assert {row["suite"] for row in lines_of(prepared.rod)} == {"official"}
    assert {row["suite"] for row in lines_of(prepared.demo_rod)} == {"demo"}


def test_failed_attempt_leaves_nothing_behind(folder: Path, fault: Fault, own_cache: Path) -> None:
    good = (folder / ROD.jsonl).read_text()
    (folder / ROD.jsonl).write_text(good + "{\n")
    fault()
    assert not list(own_cache.rglob("*.jsonl")) and not list(own_cache.rglob("*.tmp"))
    (folder / ROD.jsonl).write_text(good)
    assert kept(prepared.rod) == [3, 5, 8]


def test_processes_that_start_at_once_get_the_same_whole_rows(
    folder: Path, own_cache: Path
) -> None:
    write(folder, ROD, world.rows(ROD, list(range(300))))
    code = (
        "from proactivebench_tasks.data import prepared; "
        "from proactivebench_tasks.protocol import builtin, published; "
        "published.load = lambda: builtin.BUILTIN; print(prepared.rod)"
    )
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (process.communicate(timeout=60)[0].strip() for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert first == second and kept(first) == list(range(300))
    assert [path.suffix for path in (own_cache / "rows").iterdir()] == [".jsonl"]


# What is refused


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_data_folder_the_hub_is_read(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv(DATA_DIR, raising=False)
    if value is not None:
        monkeypatch.setenv(DATA_DIR, value)
    assert isinstance(Suite.OFFICIAL.store, HubStore)


def test_data_folder_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nowhere", tmp_path / "file"):
        monkeypatch.setenv(DATA_DIR, str(path))
        with pytest.raises(DataError, match=f"PROACTIVEBENCH_DATA_DIR is '{path}', which is no f"):
            _ = prepared.rod


def test_home_folder_is_understood(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv(DATA_DIR, "~/data")
    assert kept(prepared.rod) == [3, 5, 8]


def test_missing_jsonl_is_named(folder: Path, fault: Fault) -> None:
    (folder / ROD.jsonl).unlink()
    assert fault().startswith(f"{folder / ROD.jsonl} does not exist")


def test_folder_in_place_of_a_jsonl_is_named(folder: Path, fault: Fault) -> None:
    (folder / ROD.jsonl).unlink()
    (folder / ROD.jsonl).mkdir()
    assert fault().startswith(f"{folder / ROD.jsonl}: cannot be read")


@pytest.mark.parametrize(
    "text", ["{", '{"id": 1', "nonsense", '{"id": 1}}', "\ufeff{}", "[" * 9999]
)
def test_line_that_is_no_json_is_named(folder: Path, fault: Fault, text: str) -> None:
    with (folder / ROD.jsonl).open("a") as file:
        file.write("\n" + text + "\n")
    assert fault().startswith(f"{folder / ROD.jsonl}, line 5: not JSON: ")


@pytest.mark.parametrize("text", ["3", "null", "[]", '"row"'])
def test_line_that_is_no_object_is_named(folder: Path, fault: Fault, text: str) -> None:
    (folder / ROD.jsonl).write_text(text)
    assert fault().startswith(f"{folder / ROD.jsonl}, line 1: expected a JSON object, found ")


def test_bad_field_is_named_with_its_line(folder: Path, fault: Fault) -> None:
    first, second = world.rows(ROD, [3, 5])
    write(folder, ROD, [first, second | {"num_images": "4"}])
    assert fault() == (
        f"{folder / ROD.jsonl}, line 2: field 'num_images': Input should be a valid integer, "
        "found '4'"
    )


def test_nan_in_a_row_is_a_bad_field(folder: Path) -> None:
    write(
        folder, Dataset.COCO, [world.rows(Dataset.COCO, [3])[0] | {"vertical_step": float("nan")}]
    )
    with pytest.raises(DataError, match="line 1: field 'vertical_step'"):
        _ = prepared.coco


def test_bad_row_is_refused_even_where_its_id_does_not_count(folder: Path, fault: Fault) -> None:
    first, second = world.rows(ROD, [3, 999])
    write(folder, ROD, [first, second | {"answer": "A pear."}])
    assert "line 2: answer 'A pear.' is not among categories" in fault()


@pytest.mark.parametrize("junk", [b"\xff\xfe\x00\x01", b"\x89PNG\r\n\x1a\n\0\0", b'{"id": "\xe9"}'])
def test_binary_junk_is_named(folder: Path, fault: Fault, junk: bytes) -> None:
    (folder / ROD.jsonl).write_bytes(junk)
    assert fault().startswith(f"{folder / ROD.jsonl}: cannot be read")


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_file_without_rows_is_named(folder: Path, fault: Fault, text: str) -> None:
    (folder / ROD.jsonl).write_text(text)
    assert fault().startswith(f"{folder / ROD.jsonl}: none of its 0 rows is part of the evaluation")


def test_file_of_which_no_row_counts_is_named(folder: Path, fault: Fault) -> None:
    write(folder, ROD, world.rows(ROD, [100, 101]))
    message = fault()
    assert message.startswith(f"{folder / ROD.jsonl}: none of its 2 rows is part of the evaluation")
    assert BUILTIN.version in message


def test_unusable_cache_folder_is_an_error_of_ours(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    monkeypatch.setenv("PROACTIVEBENCH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ProactiveBenchError, match=str(tmp_path / "cache")):
        _ = prepared.rod


@pytest.mark.network
def test_official_ids_decide_in_official_tasks(
    folder: Path, official: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "load", lambda: official)
    assert official.sample_ids is not None
    counting = sorted(official.sample_ids[ROD])
    other = min(set(range(10**6)) - official.sample_ids[ROD])
    write(folder, ROD, world.rows(ROD, [*counting, other]))
    assert kept(prepared.rod) == counting


def test_what_lacks_or_is_there_twice_is_said_in_every_run(
    folder: Path, ids: dict[Dataset, frozenset[int]], log: list[str]
) -> None:
    listed = sorted(ids[Dataset.ROD])
    table = world.rows(Dataset.ROD, [*listed[1:], listed[1]])
    write(folder, Dataset.ROD, table)
    for run in (1, 2):
        prepared.prepared(Suite.OFFICIAL, Dataset.ROD)
        said = [line for line in log if line.startswith("WARNING")]
        assert len(said) == run
        assert f"1 ids occur more than once: {listed[1]}" in said[-1]
        assert f"1 of {len(listed)} samples lack: {listed[0]}" in said[-1]


def test_a_byte_order_mark_is_no_fault(folder: Path) -> None:
    path = folder / Dataset.ROD.jsonl
    path.write_text("\ufeff" + path.read_text())
    assert kept(prepared.prepared(Suite.OFFICIAL, Dataset.ROD))
