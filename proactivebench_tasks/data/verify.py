"""Verify: whether the rows and images that an evaluation can need are there and can be read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tqdm import tqdm

from proactivebench_tasks.data import rows
from proactivebench_tasks.data.images import opened
from proactivebench_tasks.data.oddities import Oddity, oddities
from proactivebench_tasks.data.rows import Row
from proactivebench_tasks.data.store import Store
from proactivebench_tasks.environments import reachable
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset

_BLOCK = 4096  # images handed to the threads at a time


@dataclass(frozen=True)
class Findings:
    """How many samples and images of a dataset were found, and all that is wrong with them."""

    dataset: Dataset
    samples: int  # that are evaluated
    expected: int | None  # samples that the protocol lists; None if it takes any
    images: int  # that episodes of these samples can show
    faults: tuple[str, ...]  # a sentence each
    #: Images that are perhaps not shown as they were meant: "PATH (sample ID)" each.
    odd: Mapping[Oddity, tuple[str, ...]]


def verify(store: Store, dataset: Dataset, protocol: Protocol, quick: bool = False) -> Findings:
    """Check the rows that are evaluated and each image that an episode of theirs can show.

    Images are read and decoded, on all cores. With ``quick`` they only have to be there.
    """
    odd: dict[Oddity, list[str]] = {}
    at_fault: dict[str, list[str]] = {}  # what is wrong -> images
    faults: list[str] = []
    first_use: dict[str, int] = {}  # image path -> id of the first sample that shows it
    ids, samples = [], 0
    for row in _rows(store, dataset, faults):
        sample = row.sample
        ids.append(sample.id)
        if not rows.is_evaluated(protocol, row):
            continue
        samples += 1
        try:
            for path, window in reachable.views(sample):
                first_use.setdefault(path, sample.id)
                if window and not (window.left < window.right and window.top < window.bottom):
                    faults.append(f"sample {sample.id}: {window} on {path} shows nothing")
        except DataError as error:
            faults.append(f"{dataset.jsonl}: {error}")
    if ids:  # a file that cannot be had is one fault, not one and a list of all its samples
        faults += [f"{dataset.jsonl}: {what}" for what in rows.id_faults(protocol, dataset, ids)]
    for look in _looks(store, sorted(first_use), quick, dataset.task):
        if look.fault is not None:
            at_fault.setdefault(look.fault, []).append(look.path)
        for oddity in look.oddities:
            odd.setdefault(oddity, []).append(f"{look.path} (sample {first_use[look.path]})")
    for fault, paths in at_fault.items():  # an archive that cannot be read is one fault
        more = f" and {len(paths) - 1:,} more images" if len(paths) > 1 else ""
        faults.append(f"sample {first_use[paths[0]]}{more}: {fault}")
    listed = protocol.listed(dataset)
    return Findings(
        dataset=dataset,
        samples=samples,
        expected=None if listed is None else len(listed),
        images=len(first_use),
        faults=tuple(faults),
        odd={oddity: tuple(odd[oddity]) for oddity in Oddity if oddity in odd},
    )


def remarks(store: Store) -> list[str]:
    """What is odd about archives on disk and is no fault by itself: an archive that cannot be read
    may hold nothing that is needed, and a member that leads out of the folder is never read."""
    found = []
    for archive in (each for folder in store.folders for each in folder.archives.all):
        try:
            rejected = archive.index.rejected()
        except DataError as error:
            found.append(str(error))
        else:
            found += [f"archive {archive}: {name!r} {why}; never read" for name, why in rejected]
    return found


def _rows(store: Store, dataset: Dataset, faults: list[str]) -> Iterator[Row]:
    """The dataset's valid rows. What is wrong with others is added to ``faults``."""
    try:
        yield from rows.read(
            store.rows(dataset), dataset, on_fault=lambda error: faults.append(str(error))
        )
    except DataError as error:  # the file as a whole is missing or cannot be read
        faults.append(str(error))


@dataclass(frozen=True)
class _Look:
    """What was found of an image: what is wrong with it, if anything, and what is odd."""

    path: str
    fault: str | None = None
    oddities: frozenset[Oddity] = frozenset()


def _looks(store: Store, paths: list[str], quick: bool, task: str) -> Iterator[_Look]:
    """What is found of the images at these ``paths``. ``task`` is what the progress bar says."""

    def look(path: str) -> _Look:
        try:
            if not quick:
                image, _ = opened(store, path)
                return _Look(path, oddities=oddities(image))
            if path not in store:
                return _Look(path, store.missing(path))
        except DataError as error:
            return _Look(path, str(error))
        return _Look(path)

    # Threads use all cores, because reading, unpacking and decoding release the interpreter's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool, tqdm(total=len(paths), desc=task) as bar:
        for start in range(0, len(paths), _BLOCK):
            for found in pool.map(look, paths[start : start + _BLOCK]):
                bar.update()
                yield found
