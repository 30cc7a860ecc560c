"""Lets our tasks find every answer that lies below the folder of ``--use_cache``.

lmms-eval's response cache keeps the answers of a run in files of that run, and copies them to
``cache.db``, which later runs read, only when the run ends well. While requests of our tasks are
played, ``apply`` changes four things about it:

- What other runs have stored is found even if they did not end well, whatever their folders are
  called and however many ranks they had.
- A failure or an empty answer, which the cache of an older release may hold, is never served.
- The keys hold what tells one turn from another, and the release of lmms-eval. lmms-eval itself
  puts the git commit of whatever repository surrounds it into them, and the task's configuration,
  in which there are paths, metrics and repeats: so after a commit of the user's, or with another
  cache folder of ours, nothing would be found.
- Where the files cannot be merged in the end, on a full disk for instance, the results of the run
  are not lost with them.

Needed since lmms-eval 0.7.0, its last point since 0.7.1. This can go once lmms-eval reads the files
of runs that did not end well, refuses failures, has nothing in its keys that does not change an
answer, and survives a merge that fails.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from loguru import logger

from proactivebench_tasks.model_patches import place
from proactivebench_tasks.rollout.checked_model import is_worth_keeping

#: The columns of the database. A line of a log has them, too.
_COLUMNS = {
    "cache_key": str,
    "request_type": str,
    "task_name": str,
    "doc_id": int,
    "idx": int,
    "gen_kwargs": str,
    "response": str,
    "created_at": float,
}
_INSERT = (
    f"INSERT OR REPLACE INTO responses ({', '.join(_COLUMNS)}) "
    f"VALUES ({', '.join('?' * len(_COLUMNS))})"
)
#: How a line of a log begins. The texts in a line have their quotes escaped, so it stands nowhere
#: else in the line.
_LINE_START = '{"cache_key": '


@contextmanager
def apply(cache: Any, requests: Sequence[Any]) -> Iterator[None]:
    """Let ``cache`` serve our tasks, whose requests these are, within the ``with`` block.

    Other tasks find it as it was before, but for the answers to our requests that were taken in. A
    ``cache`` of ``None``, a run without one, stays as it is. ``HarnessError`` if the cache of this
    lmms-eval lacks something that is needed here.
    """
    if cache is None:
        yield
        return
    lookup, configurations = place.find(cache, "_lookup"), place.find(cache, "_task_fingerprints")

    def find_answer(key: str) -> Any:
        found = lookup(key)
        return found if _is_answer(found) else None

    root = _root(cache)
    if root is not None:
        _survive_the_merge(cache)
        _set_aside_if_damaged(root / "cache.db")
        version = place.find(cache, "_eval_version")
        cache._eval_version = _version_in_our_keys(version)
    cache._lookup = find_answer
    cache._task_fingerprints = {}  # what they would add, `Rollout.turn_id` has
    try:
        _take_in(cache, root, requests)
        yield
    finally:
        del cache._lookup
        cache._task_fingerprints = configurations
        if root is not None:
            cache._eval_version = version


def _root(cache: Any) -> Path | None:
    """The folder of ``--use_cache``, in which each run has a folder of its own.

    ``None`` with lmms-eval 0.7.0, which has no such folders: all runs of a model write to the same
    files, ``rank0.jsonl`` and so on, one for each rank. ``None`` also if the cache was not made for
    ``--use_cache``, but by somebody's own code.
    """
    if Path(place.find(cache, "audit_path")).match("rank[0-9]*.jsonl"):
        return None
    root = place.find(cache, "_cache_root")
    return None if root is None else Path(root)


def _is_answer(response: Any) -> bool:
    """Whether a stored response is an answer: a text, or a pair of a text and its token counts."""
    text = response[0] if isinstance(response, list) and response else response
    return isinstance(text, str) and is_worth_keeping(text)


def _version_in_our_keys(version: str) -> str:
    """The version of lmms-eval in the keys of our requests; ``version`` is the one in all others.

    That is a git commit, if there is one. It says something of lmms-eval only if lmms-eval runs
    from a checkout of its own. Else it is the commit of the repository that lmms-eval is installed
    in, or with lmms-eval 0.7.1 and 0.7.2 of the one that the command runs in.
    """
    commit = place.find("lmms_eval.utils", "get_git_commit_hash")
    release = place.release()
    return release if release and version == commit() else version


# Answers of other runs.


def _take_in(cache: Any, root: Path | None, requests: Sequence[Any]) -> None:
    """Put into the cache what other runs have stored of the answers to these requests' documents.

    The other runs' files are read and left as they are: such a run may still be going on. What goes
    wrong here costs answers, which are asked again, but not the run.
    """
    documents = {(request.task_name, request.doc_id) for request in requests}
    model = place.find(cache, "_model_fingerprint_hash")
    _drop_failures(cache, sorted({task for task, _ in documents}))
    taken = 0
    for log in _logs(Path(cache.audit_path), root):
        try:
            rows = {
                record["cache_key"]: [record[column] for column in _COLUMNS]
                for record in _records(log)
                if (record["task_name"], record["doc_id"]) in documents
                and record.get("model_fingerprint_hash", "") == model
                and _is_stored_answer(record["response"])
                and cache._lookup(record["cache_key"]) is None
            }
            cache.db.executemany(_INSERT, rows.values())
            cache.db.commit()
            taken += len(rows)
        except (OSError, sqlite3.Error) as error:
            logger.warning(f"{log}: its answers are not found and will be asked again: {error}")
    if taken:
        logger.info(f"resuming: {taken} answers of other runs were taken in")


def _drop_failures(cache: Any, tasks: Sequence[str]) -> None:
    """Delete what is no answer from the run's own database, where it would hide the answers of
    ``cache.db``. When lmms-eval opens the database, it fills it with all that is in the log."""
    with suppress(sqlite3.Error):  # the runner says so when it comes to use the cache
        cache.db.create_function("is_answer", 1, _is_stored_answer)
        cache.db.execute(
            f"DELETE FROM responses WHERE task_name IN ({', '.join('?' * len(tasks))}) "
            "AND NOT is_answer(response)",
            tasks,
        )
        cache.db.commit()


def _logs(own: Path, root: Path | None) -> list[Path]:
    """The files that runs have written their answers to; ``own`` is that of the present run.

    lmms-eval writes each answer twice, first into a log of text lines and then into a database. The
    logs are read here. They hold every answer, even one that a killed run had no more time to put
    into the database. And to read them takes neither locks, which network disks may lack, nor the
    right to write.
    """
    if root is None:
        return sorted(own.parent.glob("rank[0-9]*.jsonl"))
    # Where ``root`` is on a network disk, a run writes to a disk of its machine, and copies its
    # files to ``root`` from time to time. So those on this machine may hold more than the copies.
    runs = root / "runs"
    folders = {parent / run.name for run in runs.iterdir() for parent in (runs, own.parents[1])}
    logs = sorted(log for folder in folders for log in folder.glob("rank_*.audit.jsonl"))
    # The last holds what runs that ended well have merged, for where their folders were deleted.
    return [*logs, *root.glob("cache.audit.jsonl")]


def _records(log: Path) -> Iterator[dict[str, Any]]:
    """What the lines of a log say, those that lmms-eval wrote.

    A line that was cut off when its run was killed is passed over. If a run of the same id has gone
    on in the file, a whole line stands right behind the piece.
    """
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                record = json.loads(line[max(0, line.rfind(_LINE_START)) :])
            except ValueError:
                continue
            if isinstance(record, dict) and all(
                isinstance(record.get(column), kind) for column, kind in _COLUMNS.items()
            ):
                yield record


def _is_stored_answer(response: str) -> bool:
    try:
        return _is_answer(json.loads(response))
    except ValueError:
        return False


# Damage.


def _survive_the_merge(cache: Any) -> None:
    """Let files that cannot be merged in the end be an error in the log, not one of the run."""
    merge = place.find(cache, "finalize")

    def finalize(*args: Any, **kwargs: Any) -> None:
        try:
            merge(*args, **kwargs)
        except (OSError, sqlite3.Error) as error:
            logger.error(
                f"the answers of this run could not be copied to cache.db ({error!r}). The results "
                "are not touched by that, and ProactiveBench finds the answers in the run's own "
                "folder; other tasks may ask again"
            )

    cache.finalize = finalize


def _set_aside_if_damaged(database: Path) -> None:
    """Rename a ``cache.db`` that is no database any more; else lmms-eval cannot merge into it."""
    if not database.exists():
        return
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=10)) as db:
            db.execute("SELECT * FROM responses").fetchone()
    except sqlite3.OperationalError:
        pass  # it is locked, for instance, and not damaged
    except sqlite3.DatabaseError as error:
        aside = database.with_name("cache.db.damaged")
        logger.warning(f"{database} is damaged ({error}): set aside as {aside.name}")
        with suppress(FileNotFoundError):  # another rank was faster
            database.replace(aside)
