"""What all tests share: a cache folder of their own, the official protocol read once, the log, and
a laboratory for whole evaluations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Before torch is imported: tests run in several processes, and each would take every core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from loguru import logger

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.protocol import Protocol

if TYPE_CHECKING:
    from fakes.probe import Lab

#: Where the published wheel is kept between runs; it is the only thing tests take from there.
KEPT_WHEEL = cache_dir() / published.WHEEL


@pytest.fixture(scope="session")
def official() -> Protocol:
    """The official protocol. Tests that ask for it are marked ``network``."""
    return published.load()


@pytest.fixture(autouse=True)
def own_cache(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A cache folder for this test alone: no rows of another test, nothing left in the user's.

    No other variable of ours reaches the tests, nor a judge that the user has configured.
    """
    if request.node.get_closest_marker("network"):
        request.getfixturevalue("official")  # fetched into the user's cache, once for all tests
    folder = tmp_path_factory.mktemp("cache")
    if KEPT_WHEEL.is_file():
        (folder / published.WHEEL).symlink_to(KEPT_WHEEL)
    for name in list(os.environ):
        if name.startswith(("PROACTIVEBENCH_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PROACTIVEBENCH_CACHE", str(folder))
    return folder


@pytest.fixture
def log() -> Iterator[list[str]]:
    """What is logged during the test, of all levels: a text ``LEVEL message`` each."""
    lines: list[str] = []
    sink = logger.add(lines.append, level=0, format="{level} {message}")
    yield lines
    logger.remove(sink)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A laboratory for evaluations, without data yet. A test module that needs the same data in all
    its tests has a fixture of this name that makes them."""
    from fakes.probe import Lab  # here, because it imports the harness, which takes seconds

    return Lab(tmp_path, monkeypatch)
