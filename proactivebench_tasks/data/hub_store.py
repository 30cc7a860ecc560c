"""HubStore: rows and images from the hub, without downloading its archives.

Of an archive only the list of its members and single images are read; the cache folder keeps both.
What is on this disk already, because of ``proactivebench download`` or in the Hugging Face cache,
is read from there.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO

import huggingface_hub
from huggingface_hub import constants
from loguru import logger

from proactivebench_tasks import config
from proactivebench_tasks.data.hub import (
    FOLDER,
    REPO,
    Hub,
    HubFile,
    HubListing,
    hub_errors,
    offline,
)
from proactivebench_tasks.data.image_cache import ImageCache
from proactivebench_tasks.data.store import Folders, LocalStore, NetworkRead, Store
from proactivebench_tasks.data.zip_archive import ZipArchive, ZipArchives
from proactivebench_tasks.data.zip_index import Member, normal
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import format_size
from proactivebench_tasks.protocol.samples import Dataset

_INDEXES_AT_ONCE = 8


def downloads() -> Path:
    """Where ``proactivebench download`` puts the data if no folder is named."""
    return config.cache_dir() / "data"


class HubArchive(ZipArchive):
    """An archive on the hub. Its images are kept in ``images``."""

    advice = "If that happens again, run `proactivebench download`, and it is read from disk"

    def __init__(self, hub: Hub, file: HubFile, images: ImageCache) -> None:
        super().__init__(f"hub:{REPO}/{FOLDER}/{file.path}", file.etag, file.size)
        self.file = file
        self._hub = hub
        self._images = images
        self._fetched = 0  # bytes of this archive's images that this process has read
        self._warned = False

    @property
    def address(self) -> str:
        return f"hf://{self._hub.address(self.file)}"

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        with (
            hub_errors(f"the index of {FOLDER}/{self.file.path}"),
            self._hub.open(self.file) as stream,
        ):
            yield stream

    def bytes_at(self, start: int, end: int) -> bytes:
        return self._hub.bytes_at(self.file, start, end)

    def content(self, member: Member) -> bytes:
        return self._images.get(
            key=f"{self.version} {member.path}",
            intact=lambda content: zlib.crc32(content) == member.crc,
            fetch=lambda: self._fetch(member),
        )

    def _fetch(self, member: Member) -> bytes:
        content = super().content(member)
        self._fetched += member.packed
        so_far = NetworkRead(self.name, self._fetched, self.size)
        if so_far.is_much and not self._warned:
            self._warned = True
            logger.warning(
                f"this run has read {so_far}, and goes on. Without --limit it is faster to run "
                "`proactivebench download --datasets ...` once, before"
            )
        return content


class HubStore(Store):
    """The hub's test folder, and what of it is on this disk."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._images = ImageCache.configured()
        self._lock = threading.Lock()
        self._archives: ZipArchives | None = None

    def __str__(self) -> str:
        return f"hub:{REPO}/{FOLDER}"

    @cached_property
    def folders(self) -> tuple[LocalStore, ...]:
        """The folder of downloads, and the test folder in the Hugging Face cache if rows of any
        dataset are there: whoever fetched the data with ``hf download`` has the archives, too."""
        saved = HubListing.saved()
        revision = saved.commit if saved else None
        folders = [downloads()]
        for dataset in Dataset:
            cached = huggingface_hub.try_to_load_from_cache(
                REPO, f"{FOLDER}/{dataset.jsonl}", repo_type="dataset", revision=revision
            )
            if isinstance(cached, str):
                folders.append(Path(cached).parent)
                break
        return tuple(LocalStore(folder) for folder in folders if folder.is_dir())

    @cached_property
    def _here(self) -> Folders:
        return Folders(self.folders)

    @property
    def origin(self) -> list[str]:
        state = ", which HF_HUB_OFFLINE forbids to ask" if offline() else ""
        listing = HubListing.saved()
        seen = f"commit {listing.commit[:8]}" if listing else "not asked yet"
        lines = [f"read from the hub, {seen}{state}", f"  {constants.ENDPOINT}/datasets/{REPO}"]
        for file in listing.archives if listing else ():
            lines.append(f"  on the hub        {file.path} ({format_size(file.size)})")
        return lines

    @property
    def archives(self) -> ZipArchives:
        """The hub's archives, their indexes read."""
        if self._archives is None:
            with self._lock:  # of the threads that decode images, one reads the indexes for all
                if self._archives is None:
                    self._archives = self._indexed()
        return self._archives

    def _indexed(self) -> ZipArchives:
        files = self._hub.listing.archives
        archives = ZipArchives([HubArchive(self._hub, file, self._images) for file in files])
        archives.prepare(at_once=_INDEXES_AT_ONCE)
        return archives

    def rows(self, dataset: Dataset) -> Path:
        downloaded = downloads() / dataset.jsonl
        return downloaded if downloaded.is_file() else self._hub.rows(dataset.jsonl)

    def read(self, image_path: str) -> bytes | None:
        content = self._here.read(image_path)
        return self.archives.read(image_path) if content is None else content

    def __contains__(self, image_path: str) -> bool:
        return image_path in self._here or self.archives.find(image_path) is not None

    def locate(self, image_path: str) -> str:
        if (found := self._here.locate(image_path)) != image_path:
            return found
        # Nobody is asked only to tell where a file would be.
        return (self._archives and self._archives.locate(image_path)) or image_path

    def missing(self, image_path: str) -> str:
        return (
            f"image {image_path} is in none of the hub's archives ({self.archives.names}). If they "
            "were changed, `proactivebench info` tells which commit is used and where its files are"
        )

    def anew(self, image_path: str) -> str:
        with suppress(DataError):
            if image_path in self._here:
                return self._here.anew(image_path)
        return HubArchive.advice

    @property
    def fetches(self) -> bool:
        return not offline()

    def network_reads(self, image_paths: Collection[str]) -> list[NetworkRead]:
        wanted = {normal(path) for path in image_paths if path not in self._here}
        reads = []
        for archive in self.archives.all if wanted else ():
            index = self.archives.index(archive)
            read = sum(member.packed for member in index.among(wanted)) if index else 0
            reads.append(NetworkRead(archive.name, read, archive.size))
        return reads

    def on_disk(self) -> Store:
        if not self.folders:
            raise DataError(
                "nothing was downloaded, so all images would be read from the hub. Run "
                "`proactivebench download` before, or name a folder with --data-dir or "
                f"{config.DATA_DIR}; or add --quick, which only sees whether the images are there"
            )
        # First the folder into which what is missing would be fetched, then the Hugging Face cache.
        first = LocalStore(downloads())
        return Folders([first, *(each for each in self.folders if each.folder != first.folder)])
