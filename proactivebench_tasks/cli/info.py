"""Command ``proactivebench info``: where everything is, how large, what is missing, how to get it.

Only this machine is looked at; no request is made to the hub.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

import typer
from huggingface_hub import constants

from proactivebench_tasks import config
from proactivebench_tasks.data import image_cache, prepared, zip_index
from proactivebench_tasks.data.hub import LICENCE
from proactivebench_tasks.data.hub_store import downloads
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.errors import DataError, ProtocolError
from proactivebench_tasks.files import format_size
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.samples import Dataset

_PACKAGES = ("proactivebench-tasks", "lmms-eval", "huggingface_hub", "fsspec", "datasets", "pillow")


def info() -> None:
    """Where data, protocol and caches are, how large, which versions, and what is missing."""
    for line in describe():
        typer.echo(line)


def describe() -> Iterator[str]:
    """The lines of the report. ``ConfigError`` instead of any line if a variable is at fault."""
    config.get()
    yield from _section("versions", _versions())
    yield from _section("protocol", _protocol())
    yield from _section(f"data ({LICENCE}, no commercial use)", _data())
    yield from _section("caches", _caches())
    yield from _section("variables", _variables())


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
        official = published.load()
    except ProtocolError as error:
        yield f"missing: {error}"
    else:
        yield f"{official.version} from {official.origin}"


def _data() -> Iterator[str]:
    named = config.get().data_dir
    try:
        store = Suite.OFFICIAL.store
    except DataError as error:
        yield str(error)
        return
    yield f"{config.DATA_DIR}={named}" if named else f"{config.DATA_DIR} is not set"
    yield from store.origin
    for folder in store.folders:
        yield f"{folder}, {format_size(shutil.disk_usage(folder.folder).free)} free on its disk"
        for archive in folder.archives.all:
            yield f"  archive           {Path(archive.name).name} ({format_size(archive.size)})"
    lacking: list[str] = []
    for dataset in Dataset:
        files = [folder.rows(dataset) for folder in store.folders]
        if found := [file for file in files if file.is_file()]:
            yield f"  {dataset.task:<18}{found[0]} ({format_size(found[0].stat().st_size)})"
        else:
            lacking.append(dataset.task)
            yield f"  {dataset.task:<18}{dataset.jsonl} missing"
    if lacking:
        options = f"--datasets {','.join(lacking)}" + (f" --data-dir {named}" if named else "")
        yield f"to get what is missing: proactivebench download {options}"
    yield "to see whether all images are there: proactivebench verify --quick"


def _caches() -> Iterator[str]:
    caches = {
        "zip indexes": zip_index.folder(),
        "images": image_cache.folder(),
        "prepared rows": prepared.folder(),
        "downloads": downloads(),
    }
    for name, folder in caches.items():
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        yield f"{name:<22}{folder} ({format_size(size)})"
    yield f"{'Hugging Face':<22}{constants.HF_HUB_CACHE}"


def _variables() -> Iterator[str]:
    """Every variable, its value where it is set, else its default in brackets."""
    values = config.values()
    for name, field in config.variables().items():
        yield f"{name:<34}{values.get(name, f'({config.default_of(field)})')}"
