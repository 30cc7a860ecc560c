"""Download: the rows and archives that some datasets need, fetched into a folder.

An archive is fetched in pieces, several at a time, which are written in their order to a file
``*.part``. So an interrupted download leaves the archive's beginning, and the next one goes on
behind it. huggingface_hub's own download starts a file anew after it was interrupted, which with
archives of tens of gigabytes may never end.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from loguru import logger
from tqdm import tqdm

from proactivebench_tasks import config
from proactivebench_tasks.data import rows
from proactivebench_tasks.data.hub import Hub, HubFile
from proactivebench_tasks.data.hub_store import HubStore
from proactivebench_tasks.data.zip_index import normal
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import format_size, written_whole
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
        lock = FileLock(folder / ".download.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            logger.info(f"another download into {folder} is running; waiting for it")
            lock.acquire()
        try:
            for dataset in datasets:
                with written_whole(folder / dataset.jsonl) as draft:
                    shutil.copyfile(hub.rows(dataset.jsonl), draft)
            wanted = plan(hub, datasets, folder, protocol)
            _fetch_all(hub, [each for each in wanted if each.left], folder)
            return [each.file for each in wanted]
        finally:
            lock.release()
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
                _fetch(hub, each, bar, pool)
    finally:
        pool.shutdown(cancel_futures=True)


def _fetch(hub: Hub, wanted: Wanted, bar: tqdm[None], pool: ThreadPoolExecutor) -> None:
    """Fetch what is lacking of a file, check the whole of it, and move it to its place."""
    file, part = wanted.file, wanted.part
    wanted.target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with part.open("a+b") as out:
        out.seek(0)
        while block := out.read(PIECE):
            digest.update(block)
        for block in _pieces(hub, file, out.tell(), pool):
            out.write(block)
            digest.update(block)
            bar.update(len(block))
    size = part.stat().st_size
    if size != file.size or file.sha256 not in (None, digest.hexdigest()):
        part.unlink()
        raise DataError(
            f"{wanted.target} came out wrong: {size:,} bytes, SHA-256 {digest.hexdigest()}; "
            f"expected {file.size:,} bytes, SHA-256 {file.sha256}. It was deleted; run the command "
            "again"
        )
    part.replace(wanted.target)


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
