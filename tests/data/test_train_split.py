"""The train split: from local parquet, or from the hub with the real ``datasets``."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import datasets
import pytest
from fakes.hub_server import HubServer
from huggingface_hub import constants
from PIL import Image
from typer.testing import CliRunner

from proactivebench_tasks.cli.app import app
from proactivebench_tasks.config import DATA_DIR
from proactivebench_tasks.data import train_split
from proactivebench_tasks.data.train_split import COLUMNS
from proactivebench_tasks.errors import DataError

HUB_NAME = "data/train-00000-of-00001.parquet"


@pytest.fixture(autouse=True)
def own_cache_of_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.delenv(DATA_DIR, raising=False)


def table(rows: int = 2, without: str = "") -> bytes:
    features = {
        "prompt": datasets.Value("string"),
        "ground_truth": datasets.Value("string"),
        "proactive_actions": datasets.List(datasets.Value("string")),
        "options": datasets.List(datasets.Value("string")),
        "qwen_conf": datasets.Value("float64"),
        "qwen_delta": datasets.Value("float64"),
        "llava_conf": datasets.Value("float64"),
        "llava_delta": datasets.Value("float64"),
        "images": datasets.List(datasets.Image()),
    }
    values = {
        "prompt": ["What is it?"] * rows,
        "ground_truth": ["A cup."] * rows,
        "proactive_actions": [["Rewind the video."]] * rows,
        "options": [["Rewind the video.", "I cannot tell."]] * rows,
        "qwen_conf": [0.5] * rows,
        "qwen_delta": [0.1] * rows,
        "llava_conf": [0.25] * rows,
        "llava_delta": [-0.1] * rows,
        "images": [[Image.new("RGB", (4, 4), (i, 2, 3))] * 2 for i in range(rows)],
    }
    for each in (features, values):
        each.pop(without, None)
    buffer = io.BytesIO()
    whole = datasets.Dataset.from_dict(values, features=datasets.Features(features))
    whole.to_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("place", ["train.parquet", HUB_NAME, f"../{HUB_NAME}"])
def test_parquet_in_or_beside_the_data_folder_is_read(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "repository" / "test"
    file = folder / place
    folder.mkdir(parents=True)
    file.resolve().parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(table())
    split = train_split.load(folder)
    assert tuple(split.column_names) == COLUMNS
    assert len(split) == 2
    assert split[1]["images"][0].getpixel((0, 0)) == (1, 2, 3)


def test_several_files_are_one_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        (tmp_path / f"train-0000{number}-of-00002.parquet").write_bytes(table())
    monkeypatch.setenv(DATA_DIR, str(tmp_path))
    assert len(train_split.load()) == 4


def test_lacking_column_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").write_bytes(table(without="qwen_delta"))
    with pytest.raises(DataError, match=r"lacks the column\(s\) qwen_delta; it has prompt, "):
        train_split.load(tmp_path)


def test_damaged_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match=str(tmp_path)):
        train_split.load(tmp_path)


def test_folder_that_is_named_and_has_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no train\*\.parquet in .*hf download"):
        train_split.load(tmp_path)


def test_command_shows_columns_and_writes_a_file(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").write_bytes(table())
    output = tmp_path / "out.parquet"
    arguments = ["train-data", "--data-dir", str(tmp_path), "--output", str(output)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "2 rows" in result.output
    assert all(name in result.output for name in COLUMNS)
    written = datasets.load_dataset("parquet", data_files=str(output), split="train")
    assert written[1]["images"][1].size == (4, 4)


@pytest.mark.slow
def test_hub_is_read_with_its_test_folder_beside(tmp_path: Path, own_cache: Path) -> None:
    files = {HUB_NAME: table(), "test/x.jsonl": b'{"id": "no train row"}\n', "test/a.zip": b"PK"}
    with HubServer(files) as hub:

        def run(offline: str) -> subprocess.CompletedProcess[str]:
            environment = os.environ | {
                "HF_ENDPOINT": hub.url,
                "HF_HOME": str(tmp_path / "home"),
                "PROACTIVEBENCH_CACHE": str(own_cache),
                "HF_HUB_OFFLINE": offline,
            }
            command = [sys.executable, "-m", "proactivebench_tasks", "train-data"]
            return subprocess.run(command, env=environment, capture_output=True, text=True)

        before = run(offline="1")
        assert before.returncode == 2
        assert "HF_HUB_OFFLINE" in before.stderr and "hf download" in before.stderr
        assert hub.requests == []
        online = run(offline="0")
        assert online.returncode == 0, online.stderr
        assert online.stdout.startswith("2 rows")
        assert hub.sent["test/a.zip"] == hub.sent["test/x.jsonl"] == 0
        asked = len(hub.requests)
        after = run(offline="1")
        assert (after.returncode, after.stdout) == (0, online.stdout), after.stderr
        assert len(hub.requests) == asked


def test_hub_that_is_not_there_is_told_at_once_with_the_command_for_this_split(
    tmp_path: Path,
) -> None:
    environment = os.environ | {
        "HF_ENDPOINT": "http://127.0.0.1:9",  # nobody listens there
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_OFFLINE": "0",
    }
    command = [sys.executable, "-m", "proactivebench_tasks", "train-data"]
    # datasets alone asks again and again, for 24 seconds.
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=15)
    assert run.returncode == 2
    assert "refused" in run.stderr and "hf download" in run.stderr
    assert "train-data --data-dir DIR" in run.stderr
    assert "proactivebench download" not in run.stderr  # which fetches the test data
    assert len(run.stderr.splitlines()) == 1


def test_split_in_the_hugging_face_cache_is_read_without_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "hub"
    file = cache / "datasets--tdemin16--ProactiveBench" / "snapshots" / "abc" / HUB_NAME
    file.parent.mkdir(parents=True)
    file.write_bytes(table())
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert len(train_split.load()) == 2
