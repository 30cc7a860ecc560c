"""ZipArchive: a zip file whose images are read in place, from a disk or over a network.

Nothing is ever unpacked to disk, so a member's name cannot make anything be written anywhere. Where
a member lies comes from the archive's ``ZipIndex``. Its bytes come from one read, for which the
archive is opened anew: no open file is shared, so threads and forked processes need no lock.
"""

from __future__ import annotations

import bz2
import re
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, ClassVar

from proactivebench_tasks import config, file_kinds
from proactivebench_tasks.data.zip_index import Member, ZipIndex
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.file_kinds import Family, FileKind
from proactivebench_tasks.protocol.samples import Dataset

#: Bytes of one image, packed or not. More is no image but a mistake or an attack.
MAX_MEMBER = 256 * 2**20

#: What precedes a member's bytes: signature, length of the name, length of the extra field. The
#: name and the extra field follow.
_LOCAL_HEADER = struct.Struct("<4s22xHH")
#: Bytes read in addition to what the index tells, because only the local header itself tells how
#: long its extra field is. With these, one read is nearly always enough.
_SPARE = 128

#: By zip's number of the compression method: what makes a decompressor, which has
#: ``decompress(data, max_length)`` and ``eof``.
_DECOMPRESSORS: Mapping[int, Callable[[], Any]] = {
    zipfile.ZIP_DEFLATED: partial(zlib.decompressobj, -zlib.MAX_WBITS),
    zipfile.ZIP_BZIP2: bz2.BZ2Decompressor,
}


class ZipArchive(ABC):
    """A zip archive.

    ``name``: for messages. ``version``: any text that changes with the content. ``size``: in bytes.
    """

    #: What a user can do about a damaged archive, in a sentence.
    advice: ClassVar[str]
    #: The archive's file, if it is on a disk.
    path: Path | None = None

    def __init__(self, name: str, version: str, size: int) -> None:
        self.name = name
        self.version = version
        self.size = size

    def __str__(self) -> str:
        return self.name

    @property
    @abstractmethod
    def address(self) -> str:
        """What ``fsspec.open`` opens the archive by."""

    @abstractmethod
    def open(self) -> AbstractContextManager[IO[bytes]]:
        """The archive as a file that can seek."""

    @abstractmethod
    def bytes_at(self, start: int, end: int) -> bytes:
        """The archive's bytes from ``start`` up to ``end``, or up to the archive's end."""

    @cached_property
    def index(self) -> ZipIndex:
        """Which images the archive holds, and where.

        Raises ``DataError`` when the archive is damaged, is no zip, or cannot be read.
        """
        try:
            return ZipIndex.of(self.name, self.version, self.open)
        except OSError as error:
            if (kind := self.kind()) is not None and kind.family is not Family.ARCHIVE:
                raise self._not_read(kind) from error
            raise DataError(
                f"archive {self}: it cannot be read, or its index cannot be written to "
                f"{config.cache_dir()}: {config.unwritable(error)}"
            ) from error
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            if (kind := self.kind()) is None:
                raise DataError(
                    f"archive {self} is damaged or cut short: {error}. {self.advice}"
                ) from error
            if kind.family is Family.ARCHIVE:
                kind = FileKind(
                    f"{kind.what} that is damaged or cut short, as after half a download ({error})"
                )
            raise self._not_read(kind) from error

    def kind(self) -> FileKind | None:
        """What the archive's file is, as far as its first bytes tell."""
        return file_kinds.recognised(self.bytes_at(0, file_kinds.HEAD))

    def _not_read(self, kind: FileKind) -> DataError:
        told = kind.explained(self.path, self.advice)
        return DataError(f"archive {self} cannot be read: {told}")

    def content(self, member: Member) -> bytes:
        """A member's content, unpacked, its checksum tested.

        Raises ``DataError``, which names archive and member, when the content cannot be read.
        """
        fault = member.fault
        if max(member.size, member.packed) > MAX_MEMBER:
            fault = f"is {max(member.size, member.packed):,} bytes, allowed are {MAX_MEMBER:,}"
        if fault is not None:
            raise DataError(f"archive {self}: {member.path!r} {fault}")
        try:
            return _unpacked(self._packed(member), member)
        except (OSError, zlib.error, struct.error, EOFError, ValueError) as error:
            if (kind := self.kind()) is not None and kind.family is Family.IMPOSTOR:
                raise self._not_read(kind) from error
            raise DataError(
                f"archive {self}: {member.path!r} is damaged: {error}. {self.advice}"
            ) from error

    def _packed(self, member: Member) -> bytes:
        """A member's bytes as they stand in the archive."""
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
        """The bytes from ``start`` to ``end``; ``EOFError`` if the archive ends before."""
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
        self.path: Path = path.absolute()
        try:
            status = path.stat()
        except OSError:  # such as a link that leads nowhere; `open` says so
            super().__init__(str(self.path), "absent", 0)
        else:
            version = f"{status.st_size} {status.st_mtime_ns}"
            super().__init__(str(self.path), version, status.st_size)

    @property
    def address(self) -> str:
        return str(self.path)

    def open(self) -> IO[bytes]:
        return self.path.open("rb")

    def kind(self) -> FileKind | None:
        return file_kinds.of_file(self.path)

    def bytes_at(self, start: int, end: int) -> bytes:
        with self.path.open("rb", buffering=0) as file:
            file.seek(start)
            return file.read(end - start)


