"""Files: jsonl with line numbers, whole writes, locks, hashes and sizes as text."""

from __future__ import annotations

import errno
import functools
import gzip
import hashlib
import json
import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loguru import logger

from proactivebench_tasks import file_kinds
from proactivebench_tasks.errors import DataError, LineError
from proactivebench_tasks.file_kinds import Family

_QUOTED = 40  # letters of a line that a message quotes


def read_jsonl(
    path: Path, on_fault: Callable[[LineError], None] | None = None, anew: str = ""
) -> Iterator[tuple[int, Any]]:
    """The values of a ``.jsonl`` or ``.jsonl.gz`` file, each with its line number from 1.

    Blank lines are passed over. A line that is not JSON is passed over, too, if there is an
    ``on_fault`` to tell it to; else it raises ``LineError``. A file that cannot be read at all, or
    is something else, raises ``DataError``, which says what it is; one that does not exist,
    ``FileNotFoundError``. ``anew``: what gets the file anew, for messages.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig") as lines:
            is_first = True
            for number, text in enumerate(lines, start=1):
                if not text.strip():
                    continue
                try:
                    value = json.loads(text)
                except (ValueError, RecursionError) as error:
                    if is_first and (what := _impostor(path, anew)):
                        raise DataError(f"{path}: cannot be read: {what}") from error
                    fault = LineError(path, number, _not_json(text, error, anew))
                    if on_fault is None:
                        raise fault from error
                    on_fault(fault)
                else:
                    yield number, value
                is_first = False
    except FileNotFoundError:
        if (link := file_kinds.broken_link(path)) is not None:
            raise DataError(f"{path}: cannot be read: {link.explained(path, anew)}") from None
        raise
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        what = _impostor(path, anew) or _unreadable(path, error, anew)
        raise DataError(f"{path}: cannot be read: {what}") from error


def _impostor(path: Path, anew: str) -> str | None:
    """What the file is instead of a jsonl, and what to do; ``None`` if it may be a jsonl."""
    kind = file_kinds.of_file(path)
    if kind is None or kind.family is Family.TEXT:
        return None
    if path.suffix == ".gz" and kind.family is Family.PACKED:  # as it should be
        return None
    return kind.explained(path, anew)


def _not_json(text: str, error: Exception, anew: str) -> str:
    """Why a line is not JSON, and what to do where that can be told."""
    begin = text.strip()[:_QUOTED]
    reason = f"not JSON: {error}, in {begin!r}"
    if text.startswith("\ufeff"):
        return f"{reason}; a byte order mark begins the line, as where two files were joined"
    if text.endswith("\n"):
        return reason
    return f"{reason}; the file ends in this line, as after half a download" + _then(anew)


def _unreadable(path: Path, error: Exception, anew: str) -> str:
    """Why a file's content is no text, and what to do where that can be told."""
    if isinstance(error, UnicodeDecodeError):
        if error.reason == "unexpected end of data":
            return f"{error}; the file is cut short, as after half a download" + _then(anew)
        return f"{error}; {file_kinds.NOT_UTF8.explained(path, anew)}"
    if isinstance(error, EOFError):
        return f"{error}; the file is cut short, as after half a download" + _then(anew)
    return str(error)


def _then(anew: str) -> str:
    return f". {anew}" if anew else ""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """The path of a draft, for the ``with`` block to write; the draft becomes ``path`` at its end.

    Whoever reads ``path``, in any process, sees the old content or the new one, never a part of it.
    The folder is made if need be. When the block raises, ``path`` stays as it was and the draft is
    deleted.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # By chance and not by the process's number, which is the same on many a machine of a cluster.
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


#: Numbers of the OSError of a file system that has no locks, such as NFS without its lock service.
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextmanager
def locked(path: Path, waiting: str = "") -> Iterator[None]:
    """Keeps other processes out of the ``with`` block, by a lock on the file ``path``.

    This only saves work. Disks that machines share (Lustre, GPFS, NFS) may let two processes in
    without a word, and where there are no locks at all everybody is let in, with a warning. So what
    the block writes has to be right whoever else writes it. ``waiting`` is logged if another
    process is in the block. Raises ``OSError`` if ``path`` cannot be written.
    """
    from filelock import FileLock, Timeout  # here, because most of what reads files locks none

    lock = FileLock(path)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if waiting:
                logger.info(waiting)
            lock.acquire()
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in NO_LOCKS:
            raise
        _warn_of_no_locks(path.parent, str(error))
    try:
        yield
    finally:
        lock.release()


@functools.cache
def _warn_of_no_locks(folder: Path, reason: str) -> None:
    logger.warning(
        f"{folder} is on a disk without locks ({reason}). Nothing is damaged by it, but processes "
        "that start at the same time may fetch the same files"
    )


def digest(*texts: str) -> str:
    """The SHA-256 of some texts, in hexadecimal: a name for a file that is made from them."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def format_size(count: float) -> str:
    """A number of bytes as text: ``1.23 GB``, ``4.5 MB``, ``6.7 kB``, ``89 bytes``."""
    for unit, bytes_each, digits in (("GB", 1e9, 2), ("MB", 1e6, 1), ("kB", 1e3, 1)):
        if count >= bytes_each:
            return f"{count / bytes_each:,.{digits}f} {unit}"
    return f"{count:,.0f} bytes"
