"""From the outside: which tasks the harness finds and selects, what bad data says, the command."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes import world
from fakes.probe import ALL, ROD, VSOD, Lab, Probe, expected, sample_id, scores
from lmms_eval import evaluator
from lmms_eval.evaluator_utils import get_task_list
from lmms_eval.tasks import TaskManager, get_task_dict

from proactivebench_tasks import errors, hooks, plugin
from proactivebench_tasks.demo import DATA
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import is_suggestion
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.model_patches import agentic_loop
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset

LEAVES = sorted([*ALL.values(), *(f"proactivebench_oeg_{d.task}" for d in Dataset)])
METRICS = ("acc", "ps", "asked", "max_steps", "mismatch", "failed")
TASK_YAMLS = Path(__file__).parents[2] / "task_yamls"


@functools.cache
def manager(include_path: str | None = None) -> TaskManager:
    """Our tasks alone: the harness's own take seconds to index."""
    return TaskManager(include_path=include_path, include_defaults=False)


# Finding and selecting tasks.


def test_the_pattern_selects_the_tasks_and_no_group() -> None:
    tasks = manager()
    selected = tasks.match_tasks(["proactivebench_*"])
    assert sorted(selected) == LEAVES
    assert {tasks.task_index[name]["type"] for name in selected} == {"task"}


def test_the_pattern_selects_each_task_once(lab: Lab) -> None:
    lab.make(*Dataset, count=2)
    tasks = manager()
    loaded = get_task_dict(tasks.match_tasks(["proactivebench_*"]), tasks)
    names = [output.task_name for output in get_task_list(loaded)]
    assert sorted(names) == LEAVES


@pytest.mark.parametrize(
    ("group", "held"),
    [("proactivebench-mcqa", sorted(ALL.values())), ("proactivebench", LEAVES)],
)
def test_the_group_holds_the_same_tasks(lab: Lab, group: str, held: list[str]) -> None:
    lab.make(*Dataset, count=2)
    names = [output.task_name for output in get_task_list(get_task_dict([group], manager()))]
    assert sorted(names) == held


def test_the_group_is_the_plain_mean_of_its_datasets(lab: Lab) -> None:
    lab.make(*Dataset, count=3)
    lab.make(Dataset.ROD, count=9)  # datasets of other sizes count the same
    outcome = lab.evaluate(Probe(4), "proactivebench-mcqa")
    each = [outcome.metrics(task) for task in ALL.values()]
    mean = {name: sum(m[name] for m in each) / 7 for name in METRICS}
    assert outcome.metrics("proactivebench-mcqa") == pytest.approx(mean)