class ZipArchives:
    """Several archives, searched in their order. Those that can be read are read, though others
    are damaged."""

    def __init__(self, archives: Sequence[ZipArchive]) -> None:
        self.all = tuple(archives)
        self._broken: dict[str, str] = {}  # archive's name -> what is wrong with the archive

    @property
    def names(self) -> str:
        """The archives' names, for a message."""
        return ", ".join(archive.name for archive in self.all) or "none"

    def prepare(self, at_once: int) -> None:
        """Read all indexes now, ``at_once`` at a time, instead of each when it is needed."""
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(self.index, self.all))

    def index(self, archive: ZipArchive) -> ZipIndex | None:
        """An archive's index, ``None`` if it cannot be read. One that failed is not tried again."""
        if archive.name not in self._broken:
            try:
                return archive.index
            except DataError as error:
                self._broken[archive.name] = str(error)
        return None

    def find(self, path: str) -> tuple[ZipArchive, Member] | None:
        """The first archive that has a member at this path, and the member.

        ``None`` if no archive has one. Raises ``DataError`` if no archive that can be read has one,
        but an archive that cannot be read may be its place.
        """
        for archive in self.all:
            index = self.index(archive)
            if index is not None and (member := index.find(path)):
                return archive, member
        if self._broken and (broken := self._places(path)):
            raise DataError("; ".join(self._broken[archive.name] for archive in broken))
        return None

    def _places(self, path: str) -> list[ZipArchive]:
        """The archives that cannot be read and may be the place of this path.

        That are those that are named after the path's dataset. Otherwise, if no other archive holds
        images of the same folder, those that are named after no dataset.
        """
        folder = path.partition("/")[0]
        broken = [archive for archive in self.all if archive.name in self._broken]
        named = {archive: _datasets_in(archive) for archive in broken}
        if own := [archive for archive in broken if folder in named[archive]]:
            return own
        indexes = [archive.index for archive in self.all if archive.name not in self._broken]
        if any(index.has_folder(folder) for index in indexes):
            return []
        return [archive for archive in broken if not named[archive]]

    def locate(self, path: str) -> str | None:
        """The address that ``fsspec.open`` opens the member at this path by; ``None`` if no archive
        that can be read has one."""
        with suppress(DataError):
            if (found := self.find(path)) is not None:
                archive, member = found
                return f"zip://{member.path}::{archive.address}"
        return None

    def read(self, path: str) -> bytes | None:
        """The content of the member at this path, ``None`` if no archive has one.

        Raises ``DataError`` as ``find`` does, and when the member is damaged.
        """
        if (found := self.find(path)) is None:
            return None
        archive, member = found
        return archive.content(member)


def _datasets_in(archive: ZipArchive) -> set[str]:
    """The image folders of the datasets that an archive is named after."""
    words = re.split(r"[^a-z0-9]+", Path(archive.name).name.lower())
    joined = "".join(words)
    return {
        dataset.value
        for dataset in Dataset
        if dataset.task in words or re.sub(r"[^a-z0-9]", "", dataset.value.lower()) in joined
    }


def _unpacked(packed: bytes, member: Member) -> bytes:
    """A member's content; ``ValueError`` if it is not what the index says."""
    if member.method == zipfile.ZIP_STORED:
        content = packed
    elif member.method in _DECOMPRESSORS:
        decompressor = _DECOMPRESSORS[member.method]()
        # One byte more than the index says is asked for, and no more: a small archive can unpack
        # to very many bytes.
        content = decompressor.decompress(packed, member.size + 1)
        if len(content) <= member.size and not decompressor.eof:
            raise ValueError("its compressed data is cut short")
    else:
        raise ValueError(
            f"its compression method {member.method} is not supported (store, deflate, bzip2 are)"
        )
    if len(content) != member.size:
        raise ValueError(f"it does not have the {member.size:,} bytes that the index says")
    if (crc := zlib.crc32(content)) != member.crc:
        raise ValueError(f"its CRC is {crc:08x}, the index says {member.crc:08x}")
    return content
