"""Tasks that are not ours run exactly as they do without us: alone, and beside ours.

The same evaluation runs in fresh interpreters: in one of them the harness knows nothing of us, in
the others all patches are there. What it returns, prints, logs and writes is compared.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

OTHERS = ("other_text", "other_json", "toy_agentic")
OURS = "proactivedemo_mcqa_rod"

_SCRIPT = """
import importlib.metadata, json, sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
mode, folder, tests = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
if mode == "without us":
    load = importlib.metadata.EntryPoint.load
    importlib.metadata.EntryPoint.load = lambda entry: (
        (lambda: []) if entry.value.startswith("proactivebench_tasks") else load(entry)
    )
from loguru import logger
import datasets
datasets.config.HF_DATASETS_CACHE = str(folder / "datasets")
from lmms_eval import evaluator, utils
from lmms_eval.api.instance import GenerationResult, TokenCounts
from lmms_eval.api.model import lmms
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
from lmms_eval.models.model_utils.gen_metrics import log_metrics
from lmms_eval.tasks import TaskManager
from tqdm import tqdm
if mode != "without us":
    import proactivebench_tasks.hooks
assert any(name.startswith("proactivebench") for name in sys.modules) == (mode != "without us")
logger.remove()
logger.add(folder / "log.txt", level="INFO", format="{level} {name} {message}")

class Answers(lmms):
    asked = 0
    def __repr__(self):
        return "Answers"
    def generate_until(self, requests):
        self.asked += len(requests)
        answers = []
        for request in tqdm(requests, desc="Wrapper"):
            doc = self.task_dict[request.args[-2]][request.args[-1]][request.args[-3]]
            answer = "answer to " + request.args[0]
            if request.args[-2] == "other_json":
                answer = json.dumps({"schema": 2, "kind": "other", "id": 3, "said": answer})
            elif request.args[-2] == "other_text" and doc["id"] % 3 == 0:
                answer = "wrong"
            answers.append(GenerationResult("<think>hm</think>" + answer, TokenCounts(10, 3)))
        log_metrics(total_gen_tokens=len(requests), total_elapsed_time=1.0, avg_speed=1.0)
        return answers
    def loglikelihood(self, requests):
        raise NotImplementedError
    def generate_until_multi_round(self, requests):
        raise NotImplementedError

manager = TaskManager(include_path=str(tests / "fakes" / "tasks"), include_defaults=False)
found = {}
for name in ("other_broken", "other_missing"):
    try:
        manager.load_task_or_group([name])
    except Exception as error:
        found[name] = [type(error).__name__, str(error)]

def run(tasks, **kwargs):
    model = Answers()
    cli = SimpleNamespace(process_with_media=False, agentic_trace_mode="basic",
                          reasoning_tags='[["<think>", "</think>"]]', output_path=str(folder))
    results = evaluator.simple_evaluate(
        model=model, tasks=tasks, task_manager=manager, cli_args=cli, bootstrap_iters=100,
        use_cache=str(folder / "cache"), **kwargs)
    return results, model.asked

tasks = ["other_group"] + (["proactivedemo_mcqa_rod"] if mode == "beside ours" else [])
for number, options in enumerate([{}, {"repeats": 2}, {"limit": 2}, {"predict_only": True}]):
    results, asked = run(tasks, **options)
    found[f"run {number}"] = results | {"asked": asked if mode != "beside ours" else None}
    tables = [utils.make_table(results)]
    tables += [utils.make_table(results, "groups")] if "groups" in results else []
    found[f"run {number}"]["tables"] = tables
tracker = EvaluationTracker(output_path=str(folder / "out"))
tracker.general_config_tracker.model_name_sanitized = "model"
for _ in range(2):
    results, _ = run(tasks)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples, datetime_str="20260101")
    for task in ("other_text", "other_json", "toy_agentic"):
        tracker.save_results_samples(task, samples[task])
    if mode == "beside ours":
        break
