"""The files that a run of the harness leaves: found, read and written, and what damage does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.results.run_files import RunFiles, SamplesFile, StoredRow, find

RUN, LATER = "20260101_120000", "20260102_120000"


def write(folder: Path, run: str, task: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run}_samples_{task}.jsonl"
    path.write_text(text)
    return path


def found(*paths: Path) -> dict[tuple[str, str], list[str]]:
    """The tasks of each run, by folder and name."""
    return {(r.folder.name, r.name): [s.task for s in r.samples] for r in find(paths)}


def rows(path: Path) -> tuple[list[tuple[int, object]], list[str]]:
    """The rows of a file, each with its line, and the faults."""
    faults: list[DataError] = []
    read = [(row.line, row.fields) for row in SamplesFile("x", path).rows(faults.append)]
    return read, list(map(str, faults))


def test_files_of_one_folder_and_name_are_one_run(tmp_path: Path) -> None:
    for folder, run, task in [("a", RUN, "x"), ("a", RUN, "y"), ("a", LATER, "x"), ("b", RUN, "x")]:
        write(tmp_path / folder, run, task, "{}\n")
    everything = {("a", RUN): ["x", "y"], ("a", LATER): ["x"], ("b", RUN): ["x"]}
    assert found(tmp_path) == everything
    assert found(tmp_path / "a", tmp_path / "b") == everything


def test_single_files_are_taken_alone_and_once(tmp_path: Path) -> None:
    x, y = (write(tmp_path / "a", RUN, task, "{}\n") for task in "xy")
    assert found(x) == {("a", RUN): ["x"]}
    assert found(y, x, x) == {("a", RUN): ["y", "x"]}
    assert found(x, tmp_path) == {("a", RUN): ["x", "y"]}


def test_a_results_file_stands_for_its_run(tmp_path: Path) -> None:
    for run, task in [(RUN, "x"), (RUN, "y"), (LATER, "x"), (RUN, "x_judged")]:
        write(tmp_path / "a", run, task, "{}\n")
    results = tmp_path / "a" / f"{RUN}_results.json"
    results.write_text("{}")
    assert found(results) == {("a", RUN): ["x", "y"]}


@pytest.mark.parametrize("ending", ["judged", "rescored"])
def test_copies_are_no_files_of_the_harness(tmp_path: Path, ending: str) -> None:
    copy = write(tmp_path, RUN, f"x_{ending}", "{}\n")
    assert find([tmp_path]) == []
    with pytest.raises(DataError, match=rf"{copy} is no file that lmms-eval writes"):
        find([copy])


@pytest.mark.parametrize("name", ["notes.txt", "rows.jsonl", "results.json"])
def test_another_file_is_an_error_that_says_what_is_expected(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(DataError, match=rf"{name} is no file .* expected <run>_samples_<task>"):
        find([tmp_path / name])


def test_what_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gone does not exist"):
        find([tmp_path / "gone"])


@pytest.mark.parametrize("line", ["{", "3", "[1, 2]", "null", '{"torn": "'])
def test_a_damaged_row_costs_itself_alone_and_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, RUN, "x", f'{{"a": 1}}\n{line}\n{{"b": 2}}\n')
    read, (fault,) = rows(path)
    assert read == [(1, {"a": 1}), (3, {"b": 2})]
    assert fault.startswith(f"{path}, line 2: ")


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / f"{RUN}_samples_x.jsonl"
    path.symlink_to(tmp_path / "gone")
    read, (fault,) = rows(path)
    assert read == []
    assert fault.startswith(f"{path}: cannot be read")


def test_rows_are_read_one_at_a_time(tmp_path: Path) -> None:
    path = write(tmp_path, RUN, "x", '{"a": 1}\n{"b": 2}\n')
    read = SamplesFile("x", path).rows(lambda fault: None)
    assert next(read).fields == {"a": 1}
    with path.open("a") as more:  # what is written now is read, too
        more.write('{"c": 3}\n' + " " * 2**20)
    assert [row.line for row in read] == [2, 3]


def test_a_row_holds_a_text_or_several() -> None:
    stored = [{"filtered_resps": each} for each in ("A", ["B", "C"], [], [["D"]], None, 3)]
    texts = [StoredRow(Path("x"), 1, fields).texts for fields in [*stored, {}]]
    assert texts == [["A"], ["B", "C"], [""], [["D"]], [None], [3], [""]]


def test_a_copy_holds_the_rows_that_are_written_to_it(tmp_path: Path) -> None:
    text = "d\N{LATIN SMALL LETTER E WITH ACUTE}j\n\ud83d"  # and half a surrogate pair
    path = write(tmp_path, RUN, "x", '{"doc_id": 1}\n')
    with SamplesFile("x", path).copy("_more") as add:
        add({"said": text})
        add({"said": "2"})
    copy = tmp_path / f"{RUN}_samples_x_more.jsonl"
    assert [json.loads(line)["said"] for line in copy.read_text("utf-8").splitlines()] == [
        text,
        "2",
    ]
    assert path.read_text() == '{"doc_id": 1}\n'


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, RUN, "x", "{}\n")
    with pytest.raises(KeyError), SamplesFile("x", path).copy("_more") as add:
        add({})
        raise KeyError
    assert list(tmp_path.iterdir()) == [path]


def test_results_are_what_the_harness_wrote(tmp_path: Path, log: list[str]) -> None:
    run = RunFiles(tmp_path, RUN)
    assert run.results() == {}
    whole = {"results": {"x": {"acc,none": 0.5}}}
    assert run.write_results("", whole) == tmp_path / f"{RUN}_results.json"
    assert run.write_results("_more", {}) == tmp_path / f"{RUN}_results_more.json"
    assert run.results() == whole
    assert not log


@pytest.mark.parametrize(
    "damage", ["{", "[1, 2]", "", '{"results": 3}', '{"proactivebench": []}', "[" * 100_000]
)
def test_damaged_results_count_as_none_and_are_warned_of(
    tmp_path: Path, damage: str, log: list[str]
) -> None:
    run = RunFiles(tmp_path, RUN)
    run.results_path().write_text(damage)
    assert run.results() == {}
    assert f"{RUN}_results.json is damaged" in "".join(log)
