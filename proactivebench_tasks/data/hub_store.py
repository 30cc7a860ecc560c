"""Remote data: rows and pictures from the hub, without downloading its archives.

Of an archive only the directory and single pictures are read; both stay in the cache folder. What
is on this disk already, by ``proactivebench download`` or in the Hugging Face cache, is read there.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO

import huggingface_hub
from loguru import logger

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.data.hub import FOLDER, REPO, Hub, Listing, Remote, answers
from proactivebench_tasks.data.image_cache import Frames
from proactivebench_tasks.data.store import DataFolder
from proactivebench_tasks.data.zip_archive import Archive, Archives
from proactivebench_tasks.data.zip_index import Member, normal
from proactivebench_tasks.environments.reachable import pictures
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Dataset, Sample

#: Share of an archive beyond which reading it picture by picture is the wrong way to do it.
REMOTE_SHARE = 0.05

_DIRECTORIES_AT_ONCE = 8


def downloads() -> Path:
    """Where ``proactivebench download`` puts the data if no folder is named."""
    return cache_dir() / "data"


class RemoteArchive(Archive):
    """An archive on the hub."""

    advice = "If that happens again, `proactivebench download` and read it from disk"

    def __init__(self, hub: Hub, file: Remote, frames: Frames) -> None:
        super().__init__(f"hub:{REPO}/{FOLDER}/{file.path}", file.etag, file.size)
        self.file = file
        self._hub = hub
        self._frames = frames
        self._fetched = 0
        self._warned = False

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        with (
            answers(f"the directory of {FOLDER}/{self.file.path}"),
            self._hub.open(self.file) as it,
        ):
            yield it

    def bytes_at(self, start: int, end: int) -> bytes:
        return self._hub.bytes_at(self.file, start, end)

    def content(self, member: Member) -> bytes:
        return self._frames.get(
            key=f"{self.version} {member.path}",
            intact=lambda content: zlib.crc32(content) == member.crc,
            fetch=lambda: self._fetch(member),
        )

    def _fetch(self, member: Member) -> bytes:
        content = super().content(member)
        self._fetched += member.packed
        if self._fetched > REMOTE_SHARE * self.size and not self._warned:
            self._warned = True
            logger.warning(
                f"this run has read {_megabytes(self._fetched)} of the {_megabytes(self.size)} of "
                f"{self} picture by picture, and goes on. Without --limit it is faster to run "
                "`proactivebench download --datasets ...` once, before"
            )
        return content


class RemoteData:
    """The hub's test folder."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._frames = Frames.cached()
        self._lock = threading.Lock()
        self._archives: Archives | None = None

    def __str__(self) -> str:
        return f"hub:{REPO}/{FOLDER}"

    @cached_property
    def local(self) -> tuple[DataFolder, ...]:
        """Folders on this disk that hold some of it."""
        saved = Listing.saved()
        revision = saved.commit if saved else None
        folders = [downloads()]
        for dataset in Dataset:
            cached = huggingface_hub.try_to_load_from_cache(
                REPO, f"{FOLDER}/{dataset.jsonl}", repo_type="dataset", revision=revision
            )
            if isinstance(cached, str):
                folders.append(Path(cached).parent)
                break
        return tuple(DataFolder(folder) for folder in folders if folder.is_dir())

    @property
    def archives(self) -> Archives:
        """The hub's archives, their directories read."""
        if self._archives is None:
            with self._lock:  # decoding threads ask at once; one of them reads the directories
                if self._archives is None:
                    self._archives = self._prepared()
        return self._archives

    def _prepared(self) -> Archives:
        files = self._hub.listing.archives
        archives = Archives([RemoteArchive(self._hub, file, self._frames) for file in files])
        archives.prepare(at_once=_DIRECTORIES_AT_ONCE)
        return archives

    def rows(self, dataset: Dataset) -> Path:
        downloaded = downloads() / dataset.jsonl
        return downloaded if downloaded.is_file() else self._hub.rows(dataset.jsonl)

    def read(self, path: str) -> bytes | None:
        for folder in self.local:
            if (content := folder.read(path)) is not None:
                return content
        return self.archives.read(path)

    def __contains__(self, path: str) -> bool:
        here = any(path in folder for folder in self.local)
        return here or self.archives.find(path) is not None

    def missing(self, path: str) -> str:
        names = ", ".join(archive.name for archive in self.archives.all) or "none"
        return (
            f"picture {path} is in none of the hub's archives ({names}). If they were changed, "
            "`proactivebench info` tells which commit is used and where its files are"
        )

    def announce(self, dataset: Dataset, samples: Iterable[Sample]) -> None:
        """Say so if playing all these samples can read much of an archive over the network."""
        paths = set()
        for sample in samples:
            with suppress(DataError):  # malformed samples are an error when they are played
                paths |= pictures(dataset, sample)
        wanted = {normal(path) for path in paths if not any(path in each for each in self.local)}
        for archive in self.archives.all if wanted else ():
            directory = self.archives.directory(archive)
            need = sum(member.packed for member in directory.among(wanted)) if directory else 0
            if need > REMOTE_SHARE * archive.size:
                logger.info(
                    f"{dataset.task}: a run without --limit can read {_megabytes(need)} of the "
                    f"{_megabytes(archive.size)} of {archive} picture by picture. It is faster to "
                    f"run `proactivebench download --datasets {dataset.task}` before"
                )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
