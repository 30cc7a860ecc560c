"""The examples run, and print what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proactivebench_tasks.data.rows import read
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.transcripts.answer import Answer
from proactivebench_tasks.transcripts.record import Provenance
from proactivebench_tasks.transcripts.transcript import Transcript
from proactivebench_tasks.transcripts.variant import Variant

EXAMPLES = Path(__file__).parents[1] / "examples"
PAGE = Path(__file__).parents[1] / "docs" / "transcripts.md"


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
        answers = [Answer(turn.answer) for turn in episode.turns]
        origin = Provenance("demo", f"x-{row.line}", Variant(), (), str)
        record = Transcript.of(episode, answers, origin).to_json()
        lines.append(json.dumps({"filtered_resps": record}) + "\n")
    samples.write_text("".join(lines), encoding="utf-8")
    found = printed(run(EXAMPLES / "score_a_transcript.py", samples, folder=tmp_path))
    share = asked / len(lines)
    # ROD: who asked is right.
    wanted = {"acc": 100 * share, "acc_lenient": 100 * share, "ps": share, "asked": 100 * share}
    wanted |= dict.fromkeys(["max_steps", "mismatch", "cut", "failed", "reused"], 0)
    assert found == pytest.approx(wanted, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"), [("mcqa", []), ("oeg", []), ("mcqa", ["--repeats", 2])]
)
def test_score_of_a_real_run_is_the_one_in_its_results(
    tmp_path: Path, kind: str, options: list[Any]
) -> None:
    task = f"proactivedemo_{kind}_changeit"
    lmms_eval("--tasks", task, "--limit", 5, *options, folder=tmp_path)
    (samples,) = (tmp_path / "out").rglob("*_samples_*.jsonl")
    (results,) = (tmp_path / "out").rglob("*_results.json")
    part = json.loads(results.read_text(encoding="utf-8"))["proactivebench"]
    scores = {name: each["mean"] for name, each in part["tasks"][task]["metrics"].items()}
    found = printed(run(EXAMPLES / "score_a_transcript.py", samples, folder=tmp_path))
    assert found == pytest.approx(scores, abs=1e-3)


@pytest.mark.slow
def test_own_task(tmp_path: Path) -> None:
    task = "my_demo_rod_with_hint_and_history"
    rows = lmms_eval(
        *("--include_path", EXAMPLES / "own_task", "--tasks", task),
        *("--model_args", "policy=oracle", "--limit", 3),
        folder=tmp_path,
    )
    variants = [row["transcript"]["variant"] for row in rows]
    assert variants == [{"hint": True, "history": True, "short_edge": 112}] * 3
    assert [row["acc"] for row in rows] == [100] * 3


@pytest.mark.slow
def test_own_policy(tmp_path: Path) -> None:
    lines = run(EXAMPLES / "own_policy.py", folder=tmp_path).splitlines()
    results = [line for line in lines if line.startswith("proactivedemo")]
    assert len(results) == 8
    assert all("acc 100.00   ps 1.000" in line for line in results)


def blocks(language: str) -> list[str]:
    """The blocks of code in the page on transcripts."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    return list(map(str, found))


def like(record: Any) -> Any:
    """A record without what differs from machine to machine and from run to run."""
    for turn in record["turns"]:
        turn["file"] = turn["file"].partition("proactivebench_tasks/")[2]
    for cost in record["costs"]:
        cost["seconds"] = 0
    return record


@pytest.mark.slow
def test_page_on_transcripts_shows_a_real_record_and_how_to_read_it(tmp_path: Path) -> None:
    command, example = *blocks("bash"), *blocks("json")
    words = command.replace("\\\n", " ").split()
    run("-m", words[0].replace("-", "_"), *words[1:], folder=tmp_path)
    (samples,) = (tmp_path / "results").rglob("*_samples_*.jsonl")
    row = json.loads(samples.read_text(encoding="utf-8"))
    assert like(row["transcript"]) == like(json.loads(example))
    shown, score = (
        run("-c", re.sub(r"results/\w+\.jsonl", str(samples), code), folder=tmp_path)
        for code in blocks("python")
    )
    assert shown.splitlines() == ["(192, 144)"] * 2
    assert f"prints `{score.strip()}`" in PAGE.read_text("utf-8")
