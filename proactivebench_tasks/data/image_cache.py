"""ImageCache: the files of images that were read over the network, kept on disk.

When they take more room than is allowed, those that were not read for the longest time are deleted.
Any number of threads and processes may use the folder at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from proactivebench_tasks import config
from proactivebench_tasks.files import digest, locked, written_whole

_KEPT = 0.9  # share of the limit that is still in use after the oldest files were deleted
_UNCHECKED = 0.05  # share of the limit that a process adds before it measures the folder again


def folder() -> Path:
    """Where all images are kept."""
    return config.cache_dir() / "frames"


class ImageCache:
    """A folder of byte strings that holds ``limit`` bytes at most, give or take what each process
    adds between two measurements of the folder."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        # Bytes added since the folder was measured. As many as can be at first, so that the folder
        # is measured at once: it may be full.
        self._unchecked = limit

    @classmethod
    def configured(cls) -> ImageCache:
        """The images in the cache folder, with the limit that ``PROACTIVEBENCH_FRAMES_GB`` sets."""
        return cls(folder(), int(config.get().frames_gb * 1e9))

    def get(self, key: str, intact: Callable[[bytes], bool], fetch: Callable[[], bytes]) -> bytes:
        """The content that is kept under ``key``, or else what ``fetch`` returns, which is kept.

        ``intact`` tells whether what is kept is still the right content. Whoever asks for the same
        key while it is being fetched waits, so that it is fetched once. What ``fetch`` raises is
        passed on. A folder that cannot be written only means that nothing is kept.
        """
        name = digest(key)[:32]
        file = self._folder / name[:2] / name
        if (content := self._read(file, intact)) is not None:
            return content
        with ExitStack() as held:
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(self._folder / f"{name[:2]}.lock"))
            except OSError:  # the folder cannot be written
                return fetch()
            if (content := self._read(file, intact)) is not None:
                return content
            content = fetch()
            self._keep(file, content)
            return content

    def _read(self, file: Path, intact: Callable[[bytes], bool]) -> bytes | None:
        try:
            content = file.read_bytes()
        except OSError:
            return None
        if not intact(content):
            return None
        with suppress(OSError):  # a shared folder may be read-only, and the file just deleted
            os.utime(file)  # by its time of change it is now the last one to be deleted
        return content

    def _keep(self, file: Path, content: bytes) -> None:
        if len(content) > self._limit:
            return
        try:
            with written_whole(file) as draft:
                draft.write_bytes(content)
        except OSError:  # the disk is full, or the folder cannot be written
            return
        self._unchecked += len(content)
        if self._unchecked >= self._limit * _UNCHECKED:
            self._unchecked = 0
            self._clear_up()

    def _clear_up(self) -> None:
        """Delete the files that were not read for the longest time if there are too many bytes."""
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
