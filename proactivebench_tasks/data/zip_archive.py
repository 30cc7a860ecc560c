"""ZipArchive: a zip file whose images are read in place, from a disk or over a network.

Nothing is ever unpacked to disk, so no member name can lead anywhere. A member's place comes from
the archive's ``ZipIndex``; its bytes come from one read of the archive, which needs no open file
and thus no lock, whatever threads and forks there are.
"""

from __future__ import annotations

import bz2
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, ClassVar

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.data.zip_index import Member, ZipIndex
from proactivebench_tasks.errors import DataError

#: Bytes of one image, packed or not. More is no image but a mistake or an attack.
MAX_MEMBER = 256 * 2**20

_LOCAL_HEADER = struct.Struct(
    "<4s22xHH"
)  # signature, length of the name, length of the extra field
_SPARE = 128  # bytes read beyond what the directory tells, for the header's own extra field

#: Each makes a decompressor with ``decompress(data, max_length)`` and ``eof``.
_DECOMPRESSORS: Mapping[int, Callable[[], Any]] = {
    zipfile.ZIP_DEFLATED: partial(zlib.decompressobj, -zlib.MAX_WBITS),
    zipfile.ZIP_BZIP2: bz2.BZ2Decompressor,
}


class ZipArchive(ABC):
    """A zip archive: ``name`` for messages, ``version`` changes with its content, bytes in all."""

    #: What to do about a damaged archive.
    advice: ClassVar[str]

    def __init__(self, name: str, version: str, size: int) -> None:
        self.name = name
        self.version = version
        self.size = size

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def open(self) -> AbstractContextManager[IO[bytes]]:
        """The archive as a file that can seek."""

    @abstractmethod
    def bytes_at(self, start: int, end: int) -> bytes:
        """The archive's bytes from ``start`` up to ``end``, or up to its end."""

    @cached_property
    def index(self) -> ZipIndex:
        """Which images it holds, and where; ``DataError`` if it is damaged or no zip."""
        try:
            return ZipIndex.of(self.name, self.version, self.open)
        except OSError as error:
            raise DataError(
                f"archive {self}: its directory cannot be read, or kept in {cache_dir()} "
                f"(PROACTIVEBENCH_CACHE may name another folder): {error}"
            ) from error
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise DataError(
                f"archive {self} is damaged or cut short: {error}. {self.advice}"
            ) from error

    def content(self, member: Member) -> bytes:
        """A member's content, its checksum tested.

        Raises ``DataError`` that names archive and member when it cannot be read.
        """
        fault = member.fault
        if max(member.size, member.packed) > MAX_MEMBER:
            fault = f"is {max(member.size, member.packed):,} bytes, allowed are {MAX_MEMBER:,}"
        if fault is not None:
            raise DataError(f"archive {self}: {member.path!r} {fault}")
        try:
            content = _unpacked(self._packed(member), member)
        except (OSError, zlib.error, struct.error, EOFError, ValueError) as error:
            raise DataError(
                f"archive {self}: {member.path!r} is damaged: {error}. {self.advice}"
            ) from error
        return content

    def _packed(self, member: Member) -> bytes:
        start = member.offset
        guess = start + _LOCAL_HEADER.size + len(member.path.encode()) + _SPARE + member.packed
        block = self._exactly(start, max(start, min(guess, self.size)))
        signature, name_length, extra_length = _LOCAL_HEADER.unpack_from(block)
        if signature != b"PK\3\4":
            raise ValueError(f"no member starts at byte {start:,}")
        begin = _LOCAL_HEADER.size + name_length + extra_length
        end = begin + member.packed
        if end > len(block):
            block += self._exactly(start + len(block), start + end)
        return block[begin:end]

    def _exactly(self, start: int, end: int) -> bytes:
        block = self.bytes_at(start, end)
        if len(block) != end - start:
            raise EOFError(f"the archive ends at byte {start + len(block):,}, before {end:,}")
        return block


class LocalArchive(ZipArchive):
    """An archive on disk."""

    advice = (
        "Delete the archive and run `proactivebench download` to fetch it again; "
        "`proactivebench verify` tells what else is wrong"
    )

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        status = path.stat()
        super().__init__(str(self.path), f"{status.st_size} {status.st_mtime_ns}", status.st_size)

    def open(self) -> IO[bytes]:
        return self.path.open("rb")

    def bytes_at(self, start: int, end: int) -> bytes:
        with self.path.open("rb", buffering=0) as file:
            file.seek(start)
            return file.read(end - start)


class ZipArchives:
    """Several archives, looked through in their order. One that is damaged hides no other."""

    def __init__(self, archives: Sequence[ZipArchive]) -> None:
        self.all = tuple(archives)
        self._broken: dict[str, str] = {}

    def prepare(self, at_once: int) -> None:
        """Read the indexes of all now, some at once, instead of when they are needed."""
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(self.index, self.all))

    def index(self, archive: ZipArchive) -> ZipIndex | None:
        """The archive's index, ``None`` if it is damaged; then it is not tried again."""
        if archive.name not in self._broken:
            try:
                return archive.index
            except DataError as error:
                self._broken[archive.name] = str(error)
        return None

    def find(self, path: str) -> tuple[ZipArchive, Member] | None:
        """The first archive with a member at this path. ``DataError`` if no intact one has it,
        but there are damaged ones."""
        for archive in self.all:
            index = self.index(archive)
            if index is not None and (member := index.find(path)):
                return archive, member
        if self._broken:
            raise DataError("; ".join(self._broken.values()))
        return None

    def read(self, path: str) -> bytes | None:
        """The content of the member at this path, ``None`` if no archive has it."""
        if (found := self.find(path)) is None:
            return None
        archive, member = found
        return archive.content(member)


def _unpacked(packed: bytes, member: Member) -> bytes:
    if member.method == zipfile.ZIP_STORED:
        content = packed
    elif member.method in _DECOMPRESSORS:
        decompressor = _DECOMPRESSORS[member.method]()
        # Never more than declared, whatever the stream would still give.
        content = decompressor.decompress(packed, member.size + 1)
        if len(content) <= member.size and not decompressor.eof:
            raise ValueError("its compressed data is cut short")
    else:
        raise ValueError(
            f"its compression method {member.method} is not supported (store, deflate, bzip2 are)"
        )
    if len(content) != member.size:
        raise ValueError(f"it does not have the {member.size:,} bytes that the directory says")
    if (crc := zlib.crc32(content)) != member.crc:
        raise ValueError(f"its CRC is {crc:08x}, the directory says {member.crc:08x}")
    return content
