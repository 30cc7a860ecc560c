"""Download: the rows and archives that some datasets need, fetched into a folder.

An archive is fetched in pieces, several at a time, which are written in their order to a file
``*.part``. So an interrupted download leaves the archive's beginning, and the next one goes on
behind it. huggingface_hub's own download starts a file anew after it was interrupted, which with
archives of tens of gigabytes may never end.

Two processes may fetch the same archive, where a shared disk has no locks. They write the same
bytes to the same places of one part, so they waste work but damage nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from loguru import logger
from tqdm import tqdm

from proactivebench_tasks import config
from proactivebench_tasks.data import rows
from proactivebench_tasks.data.hub import Hub, HubFile
from proactivebench_tasks.data.hub_store import HubStore
from proactivebench_tasks.data.zip_index import normal
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import format_size, locked, written_whole
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset

PIECE = 16 * 2**20  # bytes of one request
AT_ONCE = 8  # requests; times the size of a piece, this is the memory that a download takes


@dataclass(frozen=True)
class Wanted:
    """A file of the hub that is to be on disk, at ``target``."""

    file: HubFile
    target: Path

    @property
    def part(self) -> Path:
        """The file's beginning, as far as it was fetched. Its name tells the file's version, so
        that two versions are not mixed."""
        return self.target.with_name(f"{self.target.name}.{self.file.etag[:8]}.part")

    @property
    def left(self) -> int:
        """Bytes that are still to be fetched."""
        if self.target.is_file() and self.target.stat().st_size == self.file.size:
            return 0
        return self.file.size - (self.part.stat().st_size if self.part.is_file() else 0)


def download(
    hub: Hub, datasets: Sequence[Dataset], folder: Path, protocol: Protocol
) -> list[HubFile]:
    """Fetch rows and archives of some datasets into ``folder``; returns the archives they need.

    After a failure, the next download into the folder goes on where this one stopped. While one
    process works on a folder, others that want to wait for it. Raises ``DataError``, before any
    archive is fetched if the disk has too little room.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        waiting = f"another download into {folder} is running; waiting for it"
        with locked(folder / ".download.lock", waiting):
            for dataset in datasets:
                with written_whole(folder / dataset.jsonl) as draft:
                    shutil.copyfile(hub.rows(dataset.jsonl), draft)
            wanted = plan(hub, datasets, folder, protocol)
            _fetch_all(hub, [each for each in wanted if each.left], folder)
            return [each.file for each in wanted]
    except OSError as error:
        raise DataError(
            f"download into {folder} stopped: {type(error).__name__}: {error}. What was fetched is "
            "kept; run the same command again to go on. If the folder cannot be written, name "
            f"another with --data-dir, {config.DATA_DIR} or {config.CACHE}"
        ) from error


def plan(hub: Hub, datasets: Sequence[Dataset], folder: Path, protocol: Protocol) -> list[Wanted]:
    """The archives that ``download`` would have in ``folder``; nothing is written there.

    To tell which they are, rows and the directories of archives are read from the hub.
    """
    needed = archives(hub, datasets, protocol)
    return [Wanted(file, _inside(folder, file.path)) for file in needed]


def free_space(folder: Path) -> int:
    """Bytes that are free on the disk that a folder is on, or will be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def archives(hub: Hub, datasets: Sequence[Dataset], protocol: Protocol) -> list[HubFile]:
    """The archives that hold at least one image of the samples that are evaluated."""
    samples = (
        row.sample
        for dataset in datasets
        for row in rows.read(hub.rows(dataset.jsonl), dataset)
        if rows.is_evaluated(protocol, row)
    )
    paths = set(map(normal, rows.image_paths(samples)))
    held = {
        file: {member.path for member in archive.index.among(paths)}
        for file, archive in zip(hub.listing.archives, HubStore(hub).archives.all, strict=True)
    }
    if lacking := paths - set().union(*held.values()):
        logger.warning(
            f"{len(lacking)} of {len(paths)} images are in none of the hub's archives, the first "
            f"is {min(lacking)}"
        )
    return [file for file, found in held.items() if found]


def _fetch_all(hub: Hub, wanted: Sequence[Wanted], folder: Path) -> None:
    """Fetch these files one after the other; ``DataError`` if ``folder`` has no room for them."""
    need, free = sum(each.left for each in wanted), free_space(folder)
    if need > free:
        sizes = ", ".join(f"{each.file.path} {format_size(each.left)}" for each in wanted)
        raise DataError(
            f"{folder} has {format_size(free)} free, and {format_size(need)} are to be fetched "
            f"({sizes}). Make room, choose another folder with --data-dir, or fewer --datasets"
        )
    pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="download")
    try:
        with tqdm(total=need, unit="B", unit_scale=True, disable=not need) as bar:
            for each in wanted:
                bar.set_description(each.file.path)
                if each.left:  # else another process has fetched it meanwhile
                    _fetch(hub, each, bar, pool)
    finally:
        pool.shutdown(cancel_futures=True)


def _fetch(hub: Hub, wanted: Wanted, bar: tqdm[None], pool: ThreadPoolExecutor) -> None:
    """Fetch what is lacking of a file, check the whole of it, and move it to its place."""
    wanted.target.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(wanted.part, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as part:
        is_begun = os.fstat(part.fileno()).st_size > 0
        fault = _complete(hub, wanted.file, part, bar, pool)
        if fault and is_begun:
            logger.warning(f"{wanted.part} was damaged; fetching it from its beginning")
            bar.total += wanted.file.size
            fault = _complete(hub, wanted.file, part, bar, pool, anew=True)
    if fault:
        wanted.part.unlink(missing_ok=True)
        raise DataError(
            f"{wanted.target} came out wrong: {fault}. It was deleted; run the command again"
        )
    try:
        wanted.part.replace(wanted.target)
    except FileNotFoundError:
        if wanted.left:
            raise
        # Another process was faster, and has moved it.


def _complete(
    hub: Hub,
    file: HubFile,
    part: BinaryIO,
    bar: tqdm[None],
    pool: ThreadPoolExecutor,
    anew: bool = False,
) -> str | None:
    """Write what is lacking in ``part``, or with ``anew`` all of it; what is wrong with it then.

    ``part`` is never made empty, for another process may be writing to it.
    """
    found = hashlib.sha256()
    part.seek(0)
    while not anew and (block := part.read(PIECE)):
        found.update(block)
    for block in _pieces(hub, file, part.tell(), pool):
        part.write(block)
        found.update(block)
        bar.update(len(block))
    part.truncate()
    if part.tell() == file.size and file.sha256 in (None, found.hexdigest()):
        return None
    return (
        f"{part.tell():,} bytes, SHA-256 {found.hexdigest()}; expected {file.size:,} bytes, "
        f"SHA-256 {file.sha256}"
    )


def _pieces(hub: Hub, file: HubFile, start: int, pool: ThreadPoolExecutor) -> Iterator[bytes]:
    """The file's bytes from ``start`` on, in their order. Up to ``AT_ONCE`` pieces are requested
    before they are wanted."""
    coming: deque[Future[bytes]] = deque()
    for begin in range(start, file.size, PIECE):
        coming.append(pool.submit(hub.bytes_at, file, begin, min(begin + PIECE, file.size)))
        if len(coming) == AT_ONCE:
            yield coming.popleft().result()
    while coming:
        yield coming.popleft().result()


def _inside(folder: Path, name: str) -> Path:
    """The path of a file of this name in ``folder``; ``DataError`` if it would lie elsewhere."""
    target = folder / name
    if not target.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"the hub names a file {name!r}, which would be written outside {folder}")
    return target
