"""ReplyCache: what judges said, on disk, so that no question is asked twice.

Kept is the reply as it came, whether or not there is a usable verdict in it: asking again until
there is one would flatter the model. A question that got no reply is not kept.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType

from filelock import FileLock

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.errors import JudgeError

_BUSY_SECONDS = 60.0  # how long one process waits for another's write


class ReplyCache:
    """Replies by ``Question.key``. Any number of processes of one machine may share the file."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the file, or make it; by default the one in ``cache_dir()``. ``JudgeError`` if that
        cannot be."""
        path = path or cache_dir() / "verdicts.sqlite"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            with FileLock(f"{path}.lock"):  # switching to WAL does not wait for others by itself
                self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")  # a killed process loses nothing
            self._db.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, raw TEXT)")
        except (OSError, sqlite3.Error) as error:
            raise JudgeError(
                f"the cache of judges' replies, {path}, cannot be used: {error}. Set "
                "PROACTIVEBENCH_CACHE to a folder that can be written to"
            ) from error

    def get(self, key: str) -> str | None:
        row = self._db.execute("SELECT raw FROM replies WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def put(self, key: str, raw: str, replace: bool = False) -> str:
        """Keep a reply; returns the one that is kept: the first to arrive, unless ``replace``."""
        conflict = "DO UPDATE SET raw = excluded.raw" if replace else "DO NOTHING"
        self._db.execute(
            f"INSERT INTO replies VALUES (?, ?) ON CONFLICT (key) {conflict}", (key, raw)
        )
        return self.get(key) or raw

    def __enter__(self) -> ReplyCache:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()
