"""The command ``proactivebench``: what it prints and how it ends."""

from __future__ import annotations

import gzip
import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from proactivebench_tasks.cli.app import app
from proactivebench_tasks.protocol import published

EPISODES = Path(__file__).parents[1] / "vectors" / "episodes.jsonl.gz"


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def differing(tmp_path: Path) -> Path:
    """The first 30 recorded episodes, all of them with a turn too many."""
    path = tmp_path / "differing.jsonl"
    with gzip.open(EPISODES, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for _, line in zip(range(30), lines, strict=False)]
    path.write_text("".join(json.dumps(r | {"num_turns": 99}) + "\n" for r in records))
    return path


def test_replay_without_wording_agrees() -> None:
    result = command("replay", "--no-wording", EPISODES)
    assert (result.exit_code, result.stdout) == (0, "420 episodes, 0 differ\n")


@pytest.mark.network
def test_replay_agrees() -> None:
    result = command("replay", EPISODES)
    assert (result.exit_code, result.stdout) == (0, "420 episodes, 0 differ\n")


def test_replay_of_what_differs_fails_and_names_the_first_twenty(differing: Path) -> None:
    result = command("replay", "--no-wording", differing)
    first, *others = result.stdout.splitlines()
    assert (result.exit_code, first, len(others)) == (1, "30 episodes, 30 differ", 20)
    assert others[1] == (
        "  Realistic-Occlusion-Dataset, line 2, num_turns: recorded 99, ours "
        + others[1].split()[-1]
    )


def test_replay_of_several_files_gives_a_line_each_and_fails_if_one_differs(
    differing: Path,
) -> None:
    result = command("replay", "--no-wording", differing, EPISODES)
    counts = [line for line in result.stdout.splitlines() if not line.startswith(" ")]
    assert (result.exit_code, counts) == (1, ["30 episodes, 30 differ", "420 episodes, 0 differ"])


