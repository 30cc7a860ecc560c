"""Makes a killed run resume: the response cache takes in what unfinished runs have stored.

lmms-eval writes each run's answers into a folder of its own, ``runs/<random id>``, and copies them
to ``cache.db``, which later runs read, only when the run ends well. So the answers of a killed run
are on disk and never found. And where that copy fails, a full disk or a damaged ``cache.db``,
the whole run fails with it, after its last answer. This can go once lmms-eval reads the ones and
survives the others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from loguru import logger

T = TypeVar("T")

_COLUMNS = "cache_key, request_type, task_name, doc_id, idx, gen_kwargs, response, created_at"
_INSERT = (
    f"INSERT OR IGNORE INTO responses ({_COLUMNS}) "
    f"VALUES ({', '.join('?' * len(_COLUMNS.split(', ')))})"
)


def adopt(cache: Any) -> int:
    """Take in the answers of runs that did not end well, once for each cache; returns their number.

    The other runs' files are read and left as they are, for a run may still be going on. One that
    cannot be read is passed over with a warning; a damaged ``cache.db`` is set aside.
    """
    if getattr(cache, "adopted", False) or not getattr(cache, "_cache_root", None):
        return 0
    cache.adopted = True
    _spare_results(cache)
    root = Path(cache._cache_root)
    _set_aside_if_damaged(root / "cache.db")
    own = Path(cache.db_path).resolve()
    before = cache.db.total_changes
    for path in sorted(root.glob("runs/*/rank_*.db")):
        if path.resolve() == own or (path.parent / ".merged").exists():
            continue
        try:
            _read(path, lambda other: cache.db.executemany(_INSERT, other))
        except sqlite3.Error as error:
            logger.warning(f"{path}: answers of an earlier run cannot be read: {error}")
    cache.db.commit()
    if adopted := cache.db.total_changes - before:
        logger.info(f"resuming: {adopted} answers of runs that did not end were taken in")
    return adopted


def _spare_results(cache: Any) -> None:
    """Let a cache that cannot be merged in the end, on a full disk, not take the results along."""
    merge = cache.finalize

    def finalize(*args: Any, **kwargs: Any) -> None:
        try:
            merge(*args, **kwargs)
        except (OSError, sqlite3.Error) as error:
            logger.error(
                f"the response cache could not be brought in order ({error!r}): later runs may ask "
                "again what this one asked. The results are not touched by that"
            )

    cache.finalize = finalize


def _read(path: Path, use: Callable[[sqlite3.Cursor], T]) -> T:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=10)) as other:
        return use(other.execute(f"SELECT {_COLUMNS} FROM responses"))


def _set_aside_if_damaged(path: Path) -> None:
    if not path.exists():
        return
    try:
        _read(path, lambda rows: rows.fetchone())
    except sqlite3.OperationalError:
        pass  # locked, say; not damaged
    except sqlite3.DatabaseError as error:
        aside = path.with_name("cache.db.damaged")
        logger.warning(f"{path} is damaged ({error}): set aside as {aside.name}; a new one is made")
        path.replace(aside)
