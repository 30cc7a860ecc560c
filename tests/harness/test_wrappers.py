"""Real wrappers of the harness, real (tiny) models: what comes out at the far end is whole.

The model is random but honest: its answers are letters of the list, and they depend on the image
(see ``tiny.py``). So an image or an answer that goes to the wrong sample shows in the results.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
    """One evaluation: results by task, our summary by task, transcripts by task and id, calls of
    ``model.generate``, and what was printed."""

    results: Mapping[str, Mapping[str, Any]]
    summary: Mapping[str, Mapping[str, Any]]
    transcripts: Transcripts
    calls: int = 0
    printed: str = ""

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
    results = json.loads(found[0].read_text())
    summary = results["proactivebench"]["tasks"]
    # The states of a bar are a line each here, and nothing has a colour.
    printed = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    return Run(results["results"], summary, transcripts, printed=printed)


@pytest.fixture(scope="module", params=[("llava_hf", 1), ("qwen2_5_vl", 1), ("qwen2_5_vl", 8)])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    wrapper, batch = request.param
    folder = tmp_path_factory.mktemp(f"{wrapper}-{batch}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROACTIVEBENCH_CACHE", str(folder / "cache"))
        yield command_line(wrapper, batch, folder)


def test_all_tasks_have_results_and_no_sample_failed(run: Run) -> None:
    failed = {task: run.summary[task]["metrics"]["failed"]["mean"] for task in TASKS}
    assert failed == dict.fromkeys(TASKS, 0.0)


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


def test_the_log_of_a_run_is_short(run: Run) -> None:
    lines = [line for line in run.printed.splitlines() if "| INFO " in line]
    assert 7 < len(lines) < 40, "\n".join(lines)


def test_one_bar_is_drawn_for_a_task_and_it_is_ours(run: Run) -> None:
    states = re.findall(r"^([^\n]+?): +\d+%\|", run.printed, flags=re.MULTILINE)
    assert set(states) - {"Loading weights"} == set(TASKS)
    begun = re.findall(r"^(\w+): 0turn ", run.printed, flags=re.MULTILINE)
    assert sorted(begun) == sorted(TASKS)


def test_the_log_says_what_each_task_cost(run: Run) -> None:
    found = re.findall(r"(\w+): (\d+) generations for (\d+) answers, 0 answers from", run.printed)
    costs = {
        task: [
            costs for (of, _), t in run.transcripts.items() if of == task for costs in t["costs"]
        ]
        for task in TASKS
    }
    calls = {task: sum(cost["calls"] for cost in of_task) for task, of_task in costs.items()}
    assert {task: int(generations) for task, generations, _ in found} == calls
    assert {task: int(answers) for task, _, answers in found} == calls
    for task in TASKS:
        assert run.summary[task]["costs"]["calls"] == calls[task]


# The same model at two batch sizes, in this process: with 32-bit floats, as the wrapper's 16 bits
# round differently for other shapes and so tip an answer in a hundred.


#: The default of lmms-eval's ``--reasoning_tags``.
TAGS = '[["<think>", "</think>"], ["<analysis>", "</analysis>"]]'


def in_process(
    batch: int,
    model: Path,
    tasks: Sequence[str] = TASKS,
    wrapper: str = "qwen2_5_vl",
    say: Callable[[str], str] | None = None,
    tags: str = TAGS,
    limit: int | None = None,
) -> Run:
    """Evaluate with a wrapper; ``say`` makes other texts of what its tokenizer decodes."""
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
    if say is not None:
        decoder = lm.processor if wrapper == "qwen2_5_vl" else lm.tokenizer
        decode = decoder.batch_decode
        decoder.batch_decode = lambda *args, **kwargs: list(map(say, decode(*args, **kwargs)))
    cli = SimpleNamespace(process_with_media=False, agentic_trace_mode="basic", reasoning_tags=tags)
    results = evaluator.simple_evaluate(
        model=lm,
        tasks=list(tasks),
        batch_size=batch,
        cli_args=cli,
        bootstrap_iters=0,
        limit=limit,
        gen_kwargs="temperature=0,do_sample=False",  # open answers are sampled otherwise
    )
    transcripts: dict[tuple[str, int], Mapping[str, Any]] = {}
    for task in tasks:
        rows = results["samples"][task]
        transcripts |= by_sample(task, [row["filtered_resps"][0] for row in rows])
    summary = results["proactivebench"]["tasks"]
    return Run(results["results"], summary, transcripts, len(calls))


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
        assert {run.summary[task]["metrics"]["failed"]["mean"] for task in STUDIES} == {0.0}
        assert max(len(given) for given in run.answers.values()) > 2


def test_conversations_are_the_same_in_batches(studies: list[Run]) -> None:
    one, four = studies
    assert four.answers == one.answers


# Models that think.

#: What the tiny models say to an open question, instead of the letter that they name.
SENTENCES = {
    "A": "It is a tree.",
    "B": "Please move the blocks to the left.",
    "C": "An apple, I think.",
    "D": "I do not know.",
}
#: A thought that would be counted if it were graded or judged.
THOUGHT = (
    "A.\nIs it a tree, a boat, an apple, a fish or a house? One could move the blocks to the left, "
    "wait, rewind the video, add details, or show another view.\n"
)
#: How a text looks when the model, or its chat template, makes it think before it says ``{}``.
THINKING = {
    "a block": (f"<think>{THOUGHT}</think>{{}}", TAGS),
    "a block with lines around": (f"<think>\n{THOUGHT}\n</think>\n\n{{}}\n", TAGS),
    "begun in the prompt": (f"{THOUGHT}</think>\n\n{{}}", TAGS),
    "nothing thought": ("<think>\n\n</think>\n\n{}", TAGS),
    "two blocks": (f"<think>{THOUGHT}</think>\n<think>B</think>{{}}", TAGS),
    "another tag of the default": (f"<analysis>{THOUGHT}</analysis>{{}}", TAGS),
    "tags of its own": (f"[THINK]{THOUGHT}[/THINK]{{}}", '[["[THINK]", "[/THINK]"]]'),
}
CLOSED = [f"{GROUP}_mcqa_rod", f"{GROUP}_mcqa_vsod", f"{GROUP}-history_quickdraw"]
OPEN = [f"{GROUP}_oeg_rod", f"{GROUP}_oeg_quickdraw"]


@dataclass(frozen=True)
class Thinker:
    """A wrapper, and the runs of its model when it does not think."""

    wrapper: str
    model: Path
    silent: Run
    silent_open: Run

    def run(self, tasks: Sequence[str], text: str = "{}", tags: str = TAGS) -> Run:
        def say(answer: str) -> str:
            return text.replace("{}", SENTENCES[answer] if tasks is OPEN else answer)

        batch = 4 if self.wrapper == "qwen2_5_vl" else 1
        limit = None if tasks is OPEN else 8  # few open answers say anything right
        return in_process(batch, self.model, tasks, self.wrapper, say, tags, limit)


@pytest.fixture(scope="module", params=list(SAVE))
def thinker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Thinker]:
    wrapper = request.param
    folder = tmp_path_factory.mktemp(f"thinking-{wrapper}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROACTIVEBENCH_CACHE", str(folder / "cache"))
        patch.setenv("PROACTIVEBENCH_JUDGE", "lexical")
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", str(folder / "datasets"))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        alone = Thinker(wrapper, SAVE[wrapper](folder / "model"), *[Run({}, {}, {})] * 2)
        silent, silent_open = alone.run(CLOSED), alone.run(OPEN)
        yield replace(alone, silent=silent, silent_open=silent_open)
        torch.set_num_threads(threads)


def metrics(run: Run) -> dict[str, Any]:
    return {task: summary["metrics"] for task, summary in run.summary.items()}


def without_thinking(run: Run) -> dict[tuple[str, int], Any]:
    """All records without what must differ: the costs, the raw output and the tags."""
    left_out = {"costs", "output", "reasoning_tags"}
    found: dict[tuple[str, int], Any] = {}
    for key, record in run.transcripts.items():
        found[key] = {name: record[name] for name in record.keys() - left_out}
        if "turns" in record:
            turns = [{n: turn[n] for n in turn.keys() - left_out} for turn in record["turns"]]
            found[key]["turns"] = turns
    return found


@pytest.mark.parametrize(("text", "tags"), THINKING.values(), ids=THINKING)
def test_a_model_that_thinks_gets_the_grades_of_one_that_does_not(
    thinker: Thinker, text: str, tags: str
) -> None:
    silent, thinking = thinker.silent, thinker.run(CLOSED, text, tags)
    assert len({len(given) for given in silent.answers.values()}) > 2  # there is something to grade
    assert metrics(thinking) == metrics(silent)
    assert without_thinking(thinking) == without_thinking(silent)
    for record in thinking.transcripts.values():
        for turn in record["turns"]:
            assert turn["output"] == text.replace("{}", turn["answer"])


@pytest.mark.parametrize(("text", "tags"), THINKING.values(), ids=THINKING)
def test_open_answers_of_a_model_that_thinks_get_the_verdicts_of_one_that_does_not(
    thinker: Thinker, text: str, tags: str
) -> None:
    silent, thinking = thinker.silent_open, thinker.run(OPEN, text, tags)
    assert max(each["agg"]["mean"] for each in metrics(silent).values()) > 0
    assert metrics(thinking) == metrics(silent)
    assert without_thinking(thinking) == without_thinking(silent)
    for record in thinking.transcripts.values():
        assert record["output"] == text.replace("{}", record["generated"])


@pytest.mark.parametrize("tasks", [CLOSED, OPEN], ids=["closed", "open"])
def test_without_tags_the_thinking_is_graded_like_any_text(
    thinker: Thinker, tasks: Sequence[str]
) -> None:
    silent = thinker.silent_open if tasks is OPEN else thinker.silent
    text, _ = THINKING["a block"]
    assert metrics(thinker.run(tasks, text, "none")) != metrics(silent)
