"""Real wrappers of the harness, real (tiny) models: what comes out at the far end is whole.

The model is random but honest: its answers are letters of the list, and they depend on the image
(see ``tiny.py``). So a image or an answer that goes to the wrong sample shows in the results.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
import torch
from fakes import tiny
from lmms_eval import evaluator, models

from proactivebench_tasks.protocol.samples import Dataset

pytestmark = pytest.mark.slow

GROUP = "proactivedemo"
TASKS = [f"{GROUP}_mcqa_{dataset.task}" for dataset in Dataset]
SAVE: Mapping[str, Callable[[Path], Path]] = {
    "llava_hf": tiny.llava,
    "qwen2_5_vl": tiny.qwen2_5_vl,
}
#: Few pixels, so that images stay small; without these the wrapper enlarges them.
PIXELS = {"llava_hf": {}, "qwen2_5_vl": {"min_pixels": 28 * 28, "max_pixels": 16 * 28 * 28}}

Transcripts = Mapping[tuple[str, int], Mapping[str, Any]]


@dataclass(frozen=True)
class Run:
    """One evaluation: results by task, transcripts by task and id, calls of ``model.generate``."""

    results: Mapping[str, Mapping[str, Any]]
    transcripts: Transcripts
    calls: int = 0

    @property
    def answers(self) -> dict[tuple[str, int], list[str]]:
        return {key: answers(transcript) for key, transcript in self.transcripts.items()}


def answers(transcript: Mapping[str, Any]) -> list[str]:
    return [turn["answer"] for turn in transcript["turns"]]


def by_sample(task: str, responses: Sequence[str]) -> dict[tuple[str, int], Mapping[str, Any]]:
    transcripts = map(json.loads, responses)
    return {(task, transcript["id"]): transcript for transcript in transcripts}


# The command line, as a user runs it.


def command_line(wrapper: str, batch: int, folder: Path) -> Run:
    """Evaluate the demo with ``lmms-eval``. It exits 0 whatever happens: look for its files."""
    arguments = {
        "pretrained": SAVE[wrapper](folder / "model"),
        "device": "cpu",
        "device_map": "cpu",
        **PIXELS[wrapper],
    }
    out = folder / "out"
    command = [
        *(sys.executable, "-m", "lmms_eval"),
        *("--model", wrapper, "--batch_size", str(batch)),
        *("--model_args", ",".join(f"{key}={value}" for key, value in arguments.items())),
        *("--tasks", GROUP, "--log_samples", "--output_path", str(out)),
    ]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_CACHE": str(folder / "datasets"),
    }
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300
    )
    found = list(out.rglob("*_results.json"))
    assert len(found) == 1, f"no results file; the end of what was printed:\n{done.stderr[-4000:]}"
    transcripts: dict[tuple[str, int], Mapping[str, Any]] = {}
    for task in TASKS:
        (samples,) = out.rglob(f"*_samples_{task}.jsonl")
        rows = [json.loads(line) for line in samples.read_text().splitlines()]
        transcripts |= by_sample(task, [row["filtered_resps"] for row in rows])
    return Run(json.loads(found[0].read_text())["results"], transcripts)


@pytest.fixture(scope="module", params=[("llava_hf", 1), ("qwen2_5_vl", 1), ("qwen2_5_vl", 8)])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    wrapper, batch = request.param
    folder = tmp_path_factory.mktemp(f"{wrapper}-{batch}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROACTIVEBENCH_CACHE", str(folder / "cache"))
        yield command_line(wrapper, batch, folder)


def test_all_tasks_have_results_and_no_sample_failed(run: Run) -> None:
    assert {task: run.results[task]["failed,none"] for task in TASKS} == dict.fromkeys(TASKS, 0.0)


def test_all_samples_were_played_to_their_end(run: Run) -> None:
    played = {task: sum(of == task for of, _ in run.transcripts) for task in TASKS}
    assert played == dict.fromkeys(TASKS, 16)
    for key, transcript in run.transcripts.items():
        assert transcript["error"] is None, key
        assert transcript["stop"] in {"solved", "wrong", "mismatch", "max_turns"}, key
        assert transcript["num_turns"] == len(transcript["turns"]) > 0, key


def test_answers_are_letters_and_episodes_go_on(run: Run) -> None:
    said = {answer for given in run.answers.values() for answer in given}
    assert said <= set(tiny.LETTERS)
    assert {len(given) for given in run.answers.values()} >= {1, 2, 3, 4}


def test_another_image_changes_the_answer_to_the_same_question(run: Run) -> None:
    changed = 0
    for transcript in run.transcripts.values():
        turns = transcript["turns"]
        for one, other in itertools.pairwise(turns):
            changed += one["options"] == other["options"] and one["answer"] != other["answer"]
    assert changed > 5


# The same model at two batch sizes, in this process: with 32-bit floats, as the wrapper's 16 bits
# round differently for other shapes and so tip an answer in a hundred.


def in_process(batch: int, model: Path, tasks: Sequence[str] = TASKS) -> Run:
    wrapper = "qwen2_5_vl"
    lm = models.get_model(wrapper)(
        str(model), device="cpu", device_map="cpu", batch_size=batch, **PIXELS[wrapper]
    )
    lm.model.float()
    calls: list[int] = []
    generate = lm.model.generate

    def counting(*args: Any, **kwargs: Any) -> Any:
        calls.append(len(kwargs["input_ids"]))
        return generate(*args, **kwargs)

    lm.model.generate = counting
    cli = SimpleNamespace(process_with_media=False, agentic_trace_mode="basic")
    results = evaluator.simple_evaluate(
        model=lm, tasks=list(tasks), batch_size=batch, cli_args=cli, bootstrap_iters=0
    )
    transcripts: dict[tuple[str, int], Mapping[str, Any]] = {}
    for task in tasks:
        rows = results["samples"][task]
        transcripts |= by_sample(task, [row["filtered_resps"][0] for row in rows])
    return Run(results["results"], transcripts, len(calls))


@contextmanager
def in_batches(
    folder: Path, sizes: Sequence[int], tasks: Sequence[str] = TASKS
) -> Iterator[list[Run]]:
    """The same tasks by the same model, in batches of each of these sizes."""
    model = tiny.qwen2_5_vl(folder / "model")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROACTIVEBENCH_CACHE", str(folder / "cache"))
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", str(folder / "datasets"))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the model is so small that threads only wait for each other
        yield [in_process(size, model, tasks) for size in sizes]
        torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def one_and_eight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Run]]:
    with in_batches(tmp_path_factory.mktemp("float32"), (1, 8)) as runs:
        yield runs


def test_batches_of_eight_give_the_answers_of_one_by_one(one_and_eight: list[Run]) -> None:
    one, eight = one_and_eight
    assert eight.answers == one.answers


def test_batches_of_eight_take_a_fraction_of_the_calls(one_and_eight: list[Run]) -> None:
    one, eight = one_and_eight
    assert eight.calls < one.calls / 3


# Conversations of several images.

STUDIES = [f"{GROUP}-history_quickdraw", f"{GROUP}-icl_rod", f"{GROUP}-icl_mvpn"]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Run]]:
    with in_batches(tmp_path_factory.mktemp("studies"), (1, 4), STUDIES) as runs:
        yield runs


def test_history_and_examples_run_through_a_real_wrapper(studies: list[Run]) -> None:
    for run in studies:
        assert {run.results[task]["failed,none"] for task in STUDIES} == {0.0}
        assert max(len(given) for given in run.answers.values()) > 2


def test_conversations_are_the_same_in_batches(studies: list[Run]) -> None:
    one, four = studies
    assert four.answers == one.answers
