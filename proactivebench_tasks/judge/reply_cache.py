"""ReplyCache: what judges said, on disk, so that no question is asked twice.

A reply is kept even if it holds no usable verdict: to ask again until there is a verdict would give
the evaluated model more chances than the published evaluation does. A question that got no reply,
for instance because the server was away, is not kept and so will be asked again. A reply that is
not whole is kept by runs that score it as the published script does, and dropped by all others.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType

from filelock import FileLock

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.judge.base import Reply

_BUSY_SECONDS = 60.0  # how long one process waits for another's write


class ReplyCache:
    """Replies by ``Question.key``. Any number of processes of one machine may share the file."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the file, or make it. The default is ``verdicts.sqlite`` in ``cache_dir()``.

        Raises ``JudgeError`` if the file can neither be opened nor made.
        """
        path = path or cache_dir() / "verdicts.sqlite"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            # SQLite's timeout does not cover the switch to WAL: two processes that switch at the
            # same time would get "database is locked".
            with FileLock(f"{path}.lock"):
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute(
                    "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, raw TEXT)"
                )
                columns = self._db.execute("PRAGMA table_info(replies)").fetchall()
                if "finish" not in {name for _, name, *_ in columns}:
                    self._db.execute("ALTER TABLE replies ADD COLUMN finish TEXT")
            # NORMAL does not wait for the disk at each write. A killed process still loses nothing;
            # only a machine that crashes may lose the last replies.
            self._db.execute("PRAGMA synchronous=NORMAL")
        except (OSError, sqlite3.Error) as error:
            raise JudgeError(
                f"the cache of judges' replies, {path}, cannot be used: {error}. Set "
                "PROACTIVEBENCH_CACHE to a folder that can be written to"
            ) from error

    def get(self, key: str) -> Reply | None:
        """The reply that is kept under a key, if there is one."""
        row = self._db.execute("SELECT raw, finish FROM replies WHERE key = ?", (key,)).fetchone()
        return Reply(row[0], finish=row[1]) if row else None

    def drop(self, key: str, reply: Reply) -> None:
        """Forget a reply, unless another process has put another in its place."""
        self._db.execute("DELETE FROM replies WHERE key = ? AND raw = ?", (key, reply.raw))

    def put(self, key: str, raw: str, finish: str | None = None, replace: bool = False) -> Reply:
        """Keep a reply, and return the reply that is now kept under the key.

        If there was one already, perhaps from another process a moment ago, that one stays and is
        returned, so that all processes score by the same reply. ``replace`` overwrites it instead.
        """
        update = "DO UPDATE SET raw = excluded.raw, finish = excluded.finish"
        self._db.execute(
            "INSERT INTO replies (key, raw, finish) VALUES (?, ?, ?) ON CONFLICT (key) "
            + (update if replace else "DO NOTHING"),
            (key, raw, finish),
        )
        return self.get(key) or Reply(raw, finish=finish)

    def __enter__(self) -> ReplyCache:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()