baseline = next((folder / "out").rglob("*_samples_other_text.jsonl"))
found["compared"], _ = run(tasks, baseline=str(baseline))
(folder / "found.json").write_text(json.dumps(found, default=str))
"""

Found = Mapping[str, Any]


def evaluated(mode: str, folder: Path) -> Found:
    folder.mkdir()
    tests = str(Path(__file__).parents[1])
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, mode, str(folder), tests],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    bars = re.findall(r"^([^\n]*?): +\d+%\|", done.stderr, flags=re.MULTILINE)
    files = sorted(path.name for path in (folder / "out").rglob("*.json*"))
    lines = {
        path.name: len(path.read_text().splitlines()) for path in (folder / "out").rglob("*.jsonl")
    }
    log = (folder / "log.txt").read_text().replace(str(folder), "FOLDER")
    return found | {"bars": bars, "files": files, "lines": lines, "log": log.splitlines()}


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What the harness makes of the tasks if we are not there."""
    return evaluated("without us", tmp_path_factory.mktemp("other") / "without")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The same with all patches."""
    return evaluated("with us", tmp_path_factory.mktemp("other") / "alone")


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The same with a task of ours in the same runs."""
    return evaluated("beside ours", tmp_path_factory.mktemp("other") / "beside")


RUNS = [f"run {number}" for number in range(4)] + ["compared"]


def of_others(results: Mapping[str, Any]) -> dict[str, Any]:
    """What results say of the other tasks and their group, without addresses and times."""
    names = {*OTHERS, "other_group"}
    parts = ("results", "groups", "group_subtasks", "configs", "versions", "n-shot", "n-samples")
    found = {
        part: {name: value for name, value in results.get(part, {}).items() if name in names}
        for part in (*parts, "higher_is_better", "samples")
    }
    found["efficiency"] = {
        name: value
        for name, value in results.get("efficiency", {}).get("by_task", {}).items()
        if name in names
    }
    without_addresses = re.sub(r" at 0x[0-9a-f]+", "", json.dumps(found, sort_keys=True))
    return json.loads(without_addresses)


def test_the_runs_are_worth_comparing(without: Found) -> None:
    results = of_others(without["run 0"])
    assert 0 < results["results"]["other_text"]["acc,none"] < 1
    assert 0 < results["groups"]["other_group"]["acc,none"] < 1
    assert results["groups"]["other_group"]["acc_stderr,none"] > 0
    assert "mismatch,none" in results["results"]["other_text"]
    assert results["samples"]["other_text"][0]["input_media"]
    assert "paired_baseline" in without["compared"]["results"]["other_text"]
    assert without["run 0"]["asked"] > without["run 2"]["asked"] == 0  # it is in the cache
    assert without["other_broken"] != without["other_missing"]


@pytest.mark.parametrize("run", RUNS)
def test_all_that_is_returned_is_the_same(without: Found, alone: Found, run: str) -> None:
    assert alone[run].keys() == without[run].keys()
    assert of_others(alone[run]) == of_others(without[run])
    for part in ("asked", "tables", "efficiency"):
        assert alone[run].get(part) == without[run].get(part)


@pytest.mark.parametrize("what", ["other_broken", "other_missing", "bars", "files", "lines"])
def test_errors_bars_and_files_are_the_same(without: Found, alone: Found, what: str) -> None:
    assert without[what]
    assert alone[what] == without[what]


def test_the_log_is_the_same(without: Found, alone: Found) -> None:
    def said(found: Found) -> list[str]:
        """Without what differs from run to run: the names of runs, and times."""
        return [re.sub(r"run=\w+|\d+\.\d+", "", line) for line in found["log"]]

    assert any("gen_metrics" in line for line in said(without))
    assert any("response_cache" in line for line in said(without))
    assert said(alone) == said(without)


@pytest.mark.parametrize("run", RUNS)
def test_beside_a_task_of_ours_they_return_the_same(
    without: Found, beside: Found, run: str
) -> None:
    assert OURS in beside[run]["results"]
    assert of_others(beside[run]) == of_others(without[run])


def test_beside_a_task_of_ours_their_calls_are_drawn_and_logged(
    without: Found, beside: Found
) -> None:
    """And not those of ours, which the same wrapper makes."""
    for found in (without, beside):
        assert found["bars"].count("Wrapper") > 0
    assert set(beside["bars"]) == set(without["bars"]) | {OURS}
    logged = [[line for line in f["log"] if "Metric summary" in line] for f in (without, beside)]
    assert sorted(logged[1]) == sorted(logged[0])
