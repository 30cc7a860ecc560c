"""A killed run resumes: what it had answered is not asked again, and the results are the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest


def command(folder: Path, cache: Path, log: Path) -> list[str]:
    runner = folder / "slow.py"
    runner.write_text(
        "import sys, time\n"
        "from proactivebench_tasks import baselines\n"
        f"LOG = {str(log)!r}\n"
        "class Slow(baselines.Baseline):\n"
        "    def generate_until(self, requests):\n"
        "        with open(LOG, 'a') as log:\n"
        "            for r in requests:\n"
        "                log.write(f'{r.task_name} {r.doc_id} {r.idx}\\n')\n"
        "        time.sleep(0.05)\n"
        "        return super().generate_until(requests)\n"
        "baselines.Baseline = Slow\n"
        "from lmms_eval.__main__ import cli_evaluate\n"
        "cli_evaluate()\n"
    )
    return [
        *(sys.executable, str(runner), "--model", "proactivebench_baseline"),
        *("--model_args", "policy=always_ask", "--tasks", "proactivedemo_mcqa_rod"),
        *("--batch_size", "1", "--use_cache", str(cache), "--log_samples"),
    ]


def run(folder: Path, name: str, kill_after: int | None = None) -> dict[str, Any]:
    """One run with its own output; killed once it has asked so many turns."""
    cache, log, out = folder / "cache", folder / "asked.log", folder / name
    if name == "clean":
        cache, log = folder / "clean-cache", folder / "clean.log"
    environment = os.environ | {"PROACTIVEBENCH_WINDOW": "4", "HF_HUB_OFFLINE": "1"}
    asked = len(log.read_text().splitlines()) if log.exists() else 0
    process = subprocess.Popen(
        [*command(folder, cache, log), "--output_path", str(out)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if kill_after is not None:
        while process.poll() is None:
            if log.exists() and len(log.read_text().splitlines()) >= asked + kill_after:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.005)
    output, _ = process.communicate(timeout=120)
    turns = log.read_text().splitlines()[asked:] if log.exists() else []
    samples = sorted(out.rglob("*_samples_*.jsonl"))
    rows = [json.loads(line) for path in samples for line in path.read_text().splitlines()]
    return {
        "turns": turns,
        "transcripts": {row["doc_id"]: row["filtered_resps"][0] for row in rows},
        "output": output,
        "killed": process.returncode == -signal.SIGKILL,
    }


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_the_same(tmp_path: Path) -> None:
    clean = run(tmp_path, "clean")
    assert len(clean["transcripts"]) == 16, clean["output"][-2000:]
    rng = random.Random(0)
    asked: list[str] = []
    for number in range(3):
        killed = run(tmp_path, f"killed{number}", kill_after=rng.randint(2, 16))
        assert killed["killed"] and not killed["transcripts"]
        asked += killed["turns"]
    last = run(tmp_path, "last")
    asked += last["turns"]
    assert last["transcripts"] == clean["transcripts"]
    assert set(asked) == set(clean["turns"])
    # Each kill repeats the turns of the call that it hit, at most a window of four.
    assert len(asked) <= len(clean["turns"]) + 3 * 4
    assert len(last["turns"]) < len(clean["turns"])
