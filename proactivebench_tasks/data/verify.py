"""Verify: whether all that an evaluation can ask for is there and can be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from proactivebench_tasks.data import images
from proactivebench_tasks.data.store import Data, DataFolder
from proactivebench_tasks.data.suite import amiss, counts, read
from proactivebench_tasks.environments.reachable import views
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset, Sample

_BLOCK = 4096  # pictures handed to the threads at a time


@dataclass(frozen=True)
class Report:
    """What was found of a dataset: its samples and pictures, and all that is wrong with them."""

    dataset: Dataset
    samples: int
    expected: int | None  # samples; None where the protocol lists none
    pictures: int
    faults: tuple[str, ...]


def verify(data: Data, dataset: Dataset, protocol: Protocol, quick: bool = False) -> Report:
    """Check the rows of the evaluation and each picture that any state of their episodes shows.

    Pictures are read and decoded, on all cores; with ``quick`` it is only seen that they are there.
    """
    faults: list[str] = []
    first_use: dict[str, int] = {}
    ids, samples = [], 0
    for row, sample in _rows(data, dataset, faults):
        ids.append(sample.id)
        if not counts(protocol, dataset, row):
            continue
        samples += 1
        try:
            for path, window in views(dataset, sample):
                first_use.setdefault(path, sample.id)
                if window and not (window.left < window.right and window.top < window.bottom):
                    faults.append(f"sample {sample.id}: {window} on {path} shows nothing")
        except DataError as error:
            faults.append(f"{dataset.jsonl}: {error}")
    if ids:  # a file that cannot be had is one fault, not one and a list of all its samples
        faults += [f"{dataset.jsonl}: {what}" for what in amiss(protocol, dataset, ids)]
    faults += [
        f"sample {first_use[path]}: {fault}"
        for path, fault in _picture_faults(data, sorted(first_use), quick, dataset.task)
    ]
    listed = protocol.sample_ids[dataset] if protocol.sample_ids is not None else None
    expected = None if listed is None else len(listed)
    return Report(dataset, samples, expected, len(first_use), tuple(faults))


def remarks(data: Data) -> list[str]:
    """What is odd about archives on disk without being in an evaluation's way."""
    found = []
    for archive in data.archives.all if isinstance(data, DataFolder) else ():
        try:
            rejected = archive.directory.rejected()
        except DataError as error:
            found.append(str(error))
        else:
            found += [f"archive {archive}: {name!r} {why}; never read" for name, why in rejected]
    return found


def _rows(data: Data, dataset: Dataset, faults: list[str]) -> Iterator[tuple[Any, Sample]]:
    def on_fault(error: DataError) -> None:
        faults.append(str(error))

    try:
        for _, row, sample in read(data.rows(dataset), dataset, on_fault):
            yield row, sample
    except DataError as error:  # the file as a whole
        faults.append(str(error))


def _picture_faults(
    data: Data, paths: list[str], quick: bool, task: str
) -> Iterator[tuple[str, str]]:
    def fault(path: str) -> str | None:
        try:
            if not quick:
                images.picture(data, path, None)
            elif path not in data:
                return data.missing(path)
        except DataError as error:
            return str(error)
        return None

    # Threads, for reading, unpacking and decoding all let go of the interpreter's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool, tqdm(total=len(paths), desc=task) as bar:
        for start in range(0, len(paths), _BLOCK):
            block = paths[start : start + _BLOCK]
            for path, found in zip(block, pool.map(fault, block), strict=True):
                bar.update()
                if found is not None:
                    yield path, found
