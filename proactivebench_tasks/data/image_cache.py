"""ImageCache: images read over the network, kept on disk up to a bounded size.

When there are too many, those that were not read for the longest time are deleted. Any number of
threads and processes may use the folder at once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from proactivebench_tasks import config
from proactivebench_tasks.files import written_whole

_KEPT = 0.9  # share of the limit that is left after clearing up
_UNCHECKED = 0.05  # share of it that a process adds before it looks at the folder again


class ImageCache:
    """A bounded folder of byte strings. ``limit`` is in bytes."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._unchecked = limit  # bytes added since the folder was looked through; many at first

    @classmethod
    def configured(cls) -> ImageCache:
        """The one in the cache folder."""
        configured = config.get()
        return cls(configured.cache_folder / "frames", int(configured.frames_gb * 1e9))

    def get(self, key: str, intact: Callable[[bytes], bool], fetch: Callable[[], bytes]) -> bytes:
        """What is kept under ``key`` if it is intact, else what ``fetch`` returns, kept from then.

        Whoever asks for the same key meanwhile waits: an image is fetched once.
        """
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        file = self._folder / name[:2] / name
        if (content := self._read(file, intact)) is not None:
            return content
        lock = FileLock(self._folder / f"{name[:2]}.lock")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError:  # a folder that cannot be written is no reason not to show the image
            return fetch()
        try:
            if (content := self._read(file, intact)) is not None:
                return content
            content = fetch()
            self._keep(file, content)
            return content
        finally:
            lock.release()

    def _read(self, file: Path, intact: Callable[[bytes], bool]) -> bytes | None:
        try:
            content = file.read_bytes()
        except OSError:
            return None
        if not intact(content):
            return None
        with suppress(OSError):  # a cache that is shared may be read-only, or just cleared
            os.utime(file)
        return content

    def _keep(self, file: Path, content: bytes) -> None:
        if len(content) > self._limit:
            return
        try:
            with written_whole(file) as draft:
                draft.write_bytes(content)
        except OSError:  # a full disk is no reason not to show the image
            return
        self._unchecked += len(content)
        if self._unchecked >= self._limit * _UNCHECKED:
            self._unchecked = 0
            self._clear_up()

    def _clear_up(self) -> None:
        """Delete the oldest if the folder is over its limit."""
        files = []
        for file in self._folder.glob("??/*"):
            try:
                status = file.stat()
            except FileNotFoundError:
                continue
            files.append((status.st_mtime, status.st_size, file))
        total = sum(size for _, size, _ in files)
        if total > self._limit:
            for _, size, file in sorted(files):
                if total <= self._limit * _KEPT:
                    break
                file.unlink(missing_ok=True)
                total -= size
