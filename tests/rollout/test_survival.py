"""What a run survives: memory that runs out, caches that break, ranks, many failures."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from fakes.probe import ALL, Lab, Probe, Reader, expected, plan
from lmms_eval.api.instance import Instance
from lmms_eval.caching.response_cache import ResponseCache
from loguru import logger

from proactivebench_tasks.config import MAX_FAILED, Limit
from proactivebench_tasks.errors import ConfigError, HarnessError
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.rollout.failures import EndOfRun, FailurePolicy, Standing

VSOD, ROD = ALL[Dataset.VSOD], ALL[Dataset.ROD]
CLEAN = {e.sample.id: [t.answer for t in e.turns] for e in expected(Dataset.VSOD, 14)}


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.make(Dataset.VSOD)
    return lab


# Memory.


class OutOfMemoryError(RuntimeError):
    """As torch calls it."""


@pytest.mark.parametrize("error", [OutOfMemoryError("x"), RuntimeError("CUDA out of memory.")])
def test_out_of_memory_makes_calls_smaller_for_good(lab: Lab, error: Exception) -> None:
    sizes: list[int] = []

    def over_four(call: int, requests: list[Instance]) -> None:
        sizes.append(len(requests))
        if len(requests) > 4:
            raise error

    outcome = lab.evaluate(Probe(16, before=over_four), VSOD)
    assert outcome.answers(VSOD) == CLEAN
    assert outcome.failed(VSOD) == {}
    assert [size for size in sizes if size > 4] == [14, 7]  # and never again


def test_out_of_memory_on_one_sample_fails_it_alone(lab: Lab) -> None:
    def on_the_fourth(call: int, requests: list[Instance]) -> None:
        if any(request.args[3] == 4 for request in requests):
            raise OutOfMemoryError("one image is too much")

    outcome = lab.evaluate(Probe(4, before=on_the_fourth), VSOD)
    assert len(outcome.failed(VSOD)) == 1
    assert {i: a for i, a in outcome.answers(VSOD).items() if a} == {
        i: a for i, a in CLEAN.items() if i not in outcome.failed(VSOD)
    }


# The cache.


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk full"), OSError(28, "no space")])
def test_a_cache_that_breaks_while_playing_costs_no_answer(lab: Lab, error: Exception) -> None:
    stored: list[int] = []
    store = ResponseCache._store

    def full_after_five(self: Any, *args: Any) -> None:
        stored.append(1)
        if len(stored) > 5:
            raise error
        store(self, *args)

    lab.monkeypatch.setattr(ResponseCache, "_store", full_after_five)
    model = Probe(4)
    outcome = lab.evaluate(model, VSOD, use_cache=str(lab.folder / "cache"))
    assert outcome.answers(VSOD) == CLEAN
    assert model.turns == sum(map(len, CLEAN.values()))  # nothing was asked twice
    assert len(stored) == 6  # and the cache is not tried again


def test_an_error_of_the_wrapper_is_not_taken_for_one_of_the_cache(lab: Lab) -> None:
    def unplugged(call: int, requests: list[Instance]) -> None:
        if any(request.args[3] == 4 for request in requests):
            raise OSError("no route to host")

    outcome = lab.evaluate(Probe(4, before=unplugged), VSOD, use_cache=str(lab.folder / "cache"))
    assert list(outcome.failed(VSOD).values()) == ["OSError: no route to host"]
    again = Probe(4)
    assert lab.evaluate(again, VSOD, use_cache=str(lab.folder / "cache")).answers(VSOD) == CLEAN
    failed_alone = next(iter(outcome.failed(VSOD)))
    assert again.turns == len(CLEAN[failed_alone])  # failed samples are retried alone


def test_answers_of_another_run_that_cannot_be_read_are_passed_over(lab: Lab) -> None:
    broken = lab.folder / "cache" / "runs" / "other" / "rank_0.db"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no database" * 100)
    outcome = lab.evaluate(Probe(4), VSOD, use_cache=str(lab.folder / "cache"))
    assert outcome.answers(VSOD) == CLEAN


def test_a_corrupted_cache_costs_nothing_for_the_runs_own_files_are_there(lab: Lab) -> None:
    cache = lab.folder / "cache"
    lab.evaluate(Probe(4), VSOD, use_cache=str(cache))
    (cache / "cache.db").write_bytes(b"no database" * 1000)
    model = Probe(4)
    assert lab.evaluate(model, VSOD, use_cache=str(cache)).answers(VSOD) == CLEAN
    assert model.turns == 0


def test_a_disk_that_is_full_in_the_end_costs_no_result(lab: Lab) -> None:
    def full(self: Any) -> None:
        raise OSError(28, "No space left on device")

    lab.monkeypatch.setattr(ResponseCache, "_merge_run_to_root", full)
    outcome = lab.evaluate(Probe(4), VSOD, use_cache=str(lab.folder / "cache"))
    assert outcome.answers(VSOD) == CLEAN


def test_a_cache_of_an_older_version_is_not_mistaken_for_ours(lab: Lab) -> None:
    cache = str(lab.folder / "cache")
    lab.monkeypatch.setattr("lmms_eval.utils.get_lmms_eval_cache_version", lambda: "0.6.0")
    lab.evaluate(Probe(4, answer=lambda seen: "no option"), VSOD, use_cache=cache)
    lab.monkeypatch.setattr("lmms_eval.utils.get_lmms_eval_cache_version", lambda: "0.7.3")
    assert lab.evaluate(Probe(4), VSOD, use_cache=cache).answers(VSOD) == CLEAN


def test_answers_of_a_megabyte_are_graded_and_kept(lab: Lab) -> None:
    long = "x" * 2**20
    outcome = lab.evaluate(Reader(4, answer=lambda seen: long), VSOD, limit=3)
    assert set(map(tuple, outcome.answers(VSOD).values())) == {(long,)}
    assert outcome.metrics(VSOD)["mismatch"] == 100


def test_a_cache_that_cannot_be_made_stops_the_run_before_any_call(lab: Lab) -> None:
    (lab.folder / "file").write_text("")
    model = Probe(4)
    with pytest.raises(OSError, match="file"):
        lab.evaluate(model, VSOD, use_cache=str(lab.folder / "file" / "cache"))
    assert model.turns == 0


def test_a_call_that_takes_long_is_named_in_the_log(lab: Lab) -> None:
    lab.monkeypatch.setenv("PROACTIVEBENCH_SLOW_CALL", "0.01")
    lines: list[str] = []
    said = threading.Event()

    def note(message: object) -> None:
        if "has taken over" in str(message):
            lines.append(str(message))
            said.set()

    sink = logger.add(note, level="WARNING")

    def slow(call: int, requests: list[Instance]) -> None:
        if call == 1:
            assert said.wait(60)

    lab.evaluate(Probe(1, before=slow), VSOD)
    logger.remove(sink)
    warning, *_ = lines
    assert all(str(sample) in warning for sample in CLEAN)


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf"])
def test_a_bad_slow_call_is_said_before_any_call(lab: Lab, value: str) -> None:
    lab.monkeypatch.setenv("PROACTIVEBENCH_SLOW_CALL", value)
    model = Probe(4)
    with pytest.raises(ConfigError, match=f"PROACTIVEBENCH_SLOW_CALL is '{value}'"):
        lab.evaluate(model, VSOD)
    assert model.turns == 0


# Failures.


def fails(*numbers: int) -> Any:
    def raise_for_them(call: int, requests: list[Instance]) -> None:
        if any(request.args[3] in numbers for request in requests):
            raise ValueError("boom")

    return raise_for_them


@pytest.mark.parametrize(("allowed", "stops"), [("2", False), ("1", True), ("15%", False)])
def test_more_failures_than_allowed_stop_the_run(lab: Lab, allowed: str, stops: bool) -> None:
    lab.monkeypatch.setenv(MAX_FAILED, allowed)
    model = Probe(4, before=fails(3, 5))
    if stops:
        with pytest.raises(HarnessError, match=rf"2 of 14 samples failed.*{MAX_FAILED}"):
            lab.evaluate(model, VSOD)
    else:
        assert len(lab.evaluate(model, VSOD).failed(VSOD)) == 2


def test_a_bad_limit_is_said_before_any_call(lab: Lab) -> None:
    lab.monkeypatch.setenv(MAX_FAILED, "5%%")
    model = Probe(4)
    with pytest.raises(ConfigError, match="5%%"):
        lab.evaluate(model, VSOD)
    assert model.turns == 0


@pytest.mark.parametrize(
    ("standing", "end"),
    [
        (Standing(episodes=9, answers=0, failed=4, task_episodes=9, task_failed=4), None),
        (Standing(9, 0, 5, 9, 5), EndOfRun.NOTHING_WORKS),
        (Standing(9, 1, 8, 9, 8), None),  # something works
        (Standing(100, 50, 5, 100, 5), None),
        (Standing(100, 50, 6, 100, 6), EndOfRun.TOO_MANY_FAILED),
        (Standing(100, 50, 50, 100, 1), None),  # those of earlier tasks were allowed there
    ],
)
def test_what_ends_a_run_after_a_failure(standing: Standing, end: EndOfRun | None) -> None:
    policy = FailurePolicy(allowed=Limit.parse("5%"), patience=5)
    if standing.task_episodes == 9:
        policy = FailurePolicy(allowed=None, patience=5)
    assert policy.after_failure(standing) is end


@pytest.mark.parametrize(
    ("failed", "is_alone", "end"),
    [(8, True, None), (9, True, EndOfRun.NOTHING_WORKS), (9, False, None)],
)
def test_what_a_run_that_was_played_comes_to(
    failed: int, is_alone: bool, end: EndOfRun | None
) -> None:
    policy = FailurePolicy(allowed=None, patience=64, is_alone=is_alone)
    assert policy.at_the_end(Standing(episodes=9, answers=9 - failed, failed=failed)) is end


def test_a_run_without_samples_has_not_failed() -> None:
    assert FailurePolicy(allowed=None, patience=64).at_the_end(Standing()) is None


def test_a_dataset_that_fails_whole_does_not_end_the_run_of_the_others(lab: Lab) -> None:
    lab.make(Dataset.ROD)

    def rod_fails(call: int, requests: list[Instance]) -> None:
        if requests[0].args[4] == ROD:
            raise ValueError("boom")

    outcome = lab.evaluate(Reader(4, answer=plan, before=rod_fails), VSOD, ROD)
    assert outcome.answers(VSOD) == CLEAN
    assert outcome.metrics(ROD)["failed"] == 100


# Ranks.

_RANKS = """
import json, os, sys, time
from pathlib import Path
from types import SimpleNamespace
sys.path.insert(0, {tests!r})
import torch
from accelerate import Accelerator
from torch import distributed
accelerator = Accelerator(cpu=True)  # makes the process group
rank, size = distributed.get_rank(), distributed.get_world_size()
import datasets
from fakes import probe
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.protocol.builtin import BUILTIN
Suite.protocol = property(lambda suite: BUILTIN)
calls = 0

