"""Info: where everything is, how large it is, what is missing, and the command that gets it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import constants

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.data.hub import LICENCE, REPO, Listing, offline
from proactivebench_tasks.data.hub_store import RemoteData
from proactivebench_tasks.data.store import DataFolder
from proactivebench_tasks.data.suite import DATA_DIR, Source
from proactivebench_tasks.errors import DataError, ProtocolError
from proactivebench_tasks.protocol import protocol as protocols
from proactivebench_tasks.protocol.samples import Dataset

_PACKAGES = ("proactivebench-tasks", "lmms-eval", "huggingface_hub", "fsspec", "datasets", "pillow")


def describe() -> Iterator[str]:
    """The lines of the report. Nothing is asked from the hub."""
    yield from _section("versions", _versions())
    yield from _section("protocol", _protocol())
    yield from _section(f"data ({LICENCE}, no commercial use)", _data())
    yield from _section("caches", _caches())


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    yield title
    yield from (f"  {line}" for line in lines)


def _versions() -> Iterator[str]:
    for name in _PACKAGES:
        try:
            yield f"{name:<22}{importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            yield f"{name:<22}missing: pip install {name}"
    yield f"{'python':<22}{platform.python_version()}"


def _protocol() -> Iterator[str]:
    try:
        official = protocols.get("official")
    except ProtocolError as error:
        yield f"missing: {error}"
    else:
        yield f"{official.version} from {official.origin}"


def _data() -> Iterator[str]:
    named = os.environ.get(DATA_DIR)
    try:
        data = Source.OFFICIAL.data
    except DataError as error:
        yield str(error)
        return
    if isinstance(data, RemoteData):
        state = ", which HF_HUB_OFFLINE forbids to ask" if offline() else ""
        listing = Listing.saved()
        seen = f"commit {listing.commit[:8]}" if listing else "not asked yet"
        yield f"{DATA_DIR} is not set: read from the hub, {seen}{state}"
        yield f"  {constants.ENDPOINT}/datasets/{REPO}"
        for file in listing.archives if listing else ():
            yield f"  on the hub        {file.path} ({_size(file.size)})"
        folders = data.local
    else:
        assert isinstance(data, DataFolder)
        yield f"{DATA_DIR}={named}"
        folders = (data,)
    for folder in folders:
        yield f"{folder}, {_size(shutil.disk_usage(folder.folder).free)} free on its disk"
        for archive in folder.archives.all:
            yield f"  archive           {Path(archive.name).name} ({_size(archive.size)})"
    lacking: list[str] = []
    for dataset in Dataset:
        files = [folder.rows(dataset) for folder in folders]
        if found := [file for file in files if file.is_file()]:
            yield f"  {dataset.task:<18}{found[0]} ({_size(found[0].stat().st_size)})"
        else:
            lacking.append(dataset.task)
            yield f"  {dataset.task:<18}{dataset.jsonl} missing"
    if lacking:
        options = f"--datasets {','.join(lacking)}" + (f" --data-dir {named}" if named else "")
        yield f"to get what is missing: proactivebench download {options}"
    yield "to see whether all pictures are there: proactivebench verify --quick"


def _caches() -> Iterator[str]:
    for name in ("directories", "frames", "rows", "data"):
        folder = cache_dir() / name
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        yield f"{name:<22}{folder} ({_size(size)})"
    yield f"{'Hugging Face':<22}{constants.HF_HUB_CACHE}"


def _size(count: int) -> str:
    return f"{count / 1e9:,.2f} GB" if count >= 1e8 else f"{count / 1e6:,.2f} MB"
