"""Judging the files of a finished run, apart from it in time and machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from fakes.judge_server import Act, JudgeServer, marks, record
from typer.testing import CliRunner

from proactivebench_tasks.cli import judge as command
from proactivebench_tasks.errors import DataError, JudgeError
from proactivebench_tasks.results.judged import open_ended_runs
from proactivebench_tasks.transcripts.open_ended import OpenEnded

RUN, TASK, GROUP = "20260101_120000", "proactivebench_oeg_vsod", "proactivebench-oeg"
app = typer.Typer()
app.command()(command.judge)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        monkeypatch.setenv("PROACTIVEBENCH_JUDGE", "openai")
        monkeypatch.setenv("PROACTIVEBENCH_JUDGE_URL", server.url)
        monkeypatch.setenv("PROACTIVEBENCH_JUDGE_RETRIES", "0")
        yield server


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """What the harness leaves of a run that judged nothing: nine samples, one of them failed."""
    folder = tmp_path / "results" / "model"
    folder.mkdir(parents=True)
    records = [record(i, judge={"kind": "later"}) for i in range(8)]
    write(folder, TASK, [*records, record(8, error="DataError: broken", judge={"kind": "later"})])
    (folder / f"{RUN}_samples_other_task.jsonl").write_text('{"filtered_resps": "A"}\n')
    whole = {
        "results": {
            GROUP: {"alias": GROUP},
            TASK: {"alias": f" - {TASK}", "bypass,none": 999},
            "other_task": {"alias": "other_task", "acc,none": 0.5},
        },
        "groups": {GROUP: {"alias": GROUP}},
        "group_subtasks": {GROUP: [TASK], "mixed": [TASK, "other_task"]},
        "n-shot": {TASK: 0, "other_task": 0},
        "config": {"model": "m"},
    }
    (folder / f"{RUN}_results.json").write_text(json.dumps(whole))
    return folder.parent


def write(folder: Path, task: str, records: list[OpenEnded]) -> None:
    rows = [{"doc_id": r.id, "filtered_resps": r.to_json(), "acc": 0.0} for r in records]
    path = folder / f"{RUN}_samples_{task}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(results: Path, *options: str) -> str:
    outcome = CliRunner().invoke(app, [str(results), *options], catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


def judged(results: Path) -> list[dict[str, Any]]:
    text = (results / "model" / f"{RUN}_samples_{TASK}_judged.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_judged_copies_are_written_beside_the_run(server: JudgeServer, results: Path) -> None:
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    shown = run(results)
    assert {path: path.read_bytes() for path in before} == before
    rows = judged(results)
    verdicts = [json.loads(row["filtered_resps"])["judge"].get("verdict") for row in rows]
    assert verdicts == [*(marks(i) for i in range(8)), None]
    assert [row["acc"] for row in rows] == [0.0] * 9  # bit 3 of a number below 8
    assert [row["ps"] for row in rows] == [0.0, *[100.0] * 7, 0.0]
    whole = json.loads((results / "model" / f"{RUN}_results_judged.json").read_text())
    assert whole["judge"] == {"kind": "openai", "model": "Qwen/Qwen3-8B", "comparable": True}
    found = whole["results"][TASK]
    assert found["ps,none"] == found["agg,none"] == pytest.approx(700 / 9)
    assert found["acc,none"] == 0
    assert found["ps_stderr,none"] == pytest.approx(100 * (14 / 81 / 8) ** 0.5)
    assert "bypass,none" not in found
    assert whole["groups"][GROUP] == {"alias": GROUP} | {
        name: value for name, value in found.items() if name != "alias"
    }
    assert whole["results"]["other_task"] == {"alias": "other_task", "acc,none": 0.5}
    assert whole["groups"]["mixed"] == {"alias": "mixed"}  # no mean of unlike tasks
    summary = whole["proactivebench"]["tasks"][TASK]
    assert summary["metrics"]["unscored"]["mean"] == 0
    assert summary["metrics"]["failed"]["mean"] == pytest.approx(100 / 9)
    assert list(whole["proactivebench"]["groups"]) == [GROUP]
    assert "ProactiveBench, open-ended, builtin-1" in shown
    assert "! vsod: 1 of 9 samples failed and count as 0" in shown
    assert "mean" in shown


def test_every_repeat_is_judged_and_counts(server: JudgeServer, results: Path) -> None:
    later = {"judge": {"kind": "later"}}
    rows = [
        {
            "doc_id": i,
            "filtered_resps": [record(i, generated=f"reply {k}", **later).to_json() for k in ks],
        }
        for i, ks in enumerate([(0, 1), (8, 9), (9, 0)])
    ]
    path = results / "model" / f"{RUN}_samples_{TASK}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = run(results)
    assert server.answered == {0: 1, 1: 1, 8: 1, 9: 1}
    told = [
        [json.loads(text)["judge"]["verdict"] for text in row["filtered_resps"]]
        for row in judged(results)
    ]
    assert told == [[marks(0), marks(1)], [marks(8), marks(9)], [marks(9), marks(0)]]
    assert [row["acc"] for row in judged(results)] == [0, 100, 50]  # bit 3: the category
    assert [row["ps"] for row in judged(results)] == [50, 50, 50]
    assert "means of 2 repeats" in shown


def test_a_group_s_error_is_that_of_a_plain_mean(server: JudgeServer, results: Path) -> None:
    folder = results / "model"
    other = "proactivebench_oeg_coco"
    write(folder, other, [record(i, judge={"kind": "later"}) for i in (1, 8, 9, 10)])
    path = folder / f"{RUN}_results.json"
    whole = json.loads(path.read_text())
    whole["group_subtasks"] = {GROUP: [TASK, other]}
    path.write_text(json.dumps(whole))
    run(results)
    found = json.loads((folder / f"{RUN}_results_judged.json").read_text())["results"]
    for metric in ("acc", "ps", "agg"):
        errors = [found[task][f"{metric}_stderr,none"] for task in (TASK, other)]
        wanted = sum(error**2 for error in errors) ** 0.5 / 2
        assert found[GROUP][f"{metric}_stderr,none"] == pytest.approx(wanted)


def test_a_record_of_another_protocol_costs_itself_alone(
    server: JudgeServer, results: Path
) -> None:
    later = {"judge": {"kind": "later"}}
    write(results / "model", TASK, [record(1, **later), record(2, protocol="builtin-0", **later)])
    outcome = CliRunner().invoke(app, [str(results)])
    assert outcome.exit_code == 1
    first, second = (json.loads(row["filtered_resps"])["judge"] for row in judged(results))
    assert first["verdict"] == marks(1)
    assert "builtin-0" in second["unscored"]
    assert "! vsod: 1 of 2 samples have no verdict" in outcome.stdout


def test_records_of_schema_1_are_judged(server: JudgeServer, results: Path) -> None:
    """They hold no sample, and not each can be looked up. The numbers need none."""
    told = record(3).to_dict()
    old = {
        k: v
        for k, v in told.items()
        if k not in ("kind", "suite", "sample", "variant", "reasoning_tags")
    }
    path = results / "model" / f"{RUN}_samples_{TASK}.jsonl"
    path.write_text(json.dumps({"filtered_resps": json.dumps(old | {"schema": 1})}) + "\n")
    run(results)
    (row,) = judged(results)
    assert row["ps"] == 100
    assert json.loads(row["filtered_resps"])["judge"]["verdict"] == marks(3)


def test_second_run_judges_only_what_is_missing(server: JudgeServer, results: Path) -> None:
    server.script = lambda number, _: Act(status=400) if number in (2, 5) else Act()
    outcome = CliRunner().invoke(app, [str(results)])
    assert outcome.exit_code == 1  # two answers got no reply
    server.script = lambda *_: Act()
    run(results)
    assert server.answered == dict.fromkeys(range(8), 1)
    run(results, "--again")
    assert server.answered == dict.fromkeys(range(8), 2)


def test_verdicts_of_the_file_are_known_without_the_cache(
    server: JudgeServer, results: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run(results)
    rows = judged(results)
    records = [OpenEnded.from_json(row["filtered_resps"]) for row in rows]
    write(results / "model", TASK, records)
    monkeypatch.setenv("PROACTIVEBENCH_CACHE", str(tmp_path / "another machine's"))
    run(results)
    assert server.answered == dict.fromkeys(range(8), 1)
    assert judged(results)[3]["filtered_resps"] == rows[3]["filtered_resps"]


def test_another_judge_judges_everything_anew(
    server: JudgeServer, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(results)
    monkeypatch.setenv("PROACTIVEBENCH_JUDGE_MODEL", "another")
    run(results)
    assert server.answered == dict.fromkeys(range(8), 2)


def test_judging_later_needs_a_judge_in_the_end(results: Path) -> None:
    with pytest.raises(JudgeError, match="PROACTIVEBENCH_JUDGE=openai"):
        CliRunner().invoke(app, [str(results)], catch_exceptions=False)


def test_later_is_no_judge_of_a_finished_run(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_JUDGE", "later")
    with pytest.raises(JudgeError, match="set PROACTIVEBENCH_JUDGE to openai, hf or lexical"):
        CliRunner().invoke(app, [str(results)], catch_exceptions=False)


def test_folder_without_open_ended_samples_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=str(tmp_path)):
        open_ended_runs(tmp_path)


def test_row_without_a_transcript_counts_as_failed(server: JudgeServer, results: Path) -> None:
    path = results / "model" / f"{RUN}_samples_{TASK}.jsonl"
    path.write_text('{"doc_id": 9, "filtered_resps": ""}\n' + path.read_text())
    run(results)
    rows = judged(results)
    assert (rows[0]["filtered_resps"], rows[0]["proactivebench"]["failed"]) == ("", 100)
    assert sum(row["ps"] for row in rows) == 700


@pytest.mark.parametrize("line", ['{"torn', "3", '{"filtered_resps": "'])
def test_a_broken_line_costs_itself_alone_and_is_named(
    server: JudgeServer, results: Path, line: str, log: list[str]
) -> None:
    path = results / "model" / f"{RUN}_samples_{TASK}.jsonl"
    first, rest = path.read_text().split("\n", 1)
    path.write_text(f"{first}\n{line}\n{rest}")
    shown = run(results)
    assert [json.loads(row["filtered_resps"])["id"] for row in judged(results)] == list(range(9))
    assert f"{path}, line 2 is left out: " in "".join(log)
    assert "! vsod: 1 of 10 stored samples cannot be scored and are left out" in shown


def test_samples_without_a_results_file_are_judged_too(server: JudgeServer, results: Path) -> None:
    (results / "model" / f"{RUN}_results.json").unlink()
    assert "  vsod        9  0.0 ± ?  77.8 ± ?" in run(results)


@pytest.mark.parametrize("damage", ["{", "[1, 2]", ""])
def test_damaged_results_cost_no_verdict(server: JudgeServer, results: Path, damage: str) -> None:
    (results / "model" / f"{RUN}_results.json").write_text(damage)
    run(results)
    whole = json.loads((results / "model" / f"{RUN}_results_judged.json").read_text())
    assert whole["results"][TASK]["ps,none"] == pytest.approx(700 / 9)
    assert whole["proactivebench"]["tasks"][TASK]["samples"] == 9


@pytest.mark.parametrize("line", ["{", "3", '{"filtered_resps": "{\\"valid_answers\\": 1}"}'])
def test_a_damaged_file_leaves_the_others_to_be_judged(
    server: JudgeServer, results: Path, line: str
) -> None:
    (results / "model" / f"{RUN}_samples_another_task.jsonl").write_text(line + "\n")
    run(results)
    assert len(judged(results)) == 9
