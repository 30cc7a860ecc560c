"""A killed run resumes: what it had answered is not asked again, and the results are the same.

A process is killed by itself, at a moment that the test names: so it is a real SIGKILL, and no test
depends on how fast the machine is.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from fakes.probe import ROD, VSOD, Lab, Reader
from lmms_eval.api.instance import Instance
from lmms_eval.caching.response_cache import ResponseCache

from proactivebench_tasks.protocol.samples import Dataset

WINDOW = 4

#: Where a process may be killed: before a call is made, with its answers given but none stored,
#: after one answer was stored, and when the run is played and its cache is about to be merged.
PLACES = ("asked", "answered", "stored", "merging")


@pytest.fixture
def lab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    lab.make(Dataset.VSOD)
    monkeypatch.setenv("PROACTIVEBENCH_WINDOW", str(WINDOW))
    return lab


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked process, which costs no imports; returns its id."""
    if (child := os.fork()) == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


class Clock:
    """Counts how often each place was passed, and kills its process at the moment it was given."""

    def __init__(self, place: str = "", number: int = 0) -> None:
        self.moment = (place, number)
        self.passed: Counter[str] = Counter()

    def passes(self, place: str) -> None:
        self.passed[place] += 1
        if (place, self.passed[place]) == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)


def evaluation(
    lab: Lab, cache: str, log: Path, out: Path, clock: Clock, first_call: Callable[[], object]
) -> Callable[[], None]:
    """Writes down each turn before it is asked, and at the end all that there is."""

    def note(call: int, requests: list[Instance]) -> None:
        if call == 1:
            first_call()
        with log.open("a") as file:
            file.writelines(f"{request.args[3]} {request.idx}\n" for request in requests)
        clock.passes("asked")

    class Timed(Reader):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            answers = super().generate_until(requests)
            clock.passes("answered")
            return answers

    store, merge = ResponseCache._store, ResponseCache._merge_run_to_root

    def timed_store(self: ResponseCache, *args: Any) -> None:
        store(self, *args)
        clock.passes("stored")

    def timed_merge(self: ResponseCache) -> None:
        clock.passes("merging")
        merge(self)

    def work() -> None:
        ResponseCache._store, ResponseCache._merge_run_to_root = timed_store, timed_merge
        outcome = lab.evaluate(Timed(2, before=note), VSOD, use_cache=str(lab.folder / cache))
        out.write_text(json.dumps([outcome.metrics(VSOD), outcome.transcripts[VSOD]]))

    return work


def run(
    lab: Lab,
    cache: str,
    log: Path,
    out: Path,
    clock: Clock | None = None,
    first_call: Callable[[], object] = lambda: None,
) -> int:
    return in_child(evaluation(lab, cache, log, out, clock or Clock(), first_call))


def ended(child: int) -> int:
    """How a process ended: 0 if well, else the number of the signal."""
    return os.waitpid(child, 0)[1]


def asked(log: Path) -> Counter[str]:
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


def moments(calls: int, turns: int) -> list[Clock]:
    """Twenty moments, spread over all places, drawn by a fixed seed."""
    rng = random.Random(0)
    last = {"asked": calls, "answered": calls, "stored": turns, "merging": 1}
    return [Clock(place, rng.randint(1, last[place])) for place in PLACES for _ in range(5)]


