"""``proactivebench judge``: what it says, and how soon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from fakes.judge_server import Act, JudgeServer, record
from typer.testing import CliRunner

from proactivebench_tasks.cli.app import app

#: Runs the command, and prints which of the slow libraries were imported by its end.
COMMAND = """
import sys
from proactivebench_tasks.cli.app import app
try:
    app(["judge", *sys.argv[1:]])
finally:
    slow = {"torch", "transformers", "lmms_eval", "datasets", "pandas", "numpy", "openai", "nltk"}
    print("imported:", *sorted(slow & set(sys.modules)))
"""


def judge(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    environment = {**os.environ, **{f"PROACTIVEBENCH_{name}": value for name, value in env.items()}}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two tasks of a run that judged nothing."""
    for task in ("proactivebench_oeg_vsod", "proactivebench_oeg_coco"):
        records = [record(i, judge={"kind": "later"}).to_json() for i in range(8)]
        lines = [json.dumps({"doc_id": i, "filtered_resps": r}) for i, r in enumerate(records)]
        path = tmp_path / "results" / f"20260101_120000_samples_{task}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    return tmp_path / "results"


@pytest.mark.parametrize(
    ("folder", "env", "told"),
    [
        ("nowhere", {}, "nowhere does not exist; expected a folder"),
        ("nowhere", {"JUDGE": "openai"}, "there is no server: set PROACTIVEBENCH_JUDGE_URL"),
        ("results", {}, "open-ended answers need a judge, and none is configured"),
        ("results", {"JUDGE": "later"}, "set PROACTIVEBENCH_JUDGE to openai, hf or lexical"),
        ("results", {"JUDGE": "oracle"}, "PROACTIVEBENCH_JUDGE is 'oracle'"),
        ("results", {"JUDGE_RETRIES": "-1"}, "PROACTIVEBENCH_JUDGE_RETRIES is '-1'"),
    ],
)
def test_what_is_missing_is_said_before_anything_slow_is_imported(
    folder: str, env: dict[str, str], told: str, results: Path
) -> None:
    ended = judge(results.parent / folder, **env)
    assert told in ended.stderr
    assert ended.stderr.startswith("proactivebench: ")
    assert (ended.returncode, ended.stdout) == (2, "imported:\n")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path, **env: str) -> Result:
    """The command in this process."""
    with monkeypatch.context() as patched:
        for name, value in env.items():
            patched.setenv(f"PROACTIVEBENCH_{name}", value)
        return CliRunner().invoke(app, ["judge", *map(str, arguments)])


def test_server_that_knows_no_key_is_told_of_once_and_what_was_judged_is_kept(
    results: Path, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with JudgeServer(lambda number, _: Act() if number < 3 else Act(status=401)) as server:
        env = {"JUDGE": "openai", "JUDGE_URL": server.url, "JUDGE_CONCURRENCY": "1"}
        ended = run(monkeypatch, results, **env)
        assert ended.exit_code == 1
        assert "".join(log).count("status 401 Unauthorized") == 1
        assert "! vsod: 5 of 8 samples have no verdict and count as 0" in ended.stdout
        server.script = lambda *_: Act()
        server.attempts.clear()
        again = run(monkeypatch, results, **env)
    assert (again.exit_code, "no verdict" in again.stdout) == (0, False)
    assert server.attempts == dict.fromkeys(range(3, 8), 1)


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_published_parsing_is_asked_for_and_noted(
    how: str, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--official-parsing"] if how == "flag" else []
    variable = {"JUDGE_OFFICIAL_PARSING": "1"} if how == "variable" else {}
    with JudgeServer(lambda *_: Act(content="<think>so 1, 0, 0, 0 or", finish="length")) as server:
        env = {"JUDGE": "openai", "JUDGE_URL": server.url}
        strict = run(monkeypatch, results, **env)
        official = run(monkeypatch, results, *options, **env, **variable)
    assert "! vsod: 8 of 8 samples have no verdict and count as 0" in strict.stdout
    assert (official.exit_code, "no verdict" in official.stdout) == (0, False)
    (path,) = results.glob("*_results_judged.json")
    assert json.loads(path.read_text())["judge"]["official_parsing"] is True


def test_reply_in_the_file_that_is_none_is_asked_for_again(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judged copy of an older version may be all that is at hand, without its cache."""
    said = {"kind": "openai", "model": "Qwen/Qwen3-8B", "comparable": True, "verdict": [1, 0, 0, 0]}
    raws = ["<think>so 1, 0, 0, 0 or", "<think>.</think>1, 0, 0, 0"]
    records = [record(i, judge=said | {"raw": raw}).to_json() for i, raw in enumerate(raws)]
    path = results / "20260102_120000_samples_proactivebench_oeg_vsod.jsonl"
    path.write_text("".join(json.dumps({"filtered_resps": text}) + "\n" for text in records))
    with JudgeServer() as server:
        env = {"JUDGE": "openai", "JUDGE_URL": server.url}
        assert run(monkeypatch, path, **env).exit_code == 0
    assert server.attempts == {0: 1}
