"""Cache parts: what the cache folder holds, by kind, how large it is, and how it is cleared."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from proactivebench_tasks import config
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.samples import Dataset


class CachePart(Enum):
    """A part of the cache folder, by the name that a user types."""

    INDEXES = "indexes"
    IMAGES = "images"
    ROWS = "rows"
    DOWNLOADS = "downloads"
    WORDING = "wording"
    REPLIES = "replies"

    @property
    def what(self) -> str:
        """What it holds, for a user."""
        return _WHAT[self]

    @property
    def is_made_again(self) -> bool:
        """Whether runs make it again by themselves, at little cost."""
        return self in (CachePart.INDEXES, CachePart.IMAGES, CachePart.ROWS)

    def files(self) -> Iterator[Path]:
        """Its files. Only files of ours are among them, whatever else the cache folder holds."""
        for pattern in _PATTERNS[self]:
            yield from (path for path in config.cache_dir().glob(pattern) if path.is_file())

    def size(self) -> int:
        """Bytes of its files."""
        return sum(path.stat().st_size for path in self.files())

    def clear(self) -> int:
        """Delete its files; how many bytes that were. ``DataError`` if one cannot be deleted."""
        freed = 0
        for path in list(self.files()):
            try:
                size = path.stat().st_size
                path.unlink()
            except FileNotFoundError:  # another process was faster
                continue
            except OSError as error:
                raise DataError(f"{path} cannot be deleted: {error}") from error
            freed += size
        return freed


_WHAT = {
    CachePart.INDEXES: "directories of archives",
    CachePart.IMAGES: "images that were read from the hub",
    CachePart.ROWS: "rows, as lmms-eval loads them",
    CachePart.DOWNLOADS: "what `proactivebench download` fetched",
    CachePart.WORDING: "the published package",
    CachePart.REPLIES: "what judges replied; asking again may cost money",
}
#: By the names that the modules give them. The test clears what these modules have really made.
_PATTERNS: dict[CachePart, tuple[str, ...]] = {
    CachePart.INDEXES: ("directories/*.sqlite", "directories/*.sqlite.lock", "hub.json"),
    CachePart.IMAGES: ("frames/??/*", "frames/*.lock"),
    CachePart.ROWS: ("rows/*.jsonl",),
    CachePart.DOWNLOADS: (
        *(f"data/{dataset.jsonl}" for dataset in Dataset),
        *(f"data/{below}*.{end}" for below in ("", "*/") for end in ("zip", "part")),
        "data/.download.lock",
    ),
    CachePart.WORDING: (published.WHEEL, f"{published.WHEEL}.lock"),
    CachePart.REPLIES: ("verdicts.sqlite*",),
}