@pytest.mark.slow
def test_twenty_kills_change_nothing(lab: Lab) -> None:
    clean_log, clean_out = lab.folder / "clean.log", lab.folder / "clean.json"
    assert ended(run(lab, "clean", clean_log, clean_out)) == 0
    turns = asked(clean_log).total()

    clocks = moments(calls=turns // WINDOW, turns=turns)
    random.Random(1).shuffle(clocks)
    killed = 0
    for group in range(4):  # a new cache after every five kills, for the later ones to have work
        log, out = lab.folder / f"{group}.log", lab.folder / f"{group}.json"
        in_group = 0
        for clock in clocks[5 * group : 5 * group + 5]:
            in_group += ended(run(lab, f"cache{group}", log, out, clock)) == signal.SIGKILL
        assert ended(run(lab, f"cache{group}", log, out)) == 0
        assert out.read_bytes() == clean_out.read_bytes()
        # Each kill repeats at most the call that it hit.
        assert set(asked(log)) == set(asked(clean_log))
        assert asked(log).total() <= turns + in_group * WINDOW
        killed += in_group
    # A run that finds little left to ask may pass its moment by; most do not.
    assert killed >= 8


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_run_that_is_killed_resumes_where_it_was(lab: Lab, place: str) -> None:
    clean_log, clean_out = lab.folder / "clean.log", lab.folder / "clean.json"
    assert ended(run(lab, "clean", clean_log, clean_out)) == 0
    log, out = lab.folder / "asked.log", lab.folder / "out.json"
    clock = Clock(place, 1 if place == "merging" else 3)
    assert ended(run(lab, "cache", log, out, clock)) == signal.SIGKILL
    before = asked(log).total()
    assert ended(run(lab, "cache", log, out)) == 0
    assert out.read_bytes() == clean_out.read_bytes()
    repeated = 0 if place == "merging" else WINDOW
    assert asked(log).total() <= asked(clean_log).total() + repeated
    if place == "merging":
        assert asked(log).total() == before


@pytest.mark.slow
@pytest.mark.parametrize("job", ["", "111"], ids=["by chance", "of one Slurm job"])
def test_two_runs_on_one_cache_do_each_other_no_harm(lab: Lab, job: str) -> None:
    lab.monkeypatch.setenv("SLURM_JOB_ID", job)
    log = lab.folder / "asked.log"
    outs = [lab.folder / f"out{number}.json" for number in range(3)]
    both_there = multiprocessing.get_context("fork").Barrier(2)
    children = [
        run(lab, "shared", log, out, first_call=lambda: both_there.wait(120)) for out in outs[:2]
    ]
    assert [ended(child) for child in children] == [0, 0]
    before = asked(log).total()
    assert ended(run(lab, "shared", log, outs[2])) == 0
    assert len({out.read_bytes() for out in outs}) == 1
    assert asked(log).total() == before  # all that they asked is there


# Whatever runs are called, and however many ranks they have.

#: What names the folder of a run below that of the cache, in the order of lmms-eval.
NAMED_BY = ("LMMS_CACHE_RUN_ID", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID")
#: How earlier runs were named, and how the last one is.
NAMES = {
    "the same Slurm job": ({"SLURM_JOB_ID": "111"}, {"SLURM_JOB_ID": "111"}),
    "another Slurm job": ({"SLURM_JOB_ID": "111"}, {"SLURM_JOB_ID": "222"}),
    "torchrun": ({"TORCHELASTIC_RUN_ID": "none"}, {"TORCHELASTIC_RUN_ID": "none"}),
    "chance": ({}, {}),
}


@dataclass(frozen=True)
class Turn:
    """A turn that was asked for, or stored."""

    task: str
    doc_id: int
    idx: int


@dataclass
class Ranks:
    """Runs of one laboratory into one cache folder, as so many processes as there are ranks."""

    lab: Lab
    name: str = "cache"
    runs: int = 0

    @property
    def cache(self) -> Path:
        return self.lab.folder / self.name

    def run(
        self, count: int, name: dict[str, str], *tasks: str, stop: int = 0
    ) -> tuple[list[Turn], Any]:
        """Evaluate in this many ranks; each kills itself when it has stored ``stop`` answers.
        Returns the turns that were asked, and the records of all samples."""
        self.runs += 1
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        children = []
        for rank in range(count):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)}
            own |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} if count > 1 else {}
            clock = Clock("stored", stop)
            children.append(in_child(self._work(own | name, clock, self._file(rank), tasks)))
        assert [ended(child) for child in children] == [signal.SIGKILL if stop else 0] * count
        lines = [line for rank in range(count) for line in self._file(rank).read_text().split("\n")]
        asked = [Turn(*json.loads(line)) for line in lines if line.startswith("[")]
        outcomes = [json.loads(line) for line in lines if line.startswith("{")]
        assert len(outcomes) == (0 if stop else 1)  # the first rank writes them
        return asked, outcomes[0] if outcomes else None

    def _file(self, rank: int) -> Path:
        return self.lab.folder / f"{self.name}{self.runs}-{rank}.jsonl"

    def _work(
        self, environment: dict[str, str], clock: Clock, file: Path, tasks: tuple[str, ...]
    ) -> Callable[[], None]:
        store = ResponseCache._store
        file.touch()

        def note(call: int, requests: list[Instance]) -> None:
            with file.open("a") as out:
                out.writelines(json.dumps([r.args[4], r.args[3], r.idx]) + "\n" for r in requests)

        def timed_store(cache: ResponseCache, *args: Any) -> None:
            store(cache, *args)
            clock.passes("stored")

        def work() -> None:
            for variable in NAMED_BY:
                os.environ.pop(variable, None)
            os.environ.update(environment)
            ResponseCache._store = timed_store
            model = Reader(2, before=note)
            model.device = torch.device("cpu")  # where the harness gathers what ranks have
            outcome = self.lab.evaluate(
                model, *tasks, use_cache=str(self.cache), distributed_executor_backend="torchrun"
            )
            if outcome.transcripts:
                with file.open("a") as out:
                    out.write(json.dumps(outcome.transcripts))

        return work

    def stored(self) -> set[Turn]:
        """The turns whose answers lie below the cache folder."""
        logs = self.cache.rglob("*.audit.jsonl")
        records = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
        return {Turn(r["task_name"], r["doc_id"], r["idx"]) for r in records}


