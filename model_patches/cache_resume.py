"""Makes a killed run resume: the response cache takes in what unfinished runs have stored.

lmms-eval writes each run's answers into a folder of its own, ``runs/<random id>``, and copies them
to ``cache.db``, which later runs read, only when the run ends well. So the answers of a killed run
are on disk and never found. This can go once lmms-eval reads them.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from loguru import logger

_COLUMNS = "cache_key, request_type, task_name, doc_id, idx, gen_kwargs, response, created_at"


def adopt(cache: Any) -> int:
    """Take in the answers of runs that did not end well, once for each cache; returns their number.

    The other runs' files are read and left as they are, for a run may still be going on. One that
    cannot be read is passed over with a warning.
    """
    if getattr(cache, "adopted", False) or not getattr(cache, "_cache_root", None):
        return 0
    cache.adopted = True
    own = Path(cache.db_path).resolve()
    before = cache.db.total_changes
    for path in sorted(Path(cache._cache_root).glob("runs/*/rank_*.db")):
        if path.resolve() == own or (path.parent / ".merged").exists():
            continue
        try:
            other = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
            try:
                rows = other.execute(f"SELECT {_COLUMNS} FROM responses")
                marks = ", ".join("?" * len(_COLUMNS.split(", ")))
                cache.db.executemany(
                    f"INSERT OR IGNORE INTO responses ({_COLUMNS}) VALUES ({marks})", rows
                )
            finally:
                other.close()
        except sqlite3.Error as error:
            logger.warning(f"{path}: answers of an earlier run cannot be read: {error}")
    cache.db.commit()
    if adopted := cache.db.total_changes - before:
        logger.info(f"resuming: {adopted} answers of runs that did not end were taken in")
    return adopted