def test_include_path_works_without_the_entry_point(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An lmms-eval that knows nothing of us: importing the hooks puts the runner in place."""
    monkeypatch.setattr(TaskManager, "initialize_tasks", unpatched(TaskManager.initialize_tasks))
    loop = unpatched(evaluator._run_generate_until_agentic)
    monkeypatch.setattr(evaluator, "_run_generate_until_agentic", loop)
    assert TaskManager(include_defaults=False).all_tasks == []

    agentic_loop.apply(hooks.doc_to_text)  # what importing the hooks does
    assert evaluator._run_generate_until_agentic is not loop
    lab.make(Dataset.ROD)
    tasks = TaskManager(include_path=str(TASK_YAMLS), include_defaults=False)
    monkeypatch.setattr("fakes.probe.task_manager", lambda: tasks)
    outcome = lab.evaluate(Probe(4), ROD)
    assert outcome.metrics(ROD) == pytest.approx(scores(expected(Dataset.ROD, 14)))


def unpatched(function: Any) -> Any:
    while hasattr(function, "__wrapped__") and function.__module__.startswith("lmms_eval"):
        function = function.__wrapped__
    return function


def test_importing_the_hooks_puts_the_runner_in_place() -> None:
    assert getattr(evaluator._run_generate_until_agentic, "routes", None) is hooks.doc_to_text


def test_patches_are_applied_once() -> None:
    loop, initialize = evaluator._run_generate_until_agentic, TaskManager.initialize_tasks
    agentic_loop.apply(hooks.doc_to_text)
    plugin.register()
    assert evaluator._run_generate_until_agentic is loop
    assert TaskManager.initialize_tasks is initialize


def test_the_entry_point_and_include_path_together_find_each_task_once() -> None:
    assert manager(str(TASK_YAMLS)).all_tasks == manager().all_tasks


def test_a_harness_without_the_loop_is_an_error_that_names_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(evaluator, "_run_generate_until_agentic")
    with pytest.raises(errors.HarnessError, match=r"supported are lmms-eval 0\.7\.0 to 0\."):
        agentic_loop.apply(hooks.doc_to_text)


# Bad data, before any model call.


def causes(error: BaseException) -> list[BaseException]:
    """An error and what it came from."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    return chain


def data_error(lab: Lab, model: Probe) -> str:
    with pytest.raises(Exception) as caught:
        lab.evaluate(model, VSOD)
    found = [e for e in causes(caught.value) if isinstance(e, errors.DataError)]
    assert found, causes(caught.value)
    assert model.calls == []
    return str(found[0])


def test_no_data_folder(lab: Lab) -> None:
    lab.monkeypatch.delenv("PROACTIVEBENCH_DATA_DIR")
    lab.monkeypatch.setenv("HF_HUB_CACHE", str(lab.folder / "nothing"))
    assert "PROACTIVEBENCH_DATA_DIR" in data_error(lab, Probe(4))


def test_a_data_folder_that_does_not_exist(lab: Lab) -> None:
    lab.monkeypatch.setenv("PROACTIVEBENCH_DATA_DIR", str(lab.folder / "nowhere"))
    message = data_error(lab, Probe(4))
    assert "PROACTIVEBENCH_DATA_DIR" in message
    assert str(lab.folder / "nowhere") in message


def test_a_missing_jsonl(lab: Lab) -> None:
    lab.make(Dataset.ROD)
    assert str(lab.data / Dataset.VSOD.jsonl) in data_error(lab, Probe(4))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: json.dumps(row)[:-1], "line 3: not JSON"),
        (lambda row: json.dumps(row | {"num_images": "4"}), "line 3: field 'num_images'"),
        (
            lambda row: json.dumps({k: row[k] for k in row if k != "answer"}),
            "line 3: field 'answer'",
        ),
    ],
    ids=["cut off", "wrong type", "null"],
)
def test_a_broken_line(lab: Lab, change: Any, message: str) -> None:
    lab.make(Dataset.VSOD)
    path = lab.data / Dataset.VSOD.jsonl
    lines = path.read_text().splitlines()
    lines[2] = change(json.loads(lines[2]))
    path.write_text("\n".join(lines))
    assert f"{path}, {message}" in data_error(lab, Probe(4))


def test_the_error_of_bad_data_is_ours_and_not_one_made_from_it(lab: Lab) -> None:
    """lmms-eval makes "Failed to import function ..." of it, and shows that alone."""
    lab.monkeypatch.setenv("PROACTIVEBENCH_DATA_DIR", str(lab.folder / "nowhere"))
    with pytest.raises(errors.DataError, match="PROACTIVEBENCH_DATA_DIR"):
        lab.evaluate(Probe(4), VSOD)


# The command.


def lmms_eval(out: Path, tasks: str, policy: str, **env: str) -> tuple[str, dict[str, Any] | None]:
    """Run ``lmms-eval``; its output, and its results or ``None``: it exits with 0 either way."""
    run = subprocess.run(
        [
            str(Path(sys.executable).parent / "lmms-eval"),
            *("--model", "proactivebench_baseline", "--model_args", f"policy={policy}"),
            *("--tasks", tasks, "--batch_size", "4"),
            *("--log_samples", "--output_path", str(out)),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"HF_HOME": str(out / "hf"), "HF_HUB_OFFLINE": "1"} | env,
    )
    files = sorted(out.rglob("*_results.json"))
    assert len(files) <= 1
    text = run.stdout + run.stderr
    return text, json.loads(files[0].read_text()) if files else None


