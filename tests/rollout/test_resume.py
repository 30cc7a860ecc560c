"""A killed run resumes: what it had answered is not asked again, and the results are the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.probe import ALL, Lab, Reader
from lmms_eval.api.instance import Instance

from proactivebench_tasks.protocol.samples import Dataset

VSOD = ALL[Dataset.VSOD]
WINDOW = 4


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    lab = Lab(tmp_path, monkeypatch)
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


def evaluation(lab: Lab, cache: str, log: Path, out: Path) -> Callable[[], None]:
    """Evaluates slowly, writes down each turn before it is asked, and at the end all there is."""

    def note(call: int, requests: list[Instance]) -> None:
        with log.open("a") as file:
            file.writelines(f"{request.args[3]} {request.idx}\n" for request in requests)
        time.sleep(0.02)

    def work() -> None:
        outcome = lab.evaluate(Reader(2, before=note), VSOD, use_cache=str(lab.folder / cache))
        out.write_text(json.dumps([outcome.metrics(VSOD), outcome.transcripts[VSOD]]))

    return work


def asked(log: Path) -> Counter[str]:
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


@pytest.mark.slow
def test_twenty_kills_at_random_moments_change_nothing(lab: Lab) -> None:
    clean_log, clean_out = lab.folder / "clean.log", lab.folder / "clean.json"
    started = time.monotonic()
    child = in_child(evaluation(lab, "clean", clean_log, clean_out))
    assert os.waitpid(child, 0)[1] == 0
    duration = time.monotonic() - started

    rng = random.Random(0)
    log, out = lab.folder / "asked.log", lab.folder / "out.json"
    for kill in range(20):
        # A new cache after every five kills, for the later ones to have something left to ask.
        child = in_child(evaluation(lab, f"cache{kill // 5}", log, out))
        time.sleep(rng.uniform(0, duration))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if kill % 5 < 4:
            continue
        out.unlink(missing_ok=True)
        child = in_child(evaluation(lab, f"cache{kill // 5}", log, out))
        assert os.waitpid(child, 0)[1] == 0
        assert out.read_bytes() == clean_out.read_bytes()
        # Each kill repeats at most the call that it hit.
        assert set(asked(log)) == set(asked(clean_log))
        assert asked(log).total() <= asked(clean_log).total() + 5 * WINDOW
        log.unlink()


@pytest.mark.slow
def test_two_runs_on_one_cache_do_each_other_no_harm(lab: Lab) -> None:
    log = lab.folder / "asked.log"
    outs = [lab.folder / f"out{number}.json" for number in range(3)]
    children = [in_child(evaluation(lab, "shared", log, out)) for out in outs[:2]]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    before = asked(log).total()
    assert os.waitpid(in_child(evaluation(lab, "shared", log, outs[2])), 0)[1] == 0
    assert len({out.read_bytes() for out in outs}) == 1
    assert asked(log).total() == before  # all that they asked is there


# Through the command.

_SLOW = """
import time
from proactivebench_tasks.baselines import model as baselines

class Slow(baselines.Baseline):
    def generate_until(self, requests):
        with open({log!r}, "a") as log:
            log.writelines(f"{{r.doc_id}} {{r.idx}}\\n" for r in requests)
        time.sleep(0.05)
        return super().generate_until(requests)

baselines.Baseline = Slow
from lmms_eval.__main__ import cli_evaluate
cli_evaluate()
"""


def start(folder: Path, out: str) -> tuple[subprocess.Popen[str], Path]:
    log, script = folder / "asked.log", folder / "slow.py"
    script.write_text(_SLOW.format(log=str(log)))
    command = [
        *(sys.executable, str(script), "--model", "proactivebench_baseline"),
        *("--model_args", "policy=always_ask", "--tasks", "proactivedemo_mcqa_rod"),
        *("--use_cache", str(folder / "cache"), "--log_samples"),
        *("--output_path", str(folder / out)),
    ]
    environment = os.environ | {"PROACTIVEBENCH_WINDOW": str(WINDOW), "HF_HUB_OFFLINE": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, env=environment, text=True, **pipes), log


def stop(process: subprocess.Popen[str], log: Path, turns: int, by: signal.Signals) -> str:
    """Send a signal once so many turns were asked; returns the output."""
    while process.poll() is None and asked(log).total() < turns:
        time.sleep(0.005)
    process.send_signal(by)
    return process.communicate(timeout=120)[0]


@pytest.mark.slow
def test_the_command_resumes_after_a_kill_and_after_ctrl_c(tmp_path: Path) -> None:
    process, log = start(tmp_path, "killed")
    stop(process, log, 10, signal.SIGKILL)
    process, log = start(tmp_path, "interrupted")
    output = stop(process, log, 30, signal.SIGINT)
    assert (
        output.strip()
        .splitlines()[-1]
        .endswith("interrupted while playing; the same command resumes")
    )
    before = asked(log).total()
    process, log = start(tmp_path, "last")
    output = process.communicate(timeout=120)[0]
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
