"""The numbers of a finished run, made again from its files: they are the run's own, or it is said
what has changed and why."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes import runs
from typer.testing import CliRunner

from proactivebench_tasks.cli import rescore as command
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Dataset

RUN = runs.RUN
ROD, VSOD, OEG = "proactivedemo_mcqa_rod", "proactivedemo_mcqa_vsod", "proactivedemo_oeg_vsod"
RECORDS = Path(__file__).parents[1] / "transcripts" / "records"
app = typer.Typer()
app.command()(command.rescore)


def rescore(*paths: Path, code: int = 0) -> str:
    """Run the command; returns what it prints."""
    outcome = CliRunner().invoke(app, list(map(str, paths)), catch_exceptions=False)
    assert outcome.exit_code == code, outcome.output
    return outcome.stdout


def results(folder: Path, ending: str = "") -> dict[str, Any]:
    return dict(json.loads((folder / f"{RUN}_results{ending}.json").read_text("utf-8")))


def rows(folder: Path, task: str, ending: str = "") -> list[dict[str, Any]]:
    text = (folder / f"{RUN}_samples_{task}{ending}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.rstrip("\n").split("\n")]


def write(folder: Path, task: str, lines: list[Any]) -> Path:
    """Write a samples file; a line that is a text is written as it is."""
    path = folder / f"{RUN}_samples_{task}.jsonl"
    texts = (each if isinstance(each, str) else json.dumps(each) for each in lines)
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


def same(found: Any, wanted: Any) -> bool:
    """Equality, but for the last bits of numbers."""
    if isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(same(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, float):
        return bool(found == pytest.approx(wanted))
    return bool(found == wanted)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Folders of finished runs, to copy from: as the harness leaves them."""
    return runs.play(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def run(finished: Mapping[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    def copy(kind: str) -> Path:
        return Path(shutil.copytree(finished[kind], tmp_path / "results" / "deep" / kind))

    return copy


# Equal to the run's own.


@pytest.mark.parametrize("kind", ["plain", "repeats", "failed"])
def test_numbers_are_those_of_the_run(run: Callable[[str], Path], kind: str) -> None:
    folder = run(kind)
    own = {path.name: path.read_bytes() for path in folder.iterdir()}
    shown = rescore(folder)
    assert {name: (folder / name).read_bytes() for name in own} == own
    before, after = results(folder), results(folder, "_rescored")
    assert after.keys() == before.keys() - {"efficiency"}
    for part in after:
        assert same(after[part], before[part]), part
    for task in before["proactivebench"]["tasks"]:
        assert same(rows(folder, task, "_rescored"), rows(folder, task))
    assert "nothing changed in" in shown
    assert str(folder / f"{RUN}_results_rescored.json") in shown
    assert "ProactiveBench, multiple choice, builtin-1" in shown


def test_rescoring_again_changes_nothing(run: Callable[[str], Path]) -> None:
    folder = run("plain")
    shown = rescore(folder)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert rescore(folder) == shown
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files


def test_a_run_without_scores_gets_those_of_a_run_with_them(run: Callable[[str], Path]) -> None:
    scored, unscored = run("plain"), run("predict_only")
    assert "acc" not in rows(unscored, ROD)[0]
    shown = rescore(unscored)
    assert "the run had no numbers of its own\n" in shown
    found, wanted = results(unscored, "_rescored"), results(scored)
    for name in ("results", "proactivebench"):
        assert same(runs.without_times(found[name]), runs.without_times(wanted[name])), name
    for row in rows(unscored, ROD, "_rescored"):
        assert "bypass" not in row
        assert row["score"] == row["acc"] / 100


def test_a_run_without_a_results_file_is_scored_too(run: Callable[[str], Path]) -> None:
    folder = run("plain")
    wanted = results(folder)["proactivebench"]["tasks"][ROD]["metrics"]
    (folder / f"{RUN}_results.json").unlink()
    assert "the run had no numbers of its own\n" in rescore(folder)
    assert same(results(folder, "_rescored")["proactivebench"]["tasks"][ROD]["metrics"], wanted)


# Changes are told.


def answered(row: dict[str, Any], answer: str) -> dict[str, Any]:
    """A row whose sample is answered at once."""
    record = json.loads(row["filtered_resps"])
    record["turns"] = [{**record["turns"][0], "answer": answer}]
    return {**row, "filtered_resps": json.dumps(record)}


def test_a_changed_answer_shows_in_its_task_and_in_the_group(run: Callable[[str], Path]) -> None:
    folder = run("plain")
    stored = rows(folder, VSOD)
    number = next(i for i, row in enumerate(stored) if row["acc"] == 0)
    stored[number] = answered(stored[number], stored[number]["target"])
    write(folder, VSOD, stored)
    before = results(folder)["proactivebench"]
    shown = rescore(folder)
    after = results(folder, "_rescored")["proactivebench"]
    was, now = (part["tasks"][VSOD]["metrics"]["acc"]["mean"] for part in (before, after))
    assert now == pytest.approx(was + 100 / 16)
    assert f"{VSOD}, acc: {was:.6g} before, {now:.6g} now\n" in shown
    assert f"{VSOD}: the values of 1 samples are not those in their rows\n" in shown
    assert "proactivedemo, acc: " in shown
    assert f"{ROD}, " not in shown
    assert "nothing changed" not in shown


def test_changes_that_cancel_out_are_told(run: Callable[[str], Path]) -> None:
    folder = run("plain")
    stored = rows(folder, VSOD)
    solved = next(i for i, row in enumerate(stored) if row["acc"] and not row["ps"])
    missed = next(i for i, row in enumerate(stored) if not row["acc"] and not row["ps"])
    stored[solved] = answered(stored[solved], "No option.")
    stored[missed] = answered(stored[missed], stored[missed]["target"])
    write(folder, VSOD, stored)
    shown = rescore(folder)
    assert f"{VSOD}: the values of 2 samples are not those in their rows\n" in shown
    assert "nothing changed" not in shown


def test_a_wrong_figure_in_the_results_is_told(run: Callable[[str], Path]) -> None:
    folder = run("plain")
    whole = results(folder)
    whole["proactivebench"]["groups"]["proactivedemo"]["metrics"]["ps"]["stderr"] = 1.28
    (folder / f"{RUN}_results.json").write_text(json.dumps(whole))
    assert "proactivedemo, ps_stderr: 1.28 before, " in rescore(folder)


def test_a_single_file_changes_its_group_too(run: Callable[[str], Path]) -> None:
    folder = run("plain")
    stored = rows(folder, VSOD)
    changed = [answered(row, row["target"]) for row in stored]
    shown = rescore(write(folder, VSOD, changed))
    assert not (folder / f"{RUN}_samples_{ROD}_rescored.jsonl").exists()
    before, after = results(folder), results(folder, "_rescored")
    assert after["results"][ROD] == before["results"][ROD]
    assert after["results"][VSOD]["acc,none"] == 100
    tasks = before["group_subtasks"]["proactivedemo"]
    mean = sum(after["results"][task]["acc,none"] for task in tasks) / 7
    assert after["results"]["proactivedemo"]["acc,none"] == pytest.approx(mean)
    assert after["groups"]["proactivedemo"] == after["results"]["proactivedemo"]
    assert "proactivedemo, acc: " in shown


def test_figures_that_would_be_of_other_numbers_are_left_out(run: Callable[[str], Path]) -> None:
    folder = run("plain")
    whole = results(folder)
    whole["group_subtasks"]["mine"] = [ROD, "other_task"]
    whole["results"]["mine"] = whole["groups"]["mine"] = {"alias": "mine", "acc,none": 3.0}
    (folder / f"{RUN}_results.json").write_text(json.dumps(whole))
    rescore(folder)
    after = results(folder, "_rescored")
    assert after["results"]["mine"] == after["groups"]["mine"] == {"alias": "mine"}
    assert "efficiency" not in after
    assert after["config"] == whole["config"]


# Damage costs what is damaged.


@pytest.mark.parametrize("line", ["{", "3", '{"torn": "', "null"])
@pytest.mark.parametrize("task", [VSOD, OEG])
def test_a_damaged_row_is_named_and_the_rest_is_scored(
    run: Callable[[str], Path], task: str, line: str, log: list[str]
) -> None:
    folder = run("plain")
    stored = rows(folder, task)
    path = write(folder, task, [*stored[:3], line, *stored[4:]])
    shown = rescore(folder, code=1)
    assert same(rows(folder, task, "_rescored"), stored[:3] + stored[4:])
    assert [each for each in log if f"{path}, line 4 is left out: " in each]
    assert "! vsod: 1 of 16 stored samples cannot be scored and are left out" in shown
    assert "1 samples cannot be scored and are left out; the log says why\n" in shown
    task_now = results(folder, "_rescored")["proactivebench"]["tasks"][task]
    assert (task_now["samples"], task_now["left_out"]) == (15, 1)


@pytest.mark.parametrize("text", ["", "A", "{", None, 3, [], ["", ""], '{"schema": 9}'])
@pytest.mark.parametrize("task", [VSOD, OEG])
def test_a_text_that_is_no_record_counts_as_failed(
    run: Callable[[str], Path], task: str, text: Any, log: list[str]
) -> None:
    folder = run("plain")
    stored = rows(folder, task)
    path = write(folder, task, [{**stored[0], "filtered_resps": text}, *stored[1:]])
    shown = rescore(folder)
    first, *others = rows(folder, task, "_rescored")
    assert first["acc"] == first["ps"] == 0
    assert first["proactivebench"]["failed"] == 100
    # Whose it is, the row still tells.
    assert first["proactivebench"]["cluster"] == stored[0]["proactivebench"]["cluster"]
    assert same(others, stored[1:])
    assert "! vsod: 1 of 16 samples failed and count as 0" in shown
    assert [each for each in log if f"{path}, line 1" in each and "counts as failed: " in each]


def test_one_of_the_repeats_may_be_damaged(run: Callable[[str], Path], log: list[str]) -> None:
    folder = run("repeats")
    stored = rows(folder, VSOD)
    number = next(i for i, r in enumerate(stored) if r["proactivebench"]["repeats"]["acc"][1])
    texts = stored[number]["filtered_resps"]
    first, _, third = stored[number]["proactivebench"]["repeats"]["acc"]
    stored[number] = {**stored[number], "filtered_resps": [texts[0], "torn", texts[2]]}
    write(folder, VSOD, stored)
    rescore(folder)
    now = rows(folder, VSOD, "_rescored")[number]
    assert now["acc"] == pytest.approx((first + third) / 3)
    assert now["proactivebench"]["repeats"]["acc"] == [first, 0, third]
    assert [each for each in log if f"line {number + 1} holds no record" in each]


def test_a_record_that_ends_too_early_counts_as_failed(run: Callable[[str], Path]) -> None:
    folder = run("plain")
    stored = rows(folder, VSOD)
    number = next(i for i, row in enumerate(stored) if row["ps"])
    record = json.loads(stored[number]["filtered_resps"])
    del record["turns"][-1]
    stored[number] = {**stored[number], "filtered_resps": json.dumps(record)}
    write(folder, VSOD, stored)
    rescore(folder)
    assert rows(folder, VSOD, "_rescored")[number]["proactivebench"]["failed"] == 100


def test_a_task_without_a_row_that_can_be_scored_has_no_numbers(run: Callable[[str], Path]) -> None:
    folder = run("plain")
    stored = [json.loads(row["filtered_resps"]) for row in rows(folder, VSOD)]
    write(folder, VSOD, [{"filtered_resps": json.dumps(r | {"sample": {"id": 3}})} for r in stored])
    shown = rescore(folder, code=1)
    after = results(folder, "_rescored")
    assert list(after["results"][VSOD]) == ["alias"]
    assert list(after["results"]["proactivedemo"]) == ["alias"]
    assert VSOD not in after["proactivebench"]["tasks"]
    assert "16 samples cannot be scored" in shown


def test_other_tasks_files_are_left_alone(run: Callable[[str], Path]) -> None:
    folder = run("plain")
    other = folder / f"{RUN}_samples_mmmu.jsonl"
    other.write_text('{"filtered_resps": "A"}\n{"filtered_resps": ["B"]}\n')
    rescore(folder)
    assert [path.name for path in folder.glob("*mmmu*")] == [other.name]


@pytest.mark.parametrize("content", ["", '{"filtered_resps": "A"}\n'])
def test_a_folder_without_our_answers_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / f"{RUN}_samples_mmmu.jsonl").write_text(content)
    with pytest.raises(DataError, match="--log_samples"):
        rescore(tmp_path)


def test_what_is_wrong_with_the_only_file_is_the_error(tmp_path: Path) -> None:
    path = tmp_path / f"{RUN}_samples_x.jsonl"
    path.write_text('{"filtered_resps": "A"}\n{torn\n')
    with pytest.raises(DataError, match=rf"{path}, line 2: not JSON"):
        rescore(tmp_path)


def test_a_record_of_another_protocol_is_scored_and_said(
    run: Callable[[str], Path], log: list[str]
) -> None:
    folder = run("plain")
    stored = rows(folder, VSOD)
    for row in stored[:2]:
        row["filtered_resps"] = row["filtered_resps"].replace("builtin-1", "builtin-0")
    write(folder, VSOD, stored)
    assert "nothing changed" in rescore(folder)
    (said,) = [line for line in log if "builtin-0" in line]
    assert "builtin-1 is installed" in said


# Runs of earlier versions: records of schema 1, which hold no sample.


def frozen(name: str, dataset: Dataset) -> list[dict[str, Any]]:
    """Rows of records that the first version wrote, with its metrics, as it wrote rows."""
    text = (RECORDS / f"{name}.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return [
        {"filtered_resps": line["record"], **line["metrics"]}
        for line in lines
        if json.loads(line["record"])["dataset"] == dataset.value
    ]


@pytest.mark.parametrize("dataset", Dataset)
@pytest.mark.parametrize("name", ["multiple_choice", "open_ended"])
def test_records_of_schema_1_score_as_they_did(tmp_path: Path, name: str, dataset: Dataset) -> None:
    stored = frozen(name, dataset)
    assert stored
    write(tmp_path, "old_task", stored)
    means = {
        f"{metric},none": sum(row[metric] for row in stored) / len(stored)
        for metric in stored[0]
        if metric != "filtered_resps"
    }
    whole = {"results": {"old_task": {"alias": "old_task", **means}}}
    (tmp_path / f"{RUN}_results.json").write_text(json.dumps(whole))
    assert "nothing changed in 1 tasks and groups" in rescore(tmp_path)
    summary = results(tmp_path, "_rescored")["proactivebench"]["tasks"]["old_task"]
    assert summary["suite"] == "demo"
    for row, old in zip(rows(tmp_path, "old_task", "_rescored"), stored, strict=True):
        now = row | row["proactivebench"]
        assert {m: now[m] for m in old if m != "filtered_resps"} == {
            m: v for m, v in old.items() if m != "filtered_resps"
        }


def changed(row: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"filtered_resps": json.dumps(json.loads(row["filtered_resps"]) | fields)}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"id": 999}, "no samples in the demo rows of coco2014 have the id 999"),
        ({"protocol": "proactivebench-0.1.1"}, "the samples of coco2014 cannot be had: "),
        ({"turns": []}, None),
    ],
)
def test_a_sample_that_is_not_found_is_left_out_with_the_reason(
    tmp_path: Path,
    fields: dict[str, Any],
    reason: str | None,
    log: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_DATA_DIR", str(tmp_path / "no_data"))
    good, *_ = stored = frozen("multiple_choice", Dataset.COCO)
    path = write(tmp_path, "old_task", [*stored, changed(good, **fields)])
    rescore(tmp_path, code=1 if reason else 0)
    assert len(rows(tmp_path, "old_task", "_rescored")) == len(stored) + (reason is None)
    if reason:
        (said,) = [line for line in log if "is left out" in line]
        assert f"{path}, line {len(stored) + 1} is left out: {reason}" in said


def test_a_sample_that_is_not_the_one_that_was_played_is_left_out(
    tmp_path: Path, log: list[str]
) -> None:
    first, *_ = frozen("multiple_choice", Dataset.COCO)
    record = json.loads(first["filtered_resps"])
    turns = [{**turn, "options": [*turn["options"], "A unicorn."]} for turn in record["turns"]]
    write(tmp_path, "old_task", [first, changed(first, turns=turns)])
    rescore(tmp_path, code=1)
    assert len(rows(tmp_path, "old_task", "_rescored")) == 1
    assert "is not the one that was played" in "".join(log)


def test_the_same_reason_is_told_once(tmp_path: Path, log: list[str]) -> None:
    first, *_ = frozen("multiple_choice", Dataset.COCO)
    path = write(tmp_path, "old_task", [first] + [changed(first, id=999)] * 50)
    rescore(tmp_path, code=1)
    (said,) = [line for line in log if "left out" in line]
    assert f"{path}, line 2 (and 49 more rows) is left out: " in said


def test_an_open_ended_record_without_its_sample_is_scored(tmp_path: Path, log: list[str]) -> None:
    stored = frozen("open_ended", Dataset.VSOD)
    write(tmp_path, "old_task", [changed(row, id=999) for row in stored])
    rescore(tmp_path)
    found = rows(tmp_path, "old_task", "_rescored")
    assert [row["ps"] for row in found] == [row["ps"] for row in stored]
    assert {row["proactivebench"]["cluster"] for row in found} == {"OcclusionDataSet-MM20 999"}
    assert "is scored without its sample" in "".join(log)
