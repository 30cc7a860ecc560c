"""Command ``proactivebench info``: where everything is, how large, what is missing, how to get it.

Only this machine is looked at; no request is made to the hub.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

import typer
from huggingface_hub import constants

from proactivebench_tasks import config
from proactivebench_tasks.cli import cache
from proactivebench_tasks.data import rows
from proactivebench_tasks.data.hub import LICENCE
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.errors import DataError, ProtocolError
from proactivebench_tasks.files import format_size
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset

_PACKAGES = ("proactivebench-tasks", "lmms-eval", "huggingface_hub", "fsspec", "datasets", "pillow")


def info() -> None:
    """Where data, protocol and caches are, how large, which versions, and what is missing.

    Nothing is fetched, and nobody is asked.

    Example: proactivebench info
    """
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
    official = _official()
    if official is None:
        yield "not on this disk: `proactivebench protocol fetch` gets it"
    else:
        yield f"{official.version} from {official.origin}"


def _official() -> Protocol | None:
    """The official protocol, ``None`` if it would have to be fetched."""
    try:
        return published.load() if published.is_here() else None
    except ProtocolError:
        return None


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
    official, lacking = _official(), []
    for dataset in Dataset:
        files = [folder.rows(dataset) for folder in store.folders]
        if found := [file for file in files if os.path.lexists(file)]:
            yield f"  {dataset.task:<18}{_samples(found[0], dataset, official)}"
        else:
            lacking.append(dataset.task)
            state = "on the hub, fetched when needed" if store.fetches else "missing"
            yield f"  {dataset.task:<18}{dataset.jsonl} {state}"
    if lacking:
        why = "to have the rest on this disk" if store.fetches else "to get what is missing"
        options = f"--datasets {','.join(lacking)}" + (f" --data-dir {named}" if named else "")
        yield f"{why}: proactivebench download {options}"
    yield "to see whether all images are there: proactivebench verify --quick"


def _samples(file: Path, dataset: Dataset, official: Protocol | None) -> str:
    """How many samples a jsonl has, of how many that the protocol lists; or what is wrong."""
    faults: list[DataError] = []
    try:
        found = list(rows.read(file, dataset, faults.append))
    except DataError as error:
        return str(error)
    if official is None:
        counted = f"{len(found):,} rows"
    else:
        evaluated = {each.sample.id for each in found if rows.is_evaluated(official, each)}
        counted = f"{len(evaluated):,}"
        if (listed := official.listed(dataset)) is not None:
            counted += f" of {len(listed):,}"
        counted += " samples"
    if faults:
        rows_at_fault = f"{len(faults):,} row" + ("s" if len(faults) > 1 else "")
        counted += f", {rows_at_fault} at fault: `proactivebench verify`"
    return f"{counted:<22}{file} ({format_size(file.stat().st_size)})"


def _caches() -> Iterator[str]:
    yield from cache.lines()
    yield "to clear what runs make again: proactivebench cache clear"
    yield f"{constants.HF_HUB_CACHE}, of huggingface_hub: `hf cache ls`"


def _variables() -> Iterator[str]:
    """Every variable, its value where it is set, else its default in brackets."""
    values = config.values()
    for name, field in config.variables().items():
        yield f"{name:<38}{values.get(name, f'({config.default_of(field)})')}"
