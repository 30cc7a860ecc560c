"""The examples run, and print what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proactivebench_tasks.data.rows import read
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.transcripts.transcript import Transcript

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(*command: object, folder: Path) -> str:
    """What a command prints; it runs in a folder of its own, offline."""
    environment = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_CACHE": str(folder / "datasets"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        env=os.environ | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def lmms_eval(*arguments: object, folder: Path) -> list[dict[str, Any]]:
    """The rows of the samples file that an evaluation leaves in ``out``."""
    run(
        *("-m", "lmms_eval", "--model", "proactivebench_baseline", *arguments),
        *("--log_samples", "--output_path", folder / "out"),
        folder=folder,
    )
    (samples,) = (folder / "out").rglob("*_samples_*.jsonl")
    return [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]


def printed(text: str) -> dict[str, float]:
    """Metrics by name, from lines of a name and a number."""
    return {name: float(value) for name, value in map(str.split, text.splitlines())}


def test_episode_in_ten_lines(tmp_path: Path) -> None:
    text = run(EXAMPLES / "episode_in_ten_lines.py", folder=tmp_path)
    assert text.count("\n> ") == 2
    assert "as a suggestion: mismatch, as a category: correct" in text
    assert "num_turns=2, correct_prediction=True" in text.splitlines()[-1]


def test_score_a_transcript(tmp_path: Path) -> None:
    samples = tmp_path / "run_samples_demo.jsonl"
    lines, asked = [], 0
    for number, row in enumerate(read(Suite.DEMO.store.rows(Dataset.ROD), Dataset.ROD)):
        episode = Episode(row.sample, Suite.DEMO.protocol)
        if number % 2:  # every other sample asks once
            episode.step(episode.correct_suggestions[0])
            asked += 1
        episode.step(row.sample.answer)
        once = [turn.answer for turn in episode.turns]
        record = Transcript.of(episode, once, [False] * len(once)).to_json()
        lines.append(json.dumps({"filtered_resps": record}) + "\n")
    samples.write_text("".join(lines), encoding="utf-8")
    found = printed(run(EXAMPLES / "score_a_transcript.py", samples, folder=tmp_path))
    share = asked / len(lines)
    wanted = {"acc": 100 * share, "ps": share, "asked": 100 * share}  # ROD: who asked is right
    wanted |= {"max_steps": 0, "mismatch": 0, "failed": 0, "reused": 0}
    assert found == pytest.approx(wanted, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mcqa", "oeg"])
def test_score_of_a_real_run_is_the_one_in_its_results(tmp_path: Path, kind: str) -> None:
    task = f"proactivedemo_{kind}_changeit"
    lmms_eval("--tasks", task, "--limit", 5, folder=tmp_path)
    (samples,) = (tmp_path / "out").rglob("*_samples_*.jsonl")
    (results,) = (tmp_path / "out").rglob("*_results.json")
    scores = json.loads(results.read_text(encoding="utf-8"))["results"][task]
    found = printed(run(EXAMPLES / "score_a_transcript.py", samples, folder=tmp_path))
    assert found
    for name, value in found.items():
        assert value == pytest.approx(scores[f"{name},none"], abs=1e-3), name


@pytest.mark.slow
def test_own_task(tmp_path: Path) -> None:
    task = "my_demo_rod_with_hint_and_history"
    rows = lmms_eval(
        *("--include_path", EXAMPLES / "own_task", "--tasks", task),
        *("--model_args", "policy=oracle", "--limit", 3),
        folder=tmp_path,
    )
    settings = [json.loads(row["filtered_resps"])["setting"] for row in rows]
    assert settings == [{"hint": True, "history": True, "short_edge": 112}] * 3
    assert [row["acc"] for row in rows] == [100] * 3


@pytest.mark.slow
def test_own_policy(tmp_path: Path) -> None:
    lines = run(EXAMPLES / "own_policy.py", folder=tmp_path).splitlines()
    results = [line for line in lines if line.startswith("proactivedemo")]
    assert len(results) == 8
    assert all("acc 100.00   ps 1.000" in line for line in results)