@pytest.mark.slow
@pytest.mark.parametrize("ranks_after", [1, 2])
@pytest.mark.parametrize("ranks_before", [1, 2])
@pytest.mark.parametrize("stop_of_another", [0, 3], ids=["ended before", "killed before"])
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_nothing_is_asked_twice_that_lies_on_disk(
    lab: Lab,
    names: tuple[dict[str, str], dict[str, str]],
    stop_of_another: int,
    ranks_before: int,
    ranks_after: int,
) -> None:
    """A run of one task ends or is killed, one of another task is killed in the same folder, and
    then both tasks are evaluated."""
    lab.make(Dataset.ROD, Dataset.VSOD, count=8)
    before, now = names
    runs = Ranks(lab)
    runs.run(ranks_before, before, ROD, stop=stop_of_another)
    runs.run(ranks_before, before, VSOD, stop=7 if ranks_before == 1 else 4)
    stored = runs.stored()
    last, records = runs.run(ranks_after, now, ROD, VSOD)

    assert {turn.task for turn in stored} == {ROD, VSOD}
    assert set(last) & stored == set()
    assert len(last) == len(set(last))
    clean = Ranks(lab, "clean")
    asked, expected = clean.run(1, {}, ROD, VSOD)
    assert records == expected
    assert stored | set(last) == set(asked)  # what was lost with a kill is asked again, no more


# Through the command.

_SCRIPT = """
import os
from proactivebench_tasks.baselines import model as baselines

class Stopped(baselines.Baseline):
    asked = 0

    def generate_until(self, requests):
        with open({log!r}, "a") as log:
            log.writelines(f"{{r.doc_id}} {{r.idx}}\\n" for r in requests)
        before, self.asked = self.asked, self.asked + len(requests)
        if before < {turns} <= self.asked:
            os.kill(os.getpid(), {signal})
        return super().generate_until(requests)

baselines.Baseline = Stopped
from lmms_eval.__main__ import cli_evaluate
cli_evaluate()
"""


def command(folder: Path, out: str, turns: int = 0, by: int = 0) -> str:
    """Evaluate by the command, in a process that sends itself a signal at its turn ``turns``;
    returns the output."""
    script = folder / f"{out}.py"
    script.write_text(_SCRIPT.format(log=str(folder / "asked.log"), turns=turns, signal=int(by)))
    line = [
        *(sys.executable, str(script), "--model", "proactivebench_baseline"),
        *("--model_args", "policy=always_ask", "--tasks", "proactivedemo_mcqa_rod"),
        *("--use_cache", str(folder / "cache"), "--log_samples"),
        *("--output_path", str(folder / out)),
    ]
    environment = os.environ | {"PROACTIVEBENCH_WINDOW": str(WINDOW), "HF_HUB_OFFLINE": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(line, env=environment, text=True, timeout=300, **pipes).stdout


@pytest.mark.slow
def test_the_command_resumes_after_a_kill_and_after_ctrl_c(tmp_path: Path) -> None:
    log = tmp_path / "asked.log"
    command(tmp_path, "killed", 10, signal.SIGKILL)
    assert 10 <= asked(log).total() < 10 + WINDOW
    output = command(tmp_path, "interrupted", 20, signal.SIGINT)
    last_line = output.strip().splitlines()[-1]
    assert last_line.endswith("interrupted while playing; the same command resumes")
    before = asked(log).total()
    output = command(tmp_path, "last")
    rows = [
        json.loads(line)
        for path in (tmp_path / "last").rglob("*_samples_*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert len(rows) == 16, output[-2000:]
    transcripts = [json.loads(row["filtered_resps"]) for row in rows]
    turns = sum(len(t["turns"]) for t in transcripts)
    assert {t["error"] for t in transcripts} == {None}
    assert len(asked(log)) <= turns  # fewer where an answer was reused
    assert asked(log).total() <= len(asked(log)) + 2 * WINDOW
    assert asked(log).total() > before
