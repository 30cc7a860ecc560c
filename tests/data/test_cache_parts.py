"""The cache folder: its parts are shown, and cleared, and nothing else in it is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import world
from fakes.hub_server import zipped
from typer.testing import CliRunner

from proactivebench_tasks.cli.app import app
from proactivebench_tasks.data import image_cache, prepared, zip_index
from proactivebench_tasks.data.cache_parts import CachePart
from proactivebench_tasks.data.download import Wanted
from proactivebench_tasks.data.hub import HubFile, HubListing
from proactivebench_tasks.data.hub_store import downloads
from proactivebench_tasks.data.image_cache import ImageCache
from proactivebench_tasks.data.store import LocalStore
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.judge.reply_cache import ReplyCache
from proactivebench_tasks.protocol.samples import Dataset

ROD = Dataset.ROD


def command(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["cache", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def full(own_cache: Path, tmp_path: Path) -> Path:
    """A cache folder in which every part holds something, and some files that are not ours."""
    data = world.make(tmp_path / "data", {ROD: [1, 2]})
    (data / "a.zip").write_bytes(zipped(data, ROD.value))
    assert LocalStore(data).archives.read(f"{ROD.value}/0_0.png")
    ImageCache.configured().get("key", lambda content: True, lambda: b"content")
    prepared.prepared(Suite.DEMO, ROD)
    HubListing("a" * 40, ()).save()
    below = downloads() / "below"
    below.mkdir(parents=True)
    part = Wanted(HubFile("c.zip", 9, "12345678"), downloads() / "c.zip").part
    for path in (downloads() / ROD.jsonl, downloads() / "a.zip", below / "b.zip", part):
        path.write_bytes(b"downloaded")
    wheel = next(own_cache.glob("*.whl"), None)
    if wheel is None:
        (own_cache / "proactivebench-0.1.1-py3-none-any.whl").write_bytes(b"wheel")
    with ReplyCache() as replies:
        replies.put("key", "reply")
    for name in ("notes.txt", "data/thesis.tex", "rows/mine.txt", "directories/mine.db"):
        (own_cache / name).write_bytes(b"not ours")
    return own_cache


OTHERS = {"notes.txt", "data/thesis.tex", "rows/mine.txt", "directories/mine.db"}


def held(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_parts_are_shown_with_their_sizes(full: Path) -> None:
    lines = {line.split()[0]: line for line in command().splitlines()[1:]}
    assert list(lines) == [part.value for part in CachePart]
    assert "40 bytes" in lines["downloads"]
    assert "7 bytes" in lines["images"]
    assert all(part.size() > 0 for part in CachePart)
    said = CliRunner().invoke(app, ["info"]).stdout
    assert all(line.strip() in said for line in lines.values())


def test_clearing_takes_what_runs_make_again_and_nothing_else(full: Path) -> None:
    before = held(full)
    command("clear")
    gone = before - held(full)
    assert {name.partition("/")[0] for name in gone} == {
        "directories",
        "frames",
        "hub.json",
        "rows",
    }
    assert {part for part in CachePart if part.size() == 0} == {
        CachePart.INDEXES,
        CachePart.IMAGES,
        CachePart.ROWS,
    }
    assert held(full) >= OTHERS


@pytest.mark.parametrize("part", CachePart)
def test_part_that_is_named_is_cleared_alone(full: Path, part: CachePart) -> None:
    sizes = {each: each.size() for each in CachePart}
    said = command("clear", part.value)
    assert said.split()[0] == part.value and said.split()[-1] == "deleted"
    assert {each: each.size() for each in CachePart} == sizes | {part: 0}
    assert held(full) >= OTHERS


def test_all_parts_can_be_cleared_and_are_made_again(full: Path, tmp_path: Path) -> None:
    command("clear", *(part.value for part in CachePart))
    assert {name for name in held(full) if not name.endswith(".lock")} == OTHERS
    assert LocalStore(tmp_path / "data").archives.read(f"{ROD.value}/0_0.png")
    assert prepared.prepared(Suite.DEMO, ROD).is_file()


def test_nothing_is_cleared_where_nothing_is(own_cache: Path) -> None:
    for folder in (zip_index.folder(), image_cache.folder(), prepared.folder()):
        assert not folder.exists()
    assert command("clear").split() == [
        *("indexes", "0", "bytes", "deleted"),
        *("images", "0", "bytes", "deleted"),
        *("rows", "0", "bytes", "deleted"),
    ]


def test_unknown_part_is_named_with_those_that_there_are(own_cache: Path) -> None:
    result = CliRunner().invoke(app, ["cache", "clear", "everything"])
    assert result.exit_code == 2
    assert "everything" in result.output and "indexes" in result.output
