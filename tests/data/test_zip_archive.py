"""ZipArchives: any member is read right or is a ``DataError``; nothing is written but the cache."""

from __future__ import annotations

import io
import os
import random
import stat
import struct
import threading
import time
import unicodedata
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proactivebench_tasks.data import zip_archive
from proactivebench_tasks.data.store import LocalStore
from proactivebench_tasks.data.zip_archive import LocalArchive
from proactivebench_tasks.errors import DataError


def make(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def read(path: Path, name: str) -> bytes | None:
    return LocalStore(path.parent).read(name)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("content", [b"", b"x", b"x" * 100_000, random.Random(0).randbytes(70_000)])
def test_members_come_out_as_they_went_in(tmp_path: Path, method: int, content: bytes) -> None:
    archive = make(tmp_path / "a.zip", {"ROD/1.png": content, "ROD/2.png": b"other"}, method)
    assert read(archive, "ROD/1.png") == content
    assert read(archive, "ROD/3.png") is None
    assert read(archive, "ROD") is None


def test_members_written_as_a_stream_are_read(tmp_path: Path) -> None:
    """Their local header knows neither sizes nor checksum."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise io.UnsupportedOperation

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", b"content" * 100)
    (tmp_path / "a.zip").write_bytes(pipe.getvalue())
    assert read(tmp_path / "a.zip", "a.png") == b"content" * 100


def test_large_extra_field_of_a_local_header_is_passed_over(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("a.png")
    info.extra = struct.pack("<HH", 0xCAFE, 3000) + bytes(3000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, b"content")
    assert read(tmp_path / "a.zip", "a.png") == b"content"


def test_archive_after_other_data_is_read(tmp_path: Path) -> None:
    archive = make(tmp_path / "a.zip", {"a.png": b"content"})
    archive.write_bytes(b"#!/bin/sh\n" + archive.read_bytes())
    assert read(archive, "a.png") == b"content"


def test_zip64_is_read(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("a.png")
    with (
        zipfile.ZipFile(tmp_path / "a.zip", "w", allowZip64=True) as archive,
        archive.open(info, "w", force_zip64=True) as member,
    ):
        member.write(b"content" * 1000)
    assert read(tmp_path / "a.zip", "a.png") == b"content" * 1000


def test_zip64_with_many_members_is_read(tmp_path: Path) -> None:
    """More than 65,535 need another form of the list of members."""
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("00000.png", b"0")
        # As if they had been written, but in no time: all of them lie where the first one lies.
        first = archive.getinfo("00000.png")
        for number in range(1, 69_999):
            other = zipfile.ZipInfo(f"{number:05d}.png")
            other.header_offset, other.CRC = first.header_offset, first.CRC
            other.compress_size, other.file_size = first.compress_size, first.file_size
            archive.filelist.append(other)
        archive.writestr("69999.png", b"69999")
    assert file.read_bytes().count(b"PK\x06\x06") == 1  # the record that only zip64 has
    assert read(file, "69999.png") == b"69999"
    assert read(file, "44444.png") == b"0"
    again = LocalStore(tmp_path)
    started = time.perf_counter()
    assert again.read("00000.png") == b"0"
    assert time.perf_counter() - started < 0.5


@pytest.mark.parametrize("name", ["Grüße/äpfel.png", "画像/一.png", "naïve e\u0301.png"])
def test_names_beyond_ascii_are_found_however_composed(tmp_path: Path, name: str) -> None:
    archive = make(tmp_path / "a.zip", {name: b"content"})
    for form in ("NFC", "NFD"):
        assert read(archive, unicodedata.normalize(form, name)) == b"content"


def test_utf8_name_without_its_flag_is_found(tmp_path: Path) -> None:
    archive = make(tmp_path / "a.zip", {"Gr\u00fc\u00dfe.png": b"content"})
    data = bytearray(archive.read_bytes())
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = data.index(signature) + offset
        flags = struct.unpack_from("<H", data, at)[0]
        struct.pack_into("<H", data, at, flags & ~0x800)
    archive.write_bytes(data)
    assert read(archive, "Grüße.png") == b"content"


@pytest.mark.parametrize(
    "name",
    ["../escape.png", "ROD/../../escape.png", "/etc/escape.png", "C:/escape.png", "..\\e.png"],
)
def test_names_that_climb_out_are_listed_and_never_read(
    tmp_path: Path, name: str, own_cache: Path
) -> None:
    (tmp_path / "data").mkdir()
    archive = make(tmp_path / "data" / "a.zip", {name: b"evil", "ROD/1.png": b"good"})
    before = {path for path in tmp_path.rglob("*")}
    folder = LocalStore(archive.parent)
    assert folder.read("ROD/1.png") == b"good"
    assert folder.read(name.replace("\\", "/")) is None
    ((rejected, reason),) = LocalArchive(archive).index.rejected()
    assert rejected == name.replace("\\", "/")
    assert "absolute" in reason or "climbs out" in reason
    assert {path for path in tmp_path.rglob("*")} == before
    assert {path.suffix for path in own_cache.rglob("*") if path.is_file()} <= {
        ".sqlite",
        ".lock",
        ".whl",
    }


@pytest.mark.parametrize("name", ["./ROD/1.png", "ROD//1.png", "ROD\\1.png", "ROD/./1.png"])
def test_odd_spellings_of_a_path_are_the_path(tmp_path: Path, name: str) -> None:
    assert read(make(tmp_path / "a.zip", {name: b"content"}), "ROD/1.png") == b"content"


def test_symbolic_link_is_an_error(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("a.png")
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match=r"a\.zip: 'a\.png' is a symbolic link"):
        read(tmp_path / "a.zip", "a.png")


def test_encrypted_member_is_an_error(tmp_path: Path) -> None:
    archive = make(tmp_path / "a.zip", {"a.png": b"content"})
    data = bytearray(archive.read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1
    archive.write_bytes(data)
    with pytest.raises(DataError, match="is encrypted"):
        read(archive, "a.png")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("contents", [(b"same", b"same"), (b"one", b"other")])
def test_duplicate_members_must_be_equal(tmp_path: Path, contents: tuple[bytes, bytes]) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for content in contents:
            archive.writestr("a.png", content)
    if contents[0] == contents[1]:
        assert read(tmp_path / "a.zip", "a.png") == b"same"
    else:
        with pytest.raises(DataError, match="more than once"):
            read(tmp_path / "a.zip", "a.png")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_third_copy_does_not_hide_that_two_differ(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for content in (b"one", b"other", b"other"):
            archive.writestr("a.png", content)
    with pytest.raises(DataError, match="more than once"):
        read(tmp_path / "a.zip", "a.png")


def test_flipped_bit_is_an_error(tmp_path: Path) -> None:
    archive = make(tmp_path / "a.zip", {"a.png": b"content" * 100}, zipfile.ZIP_STORED)
    data = bytearray(archive.read_bytes())
    data[200] ^= 1
    archive.write_bytes(data)
    with pytest.raises(DataError, match=r"'a\.png' is damaged: its CRC is .*proactivebench"):
        read(archive, "a.png")


def test_unknown_compression_is_an_error(tmp_path: Path) -> None:
    archive = make(tmp_path / "a.zip", {"a.png": b"content"}, zipfile.ZIP_LZMA)
    with pytest.raises(DataError, match="compression method 14"):
        read(archive, "a.png")


def bomb(path: Path, declared: int, actual: int) -> Path:
    """A member that says it has ``declared`` bytes and unpacks to ``actual``."""
    make(path, {"a.png": bytes(actual)})
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.index(b"PK\1\2") + 24, declared)
    path.write_bytes(data)
    return path


def test_bomb_that_declares_its_size_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is 3,000,000,000 bytes, allowed are"):
        read(bomb(tmp_path / "a.zip", 3_000_000_000, 1000), "a.png")


def test_bomb_that_hides_its_size_is_stopped_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    real = zlib.decompressobj

    class Watched:
        def __init__(self, wbits: int) -> None:
            self.it = real(wbits)

        def decompress(self, data: bytes, limit: int) -> bytes:
            taken.append(limit)
            return self.it.decompress(data, limit)

        @property
        def eof(self) -> bool:
            return self.it.eof

    archive = bomb(tmp_path / "a.zip", 1000, 200_000_000)
    watched = {**zip_archive._DECOMPRESSORS, 8: lambda: Watched(-15)}
    monkeypatch.setattr(zip_archive, "_DECOMPRESSORS", watched)
    with pytest.raises(DataError, match="does not have the 1,000 bytes"):
        read(archive, "a.png")
    assert taken == [1001]


def test_empty_archive_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.zip").touch()
    with pytest.raises(DataError, match=r"a\.zip .* it is empty.*proactivebench download"):
        read(tmp_path / "a.zip", "a.png")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated_archive_is_an_error(tmp_path: Path, share: float) -> None:
    archive = make(tmp_path / "a.zip", {"a.png": b"content" * 1000, "b.png": b"x"})
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(DataError, match=r"a\.zip.* damaged or cut short.*proactivebench download"):
        read(archive, "a.png")


def test_archive_that_loses_its_end_under_us_is_an_error(tmp_path: Path) -> None:
    archive = make(tmp_path / "a.zip", {"a.png": random.Random(0).randbytes(5000)})
    folder = LocalStore(tmp_path)
    assert folder.read("a.png")
    with archive.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(DataError, match="the archive ends at byte 100"):
        folder.read("a.png")


def test_any_damage_is_an_error_or_harmless(tmp_path: Path) -> None:
    rng = random.Random(0)
    content = {f"{i}.png": rng.randbytes(300) for i in range(5)}
    whole = make(tmp_path / "whole.zip", content).read_bytes()
    (tmp_path / "data").mkdir()
    failed = 0
    for number in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 3, 20])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        file = tmp_path / "data" / f"{number}.zip"
        file.write_bytes(damaged)
        store = LocalStore(tmp_path / "data")
        for name in content:
            try:
                assert store.read(name) in (content[name], None)
            except DataError:
                failed += 1
        file.unlink()
    assert failed > 100


def test_damaged_archive_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"no zip at all")
    make(tmp_path / "b.zip", {"a.png": b"content"})
    folder = LocalStore(tmp_path)
    assert folder.read("a.png") == b"content"
    with pytest.raises(DataError, match=r"a\.zip cannot be read: it is a text \('no zip at all'\)"):
        folder.read("b.png")


def test_extracted_folder_comes_before_archives(tmp_path: Path) -> None:
    make(tmp_path / "a.zip", {"ROD/1.png": b"packed 1", "ROD/2.png": b"packed 2"})
    (tmp_path / "ROD").mkdir()
    (tmp_path / "ROD" / "1.png").write_bytes(b"extracted 1")
    folder = LocalStore(tmp_path)
    assert folder.read("ROD/1.png") == b"extracted 1"
    assert folder.read("ROD/2.png") == b"packed 2"


def test_what_is_nowhere_is_told_with_the_archives_looked_into(tmp_path: Path) -> None:
    make(tmp_path / "a.zip", {"ROD/1.png": b"content"})
    message = LocalStore(tmp_path).missing("ROD/2.png")
    assert all(part in message for part in ("ROD/2.png", "a.zip", "proactivebench download"))


def test_replaced_archive_gets_a_new_index(tmp_path: Path) -> None:
    archive = make(tmp_path / "a.zip", {"a.png": b"old"})
    assert read(archive, "a.png") == b"old"
    make(archive, {"a.png": b"new and longer", "b.png": b"more"})
    assert read(archive, "a.png") == b"new and longer"
    assert read(archive, "b.png") == b"more"


def test_threads_read_at_once(tmp_path: Path) -> None:
    content = {f"{i}.png": random.Random(i).randbytes(2000) for i in range(200)}
    make(tmp_path / "a.zip", content)
    folder = LocalStore(tmp_path)
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(folder.read, content)) == list(content.values())


def test_index_is_made_once_for_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = make(tmp_path / "a.zip", {"a.png": b"content"})
    opened = []
    real = LocalArchive.open
    monkeypatch.setattr(LocalArchive, "open", lambda self: (opened.append(1), real(self))[1])
    barrier = threading.Barrier(8)

    def first_read() -> bytes | None:
        barrier.wait()
        return read(archive, "a.png")

    with ThreadPoolExecutor(8) as pool:
        results = [future.result() for future in [pool.submit(first_read) for _ in range(8)]]
    assert results == [b"content"] * 8
    assert len(opened) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_workers_read_right(tmp_path: Path) -> None:
    content = {f"{i}.png": random.Random(i).randbytes(2000) for i in range(300)}
    make(tmp_path / "a.zip", content)
    folder = LocalStore(tmp_path)
    assert folder.read("0.png") == content["0.png"]
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            right = all(folder.read(name) == content[name] for name in content)
            os._exit(0 if right else 1)
        children.append(child)
    assert all(folder.read(name) == content[name] for name in content)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
