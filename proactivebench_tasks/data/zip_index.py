"""ZipIndex: which images a zip archive holds and where, read once and kept as a small table.

A zip archive lists its members at its end. Reading the list of 70,000 members takes zipfile a
second, and over a network all of the list's bytes. The index holds the same as an SQLite table in
the cache folder, which is opened in a millisecond and searched without being loaded. An index is
never written again: an archive that changes gets a new one.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import unicodedata
import zipfile
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import digest, locked, written_whole

#: Raised by one when the table changes shape, so that older ones are not read.
_LAYOUT = 1

_AMBIGUOUS = "is there more than once, with different contents"


@dataclass(frozen=True)
class Member:
    """A file in an archive: where it lies and how it is packed. Sizes are in bytes."""

    path: str  # as ``normal`` spells it
    offset: int  # of its local header, from the archive's first byte
    packed: int  # size in the archive
    size: int  # size unpacked
    crc: int  # CRC-32 of the unpacked content
    method: int  # of compression, by zip's numbers
    fault: str | None = None  # why it must not be read, to follow its name in a message


#: A member's values in the table's order; ``dataclasses.astuple`` takes ten times as long.
_values = attrgetter(*(field.name for field in fields(Member)))


def folder() -> Path:
    """Where all indexes are kept."""
    return cache_dir() / "directories"


class ZipIndex:
    """The index of one archive. Any number of threads and processes may share its file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._open = threading.local()

    @classmethod
    def of(
        cls, archive: str, version: str, opened: Callable[[], AbstractContextManager[IO[bytes]]]
    ) -> ZipIndex:
        """The index of an archive, from the cache folder; made if it is not there.

        ``archive``: the archive's name. ``version``: any text that changes with the archive's
        content. ``opened`` opens the archive, and is called only to make the index. Raises what
        ``opened`` and zipfile raise.
        """
        file = folder() / f"{digest(str(_LAYOUT), archive, version)[:32]}.sqlite"
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            with locked(file.with_name(f"{file.name}.lock")):
                if not file.is_file():
                    with opened() as stream:
                        members, rejected = _members(stream)
                    _write(file, members, rejected)
        return cls(file)

    def find(self, path: str) -> Member | None:
        """The member at this path, ``None`` if there is none."""
        found = self._rows("SELECT * FROM member WHERE path = ?", normal(path))
        return Member(*found[0]) if found else None

    def has_folder(self, name: str) -> bool:
        """Whether any member is in this folder."""
        first, after = f"{normal(name)}/", f"{normal(name)}0"  # 0 follows / among the letters
        query = "SELECT 1 FROM member WHERE path > ? AND path < ? LIMIT 1"
        return bool(self._rows(query, first, after))

    def among(self, paths: Collection[str]) -> list[Member]:
        """The members at any of these paths, each as ``normal`` spells it. For many paths this is
        faster than ``find`` for each."""
        rows = self._rows("SELECT * FROM member")
        return [Member(*row) for row in rows if row[0] in paths]

    def rejected(self) -> list[tuple[str, str]]:
        """Names of members that lead out of the data folder, each with what is wrong with it.

        Such members are in the index under no path, and so never read.
        """
        return self._rows("SELECT * FROM rejected")

    def _rows(self, query: str, *values: str) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise DataError(
                f"{self._file} is damaged: {error}. Delete it; it is made again when needed"
            ) from error

    @property
    def _connection(self) -> sqlite3.Connection:
        # A connection may be used neither in another thread nor after a fork: each thread of each
        # process has its own.
        if getattr(self._open, "pid", None) != os.getpid():
            uri = f"{self._file.resolve().as_uri()}?mode=ro&immutable=1"
            self._open.connection = sqlite3.connect(uri, uri=True)
            self._open.pid = os.getpid()
        return self._open.connection  # type: ignore[no-any-return]


def _write(file: Path, members: list[Member], rejected: list[tuple[str, str]]) -> None:
    with written_whole(file) as draft, closing(sqlite3.connect(draft)) as table:
        table.execute("PRAGMA journal_mode = OFF")
        table.execute(
            "CREATE TABLE member (path TEXT PRIMARY KEY, offset INT, packed INT, size INT, crc INT,"
            " method INT, fault TEXT) WITHOUT ROWID"
        )
        table.execute("CREATE TABLE rejected (name TEXT, reason TEXT)")
        table.executemany("INSERT INTO member VALUES (?, ?, ?, ?, ?, ?, ?)", map(_values, members))
        table.executemany("INSERT INTO rejected VALUES (?, ?)", rejected)
        table.commit()


def _members(stream: IO[bytes]) -> tuple[list[Member], list[tuple[str, str]]]:
    """An archive's members, and the names that are rejected, each with the reason."""
    members: dict[str, Member] = {}
    rejected = []
    with zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            path = normal(_name(info))
            parts = path.split("/")
            if path.startswith("/") or ":" in parts[0]:
                rejected.append((path, "is an absolute path"))
            elif ".." in parts:
                rejected.append((path, "climbs out of the data folder"))
            else:
                path = "/".join(part for part in parts if part not in ("", "."))
                member = _member(path, info)
                namesake = members.get(path)
                if namesake and (namesake.crc, namesake.size) != (member.crc, member.size):
                    member = replace(member, fault=_AMBIGUOUS)
                elif namesake and namesake.fault:
                    member = namesake  # a third copy does not make up for two that differ
                members[path] = member
    return list(members.values()), rejected


def _member(path: str, info: zipfile.ZipInfo) -> Member:
    fault = None
    if info.flag_bits & 0x1:
        fault = "is encrypted"
    elif stat.S_ISLNK(info.external_attr >> 16):
        fault = "is a symbolic link"
    return Member(
        path=path,
        offset=info.header_offset,
        packed=info.compress_size,
        size=info.file_size,
        crc=info.CRC,
        method=info.compress_type,
        fault=fault,
    )


def _name(info: zipfile.ZipInfo) -> str:
    """The member's name. Many tools write UTF-8 and do not set the flag (bit 11) that says so."""
    if not info.flag_bits & 0x800:
        try:
            return info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return info.filename


def normal(path: str) -> str:
    """A path as the index spells it: ``/`` between its parts, and letters with accents composed
    (Unicode's NFC). Paths that mean the same file have one spelling."""
    return unicodedata.normalize("NFC", path.replace("\\", "/"))