def test_replay_of_a_missing_file_is_a_message(tmp_path: Path) -> None:
    result = command("replay", "--no-wording", tmp_path / "gone.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"proactivebench: {tmp_path / 'gone.jsonl'}: cannot be read")


def test_replay_of_a_file_that_is_no_text_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_bytes(b"\xff\xfe")
    result = command("replay", "--no-wording", tmp_path / "broken.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "broken.jsonl: cannot be read" in result.stderr


def test_replay_tells_of_each_row_that_cannot_be_played(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text('{}\n{"dataset": "QuickDraw"}\nnonsense\n')
    result = command("replay", "--no-wording", tmp_path / "broken.jsonl")
    assert (result.exit_code, result.stdout.splitlines()[:-1]) == (
        1,
        [
            "3 episodes, 3 differ",
            "  line 1, cannot be compared: field 'dataset' is missing",
            "  QuickDraw, line 2, cannot be compared: field 'sample' is missing",
        ],
    )
    last = result.stdout.splitlines()[-1]
    assert last.startswith("  line 3, cannot be compared: not JSON: ")


def test_replay_needs_a_file() -> None:
    result = command("replay")
    assert result.exit_code == 2 and "files" in result.stderr.lower()


@pytest.fixture
def no_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an installed package, nor a wheel, nor a network."""
    monkeypatch.setattr(published, "_installed", lambda: None)
    monkeypatch.setattr(published, "load", published.load.__wrapped__)  # whatever is loaded already
    monkeypatch.setenv("PROACTIVEBENCH_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("PROACTIVEBENCH_OFFLINE", "1")


@pytest.mark.parametrize("arguments", [["protocol"], ["replay", str(EPISODES)]], ids=" ".join)
def test_protocol_that_cannot_be_had_is_a_message_with_the_command_that_fetches_it(
    no_protocol: None, arguments: list[str]
) -> None:
    result = command(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "proactivebench protocol fetch" in result.stderr


def test_replay_without_wording_needs_no_protocol(no_protocol: None) -> None:
    assert command("replay", "--no-wording", EPISODES).exit_code == 0


@pytest.mark.network
def test_protocol_shows_version_origin_and_counts() -> None:
    result = command("protocol")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["version", "proactivebench-0.1.1"]
    assert lines[1][0] == "origin" and "proactivebench" in lines[1][1]
    assert lines[3:] == [
        ["Realistic-Occlusion-Dataset", "88"],
        ["OcclusionDataSet-MM20", "42"],
        ["MVP-N", "2591"],
        ["ImageNet-C", "1095"],
        ["QuickDraw", "2105"],
        ["ChangeIt", "396"],
        ["coco2014", "1240"],
        ["all", "7557"],
    ]


@pytest.mark.network
def test_fetch_prints_where_the_wheel_is(own_cache: Path) -> None:
    result = command("protocol", "fetch")
    assert (result.exit_code, result.stdout.strip()) == (0, str(own_cache / published.WHEEL))


def test_help_names_the_commands() -> None:
    result = command("--help")
    assert result.exit_code == 0
    assert "replay" in result.stdout and "protocol" in result.stdout


def test_installed_command_is_this_one(differing: Path) -> None:
    installed = Path(sys.executable).with_name("proactivebench")
    arguments = [installed, "replay", "--no-wording", differing]
    run = subprocess.run(arguments, capture_output=True, text=True)
    assert (run.returncode, run.stdout.splitlines()[0]) == (1, "30 episodes, 30 differ")
    assert run.stderr == ""


@pytest.mark.parametrize("command", ["verify", "download"])
def test_an_unknown_dataset_is_named_before_anything_else(command: str) -> None:
    outcome = CliRunner().invoke(app, [command, "--datasets", "foo"])
    assert outcome.exit_code == 2
    assert "unknown dataset 'foo'" in outcome.output


def test_chance_of_the_demo() -> None:
    outcome = CliRunner().invoke(app, ["chance", "--demo"])
    assert outcome.exit_code == 0
    first, *rows, last = outcome.output.splitlines()
    assert first.split() == [
        "normal:",
        "acc",
        "ps",
        "reference:",
        "acc",
        "ps",
        "random:",
        "acc",
        "ps",
    ]
    assert len(rows) == 7
    assert last.split()[:5] == ["mean", "16.91", "0.282", "25.00", "0.000"]


def commands() -> list[tuple[str, ...]]:
    """All commands that there are, each with the words that call it."""
    root = typer.main.get_command(app)
    found: list[tuple[str, ...]] = [()]
    for name, one in root.commands.items():  # type: ignore[attr-defined]
        found.append((name,))
        found += [(name, below) for below in getattr(one, "commands", {})]
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_help_of_every_command_has_an_example_of_it(words: tuple[str, ...]) -> None:
    result = command(*words, "--help")
    assert result.exit_code == 0
    example = " ".join(result.stdout.partition("Example: ")[2].split())
    assert " ".join(("proactivebench", *words)) in example


def test_version_is_that_of_the_package() -> None:
    result = command("--version")
    assert result.exit_code == 0
    assert result.stdout.strip() == importlib.metadata.version("proactivebench-tasks")


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--version"], "0."), (["replay", "--help"], "Usage: proactivebench ")]
)
def test_package_is_the_command_when_python_runs_it(arguments: list[str], said: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "proactivebench_tasks", *arguments], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert said in run.stdout


@pytest.fixture
def no_home(tmp_path: Path) -> dict[str, str]:
    """An environment whose home folder cannot be written by anyone: it is a file."""
    (tmp_path / "home").touch()
    unset = ("PROACTIVEBENCH_", "HF_", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    return kept | {"HOME": str(tmp_path / "home"), "HF_ENDPOINT": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    "arguments",
    [["protocol", "fetch"], ["chance", "--demo"], ["download", "--datasets", "rod"]],
    ids=" ".join,
)
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the published package is installed there")
def test_home_that_cannot_be_written_is_told_with_the_variables_to_set(
    no_home: dict[str, str], arguments: list[str]
) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "proactivebench_tasks", *arguments],
        env=no_home,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1
    assert "cannot be written" in run.stderr
    assert "PROACTIVEBENCH_CACHE" in run.stderr and "HF_HOME" in run.stderr


def test_info_works_where_the_home_cannot_be_written(no_home: dict[str, str]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "proactivebench_tasks", "info"],
        env=no_home,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert no_home["HOME"] in run.stdout
