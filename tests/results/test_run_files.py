"""The files that a run of the harness leaves: found, read and written, and what damage does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proactivebench_tasks.results.run_files import RunFiles, SamplesFile, find

RUN, LATER = "20260101_120000", "20260102_120000"


def write(folder: Path, run: str, task: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run}_samples_{task}.jsonl"
    path.write_text(text)
    return path


def test_files_of_one_folder_and_name_are_one_run(tmp_path: Path) -> None:
    for folder, run, task in [("a", RUN, "x"), ("a", RUN, "y"), ("a", LATER, "x"), ("b", RUN, "x")]:
        write(tmp_path / folder, run, task, '{"doc_id": 1}\n')
    runs, faults = find(tmp_path)
    assert not faults
    assert {(r.folder.name, r.name): [s.task for s in r.samples] for r in runs} == {
        ("a", RUN): ["x", "y"],
        ("a", LATER): ["x"],
        ("b", RUN): ["x"],
    }
    assert [samples.rows for run in runs for samples in run.samples] == [[{"doc_id": 1}]] * 4


def test_judged_copies_are_no_files_of_the_harness(tmp_path: Path) -> None:
    write(tmp_path, RUN, "x_judged", "{}\n")
    assert find(tmp_path) == ([], [])


@pytest.mark.parametrize("line", ["{", "3", "[1, 2]", "null"])
def test_damaged_file_is_left_out_with_file_and_line(
    tmp_path: Path, line: str, log: list[str]
) -> None:
    write(tmp_path, RUN, "good", "{}\n")
    damaged = write(tmp_path, RUN, "bad", "{}\n" + line + "\n")
    (run,), (fault,) = find(tmp_path)
    assert [samples.task for samples in run.samples] == ["good"]
    assert f"{damaged}, line 2: " in str(fault)
    assert str(fault) in "".join(log)


def test_of_repeats_the_first_response_counts(tmp_path: Path) -> None:
    rows = [{"filtered_resps": found} for found in ("A", ["B", "C"], [], [["D"]])]
    samples = SamplesFile("x", tmp_path / "x", [*rows, {}])
    assert list(samples.responses()) == ["A", "B", "[]", "['D']", ""]


def test_rows_are_written_as_they_are_now(tmp_path: Path) -> None:
    path = write(tmp_path, RUN, "x", '{"doc_id": 1}\n')
    ((run,), _) = find(tmp_path)
    (samples,) = run.samples
    samples.rows[0]["said"] = "d\N{LATIN SMALL LETTER E WITH ACUTE}j\n"
    samples.write(tmp_path / "copy.jsonl")
    text = (tmp_path / "copy.jsonl").read_text("utf-8")
    assert json.loads(text) == {"doc_id": 1, "said": "d\N{LATIN SMALL LETTER E WITH ACUTE}j\n"}
    assert text.count("\n") == 1
    assert path.read_text() == '{"doc_id": 1}\n'


def test_results_are_what_the_harness_wrote(tmp_path: Path, log: list[str]) -> None:
    run = RunFiles(tmp_path, RUN)
    assert run.results() == {}
    run.write_results(run.beside("_results.json"), {"results": {"x": {"acc,none": 0.5}}})
    assert [path.name for path in tmp_path.iterdir()] == [f"{RUN}_results.json"]
    assert run.results() == {"results": {"x": {"acc,none": 0.5}}}
    assert not log


@pytest.mark.parametrize("damage", ["{", "[1, 2]", ""])
def test_damaged_results_count_as_none_and_are_warned_of(
    tmp_path: Path, damage: str, log: list[str]
) -> None:
    run = RunFiles(tmp_path, RUN)
    run.beside("_results.json").write_text(damage)
    assert run.results() == {}
    assert f"{RUN}_results.json is damaged" in "".join(log)