class Together(probe.Probe):
    device = torch.device("cpu")

    def generate_until(self, requests):
        global calls
        calls += 1
        if {lockstep}:
            distributed.barrier()
        return super().generate_until(requests)

model = Together(4)
if {launched}:
    model.accelerator = accelerator
from lmms_eval import evaluator
results = evaluator.simple_evaluate(
    model=model, tasks=[{task!r}], task_manager=probe.task_manager(), limit={limit},
    cli_args=SimpleNamespace(process_with_media=False, agentic_trace_mode="basic"),
    bootstrap_iters=0, distributed_executor_backend="accelerate" if {launched} else "torchrun",
)
assert not model.disagreements, model.disagreements
Path({out!r}, f"calls_{{rank}}").write_text(str(calls))
if rank == 0:
    rows = results["samples"][{task!r}]
    found = {{r["doc"]["id"]: json.loads(r["filtered_resps"][0]) for r in rows}}
    Path({out!r}, "transcripts.json").write_text(json.dumps(found))
"""


def in_ranks(
    lab: Lab, ranks: int, limit: int | None, lockstep: bool, launched: bool = False
) -> tuple[Any, list[int]]:
    """Transcripts by id, and the calls that each rank made; ``launched`` with accelerate."""
    import json
    import os
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = lab.folder / "ranks.py"
    script.write_text(
        _RANKS.format(
            tests=str(Path(__file__).parents[1]),
            task=VSOD,
            limit=limit,
            out=str(lab.folder),
            lockstep=lockstep,
            launched=launched,
        )
    )
    shared = os.environ | {
        "PROACTIVEBENCH_DATA_DIR": str(lab.data),
        "HF_DATASETS_CACHE": str(lab.folder / "hf"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(ranks),
        "PROACTIVEBENCH_LOCKSTEP": str(int(lockstep)),
    }
    if launched:
        # What `accelerate launch` starts; its own multi-process mode on CPUs needs MPI.
        launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(ranks)]
        launch += ["--master_port", str(port), str(script)]
        commands = [(launch, {"WORLD_SIZE": ""})]
    else:
        own = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]
        commands = [([sys.executable, str(script)], each) for each in own]
    processes = [
        subprocess.Popen(
            command,
            env={k: v for k, v in (shared | each).items() if v},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command, each in commands
    ]
    outputs = [process.communicate(timeout=240)[0] for process in processes]
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output[-3000:]
    calls = [int((lab.folder / f"calls_{rank}").read_text()) for rank in range(ranks)]
    found = json.loads((lab.folder / "transcripts.json").read_text())
    return {int(i): [turn["answer"] for turn in t["turns"]] for i, t in found.items()}, calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "limit"), [(2, None), (3, None), (3, 2)], ids=["two", "uneven", "an empty shard"]
)
@pytest.mark.parametrize("lockstep", [False, True], ids=["apart", "in step"])
def test_ranks_give_what_one_process_gives(
    lab: Lab, ranks: int, limit: int | None, lockstep: bool
) -> None:
    found, calls = in_ranks(lab, ranks, limit, lockstep)
    wanted = dict(list(CLEAN.items())[:limit])
    assert found == wanted
    if lockstep:
        assert len(set(calls)) == 1
    elif limit:
        assert calls[-1] == 0  # padding copies cost nothing


@pytest.mark.slow
def test_ranks_of_accelerate_give_what_one_process_gives(lab: Lab) -> None:
    found, calls = in_ranks(lab, 2, None, lockstep=False, launched=True)
    assert found == CLEAN
    assert len(calls) == 2
