"""Files: jsonl with line numbers, writes that are whole or not at all, hashes and sizes as text."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proactivebench_tasks.errors import DataError


def read_jsonl(
    path: Path, on_fault: Callable[[DataError], None] | None = None
) -> Iterator[tuple[int, Any]]:
    """The values of a ``.jsonl`` or ``.jsonl.gz`` file, each with its line number from 1.

    Blank lines are passed over. A line that is not JSON is passed over, too, if there is an
    ``on_fault`` to tell it to; else it raises ``DataError`` with file and line. A file that cannot
    be read at all raises ``DataError``; one that does not exist, ``FileNotFoundError``.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig") as lines:
            for number, text in enumerate(lines, start=1):
                if not text.strip():
                    continue
                try:
                    value = json.loads(text)
                except (ValueError, RecursionError) as error:
                    fault = DataError(f"{path}, line {number}: not JSON: {error}")
                    if on_fault is None:
                        raise fault from error
                    on_fault(fault)
                else:
                    yield number, value
    except FileNotFoundError:
        raise
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """The path of a draft, for the ``with`` block to write; the draft becomes ``path`` at its end.

    Whoever reads ``path``, in any process, sees the old content or the new one, never a part of it.
    The folder is made if need be. When the block raises, ``path`` stays as it was and the draft is
    deleted.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def digest(*texts: str) -> str:
    """The SHA-256 of some texts, in hexadecimal: a name for a file that is made from them."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def format_size(count: float) -> str:
    """A number of bytes as text: ``1.23 GB``, ``4.5 MB``, ``6.7 kB``, ``89 bytes``."""
    for unit, bytes_each, digits in (("GB", 1e9, 2), ("MB", 1e6, 1), ("kB", 1e3, 1)):
        if count >= bytes_each:
            return f"{count / bytes_each:,.{digits}f} {unit}"
    return f"{count:,.0f} bytes"