def metric(results: Mapping[str, Any], task: str, name: str) -> float:
    return results["results"][task][f"{name},none"]


def failed(results: Mapping[str, Any], task: str) -> float:
    """The samples of a task or group that failed: ours, in no table of the harness."""
    ours = results["proactivebench"]
    return (ours["tasks"] | ours["groups"])[task]["metrics"]["failed"]["mean"]


def demo(dataset: Dataset) -> list[dict[str, Any]]:
    """The rows that count: the benchmark leaves out what is hardly occluded."""
    text = (DATA / "test" / dataset.jsonl).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    return [row for row in rows if row.get("strong_occlusions") is not False]


def asks_until_the_end(dataset: Dataset, row: Mapping[str, Any]) -> int:
    """Turns of a sample whose player takes the first option that helps, and never answers."""
    episode = Episode(parse_sample(dataset, row), BUILTIN)
    while not episode.done:
        good = [o for o in episode.correct_suggestions if is_suggestion(o)]
        episode.step(good[0] if good else next(filter(is_suggestion, row["options"])))
    return len(episode.turns)


@pytest.mark.slow
def test_demo_with_the_oracle(tmp_path: Path) -> None:
    text, results = lmms_eval(tmp_path, "proactivedemo", "oracle")
    assert results is not None, text
    tasks = [f"proactivedemo_mcqa_{dataset.task}" for dataset in Dataset]
    for task in [*tasks, "proactivedemo"]:
        assert metric(results, task, "acc") == 100
        assert failed(results, task) == 0
    assert len(list(tmp_path.rglob("*_samples_*.jsonl"))) == 7


@pytest.mark.slow
def test_demo_with_a_model_that_always_asks(tmp_path: Path) -> None:
    text, results = lmms_eval(tmp_path, "proactivedemo", "always_ask")
    assert results is not None, text
    means = []
    for dataset in Dataset:
        task = f"proactivedemo_mcqa_{dataset.task}"
        turns = [asks_until_the_end(dataset, row) for row in demo(dataset)]
        means.append(sum(n - 1 for n in turns) / len(turns))
        assert metric(results, task, "acc") == 0
        assert metric(results, task, "ps") == pytest.approx(means[-1])
        assert metric(results, task, "ps") > 0
    assert metric(results, "proactivedemo", "ps") == pytest.approx(sum(means) / 7)


@pytest.mark.slow
@pytest.mark.network
def test_official_tasks_by_pattern(tmp_path: Path, own_cache: Path) -> None:
    official = published.load()
    for dataset in Dataset:
        ids = [sample_id(number, dataset, official) for number in range(6)]
        world.make(tmp_path / "data", {dataset: ids})
    out = tmp_path / "out"
    given = {"PROACTIVEBENCH_DATA_DIR": str(tmp_path / "data"), "PROACTIVEBENCH_JUDGE": "lexical"}
    text, results = lmms_eval(out, "proactivebench_*", "oracle", **given)
    assert results is not None, text
    assert sorted(results["results"]) == LEAVES
    for task in LEAVES:
        assert failed(results, task) == 0
        # The judge without a model need not agree with the oracle.
        assert "oeg" in task or metric(results, task, "acc") == 100
    files = sorted(out.rglob("*_samples_*.jsonl"))
    assert len(files) == 14
    for path in files:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert len(rows) == 6
        transcripts = [json.loads(row["filtered_resps"]) for row in rows]  # no list in the file
        assert {t["protocol"] for t in transcripts} == {official.version}


@pytest.mark.slow
def test_bad_data_says_what_is_wrong_and_leaves_no_results(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    text, results = lmms_eval(tmp_path, ROD, "oracle", PROACTIVEBENCH_DATA_DIR=nowhere)
    assert results is None
    assert f"DataError: PROACTIVEBENCH_DATA_DIR is '{nowhere}', which is no folder" in text
