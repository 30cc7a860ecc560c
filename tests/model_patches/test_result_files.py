"""Runs that start in the same second, and runs of models without a name, share no files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fakes.probe import VSOD
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker

from proactivebench_tasks.model_patches import evaluation
from proactivebench_tasks.model_patches.evaluation import Evaluation

SECOND = "20260101_000000"

Save = Callable[[str, int], None]


@pytest.fixture
def save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Save]:
    """Save a run, as the harness's command does: its results, with a number, and then a sample."""
    import proactivebench_tasks.hooks  # noqa: F401, which applies the patch

    def save(task: str, number: int) -> None:
        tracker = EvaluationTracker(output_path=str(tmp_path))
        tracker.general_config_tracker.model_name_sanitized = ""
        tracker.save_results_aggregated(
            results={"number": number}, samples={}, datetime_str="20260101_00:00:00"
        )
        sample = {"arguments": [""], "resps": [str(number)], "filtered_resps": [str(number)]}
        tracker.save_results_samples(task, [sample | {"target": "", "doc": {}}])

    monkeypatch.setattr(evaluation, "_last", Evaluation(tasks={VSOD: object()}))
    yield save


def numbers(folder: Path) -> list[tuple[int, int]]:
    """The number in each results file, with that in the samples file of the same run."""
    found = []
    for file in sorted(folder.glob("*_results.json")):
        run = file.name.removesuffix("_results.json")
        (sample,) = (folder / f"{run}_samples_{VSOD}.jsonl").read_text().splitlines()
        number = json.loads(file.read_text())["number"]
        found.append((number, int(json.loads(sample)["filtered_resps"])))
    return sorted(found)


@pytest.mark.parametrize("runs", [1, 2, 12])
def test_runs_of_one_second_have_files_of_their_own(tmp_path: Path, save: Save, runs: int) -> None:
    for number in range(runs):
        save(VSOD, number)
    assert numbers(tmp_path) == [(number, number) for number in range(runs)]
    assert (tmp_path / "20260101_00-00-00_results.json").is_file()  # the first has the usual name


def test_runs_that_end_together_have_files_of_their_own(tmp_path: Path, save: Save) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: save(VSOD, number), range(16)))
    assert numbers(tmp_path) == [(number, number) for number in range(16)]


def test_runs_of_other_tasks_are_named_as_before(
    tmp_path: Path, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "_last", Evaluation())
    save("mme", 1)
    save("mme", 2)
    (results,) = tmp_path.glob("*_results.json")
    assert json.loads(results.read_text())["number"] == 2
    (samples,) = tmp_path.glob("*_samples_*")
    assert len(samples.read_text().splitlines()) == 2


def test_results_that_cannot_be_written_leave_no_empty_file(
    tmp_path: Path, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> str:
        raise ValueError("not to be written")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lmms_eval.loggers.evaluation_tracker.json.dumps", fail)
        tracker = EvaluationTracker(output_path=str(tmp_path))
        tracker.general_config_tracker.model_name_sanitized = ""
        tracker.save_results_aggregated(results={}, samples={}, datetime_str=SECOND)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_left_to_the_harness_to_report(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    tracker = EvaluationTracker(output_path=str(file))
    tracker.general_config_tracker.model_name_sanitized = "model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "_last", Evaluation(tasks={VSOD: object()}))
        tracker.save_results_aggregated(results={}, samples={}, datetime_str=SECOND)


# Through the command.

_COMMAND = f"""
from lmms_eval import utils
utils.get_datetime_str = lambda timezone="": {SECOND!r}
from lmms_eval.__main__ import cli_evaluate
cli_evaluate()
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--predict_only"]], ids=["scored", "predicted"])
def test_a_sweep_of_policies_in_one_second_keeps_them_apart(
    tmp_path: Path, options: list[str]
) -> None:
    policies = ("oracle", "refuse")
    processes = []
    for policy in policies:
        line = [sys.executable, "-c", _COMMAND, "--model", "proactivebench_baseline"]
        line += ["--model_args", f"policy={policy}", "--tasks", "proactivedemo_mcqa_rod"]
        line += ["--batch_size", "auto", "--log_samples", "--output_path", str(tmp_path / "out")]
        environment = os.environ | {"HF_HUB_OFFLINE": "1"}
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        processes.append(subprocess.Popen([*line, *options], env=environment, text=True, **pipes))
    outputs = [process.communicate(timeout=240)[0] for process in processes]

    found = {}
    for file in (tmp_path / "out").rglob("*_results.json"):
        run = file.name.removesuffix("_results.json")
        lines = file.with_name(f"{run}_samples_proactivedemo_mcqa_rod.jsonl").read_text()
        records = [json.loads(json.loads(line)["filtered_resps"]) for line in lines.splitlines()]
        model = json.loads(file.read_text())["config"]["model_args"]
        found[model] = (len(records), {record["stop"] for record in records})
    assert found.keys() == {f"policy={policy}" for policy in policies}, outputs[0][-2000:]
    assert found["policy=oracle"] == (16, {"solved"})
    assert found["policy=refuse"][0] == 16
    assert "solved" not in found["policy=refuse"][1]
