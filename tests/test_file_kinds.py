"""File kinds: each stand-in for a file is named for what it is, with what mends it."""

from __future__ import annotations

import base64
import io
import random
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from proactivebench_tasks.file_kinds import (
    HEAD,
    Family,
    broken_link,
    is_cut,
    of_file,
    recognised,
)


def image(kind: str = "PNG", size: int = 60) -> bytes:
    buffer = io.BytesIO()
    noise = Image.effect_noise((size, size), 90).convert("RGB")
    noise.save(buffer, kind)
    return buffer.getvalue()


def archive(size: int = 40_000) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("ROD/1.png", random.Random(0).randbytes(size))
    return buffer.getvalue()


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"
ANNEX = "/annex/objects/SHA256E-s48213--{}.png\n"

IMPOSTORS: dict[str, tuple[bytes, str]] = {
    "LFS": (LFS.format("4d7a" * 16, 5_321_000_123).encode(), "Git LFS pointer.*5,321,000,123"),
    "LFS, Windows": (LFS.format("0" * 64, 9).replace("\n", "\r\n").encode(), "Git LFS .* 9 bytes"),
    "LFS, BOM": (b"\xef\xbb\xbf" + LFS.format("0" * 64, 9).encode(), "Git LFS pointer"),
    "LFS, with an extension": (
        b"version https://git-lfs.github.com/spec/v1\next-0-foo sha256:00\noid sha256:1\nsize 12\n",
        "Git LFS pointer.* 12 bytes",
    ),
    "LFS, before its release": (
        b"version http://hawser.github.com/spec/v1\noid sha256:1\nsize 8\n",
        "Git LFS pointer",
    ),
    "LFS, cut": (b"version https://git-lfs.github.com/spec/v1\noid sha2", "Git LFS pointer"),
    "annex": (ANNEX.format("ab" * 32).encode(), "git-annex pointer"),
    "annex, link as a text": (
        b"../.git/annex/objects/gp/5J/MD5E-s1--9a.zip/MD5E-s1--9a.zip",
        "git-annex pointer",
    ),
    "annex, Windows": (b"..\\..\\.git\\annex\\objects\\SHA256-s4--ff", "git-annex pointer"),
    "xet": (b'# xet version 0\nfilesize = 1234\nhash = "ab"\n', "Xet pointer"),
    "page": (b"<!DOCTYPE html><html><head><title>Sign in</title>", r"HTML page \('Sign in'\)"),
    "page, Windows": (b"\r\n  <HTML>\r\n<TITLE>404 Not\r\n Found</TITLE>", "'404 Not Found'"),
    "page, BOM": (b"\xef\xbb\xbf<html><body><h1>502 Bad Gateway</h1>", "'502 Bad Gateway'"),
    "page, comment first": (b"<!-- proxy --><html><title>Access &amp; use</title>", "Access & use"),
    "page, no title": (b"<html>not found</html>", "HTML page, such as a server"),
    "page, long": (b"<html><title>Busy</title>" + b"<p>wait</p>" * 20_000, "HTML page .'Busy'"),
    "page of a bucket": (
        b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>',
        "XML page .'AccessDenied'",
    ),
    "error": (b'{"error": "Repository not found"}', "server's error message .*Repository not"),
    "error, in detail": (b'{\n "detail": "Not authenticated"\n}\n', "error message .*Not authent"),
    "empty": (b"", "empty"),
    "zeros": (bytes(5000), "nothing but zero bytes"),
    "UTF-16": ('{"id": 1}\r\n'.encode("utf-16"), "UTF-16"),
    "UTF-16, other order": (b"\xfe\xff" + '{"id": 1}'.encode("utf-16-be"), "UTF-16"),
    "UTF-16, no mark": ('{"id": 1}\r\n'.encode("utf-16-le"), "UTF-16"),
    "PNG as UTF-16": (image().decode("cp437").encode("utf-16"), "UTF-16"),
    "PNG in letters": (image().decode("latin-1").encode(), "a PNG image that was saved .* as text"),
    "PNG in Windows' letters": (
        image().decode("cp1252", "replace").encode(),
        "a PNG image that was saved .* as text",
    ),
    "PNG with its letters replaced": (
        image().decode("utf-8", "replace").encode(),
        "a PNG image that was saved .* as text",
    ),
    "PNG with line ends of Windows": (
        image().replace(b"\n", b"\r\n"),
        "a PNG image that was saved .* line ends",
    ),
    "PNG with line ends of Unix": (
        image().replace(b"\r\n", b"\n"),
        "a PNG image that was saved .* line ends",
    ),
    "JPEG in letters": (image("JPEG").decode("latin-1").encode(), "a JPEG image that was saved"),
    "JPEG replaced": (image("JPEG").decode("utf-8", "replace").encode(), "a JPEG image that was"),
    "GIF in letters": (image("GIF").decode("latin-1").encode(), "a GIF image that was saved"),
    "zip in letters": (archive().decode("latin-1").encode(), "a zip archive that was saved"),
    "zip replaced": (archive().decode("utf-8", "replace").encode(), "a zip archive that was saved"),
    "zip with line ends of Windows": (
        archive().replace(b"\n", b"\r\n"),
        "a zip archive that was saved .* line ends",
    ),
    "PNG after a BOM": (b"\xef\xbb\xbf" + image(), "a PNG image with a byte order mark before"),
    "zip after a BOM": (b"\xef\xbb\xbf" + archive(), "a zip archive with a byte order mark"),
    "PNG in base64": (base64.b64encode(image()), "a PNG image in base64"),
    "zip in base64": (base64.encodebytes(archive()), "a zip archive in base64"),
    "JPEG in an address": (
        b"data:image/jpeg;base64," + base64.b64encode(image("JPEG")),
        "a JPEG image in base64",
    ),
}

OTHERS: dict[str, tuple[bytes, Family, str]] = {
    "PNG": (image(), Family.IMAGE, "a PNG image"),
    "JPEG": (image("JPEG"), Family.IMAGE, "a JPEG image"),
    "WebP": (image("WEBP"), Family.IMAGE, "a WebP image"),
    "zip": (archive(), Family.ARCHIVE, "a zip archive"),
    "gzip": (b"\x1f\x8b\x08\x00" + bytes(20), Family.PACKED, "packed with gzip"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4", Family.PACKED, "a 7z archive"),
    "RAR": (b"Rar!\x1a\x07\x01\0", Family.PACKED, "a RAR archive"),
    "tar": (b"a.png".ljust(257, b"\0") + b"ustar\0" + bytes(249), Family.PACKED, "a tar archive"),
    "words": (b"Entry not found\n", Family.TEXT, "a text ('Entry not found')"),
    "words of elsewhere": ("Zugriff verweigert: ü".encode(), Family.TEXT, "a text ("),
}


@pytest.mark.parametrize("name", IMPOSTORS)
def test_stand_in_is_named_for_what_it_is(name: str) -> None:
    import re

    content, what = IMPOSTORS[name]
    kind = recognised(content[:HEAD])
    assert kind is not None and re.search(what, kind.what), kind
    assert kind.family is Family.IMPOSTOR


@pytest.mark.parametrize("name", OTHERS)
def test_kind_that_may_be_wanted_is_told_by_its_family(name: str) -> None:
    content, family, what = OTHERS[name]
    kind = recognised(content[:HEAD])
    assert kind is not None
    assert (kind.family, kind.what[: len(what)]) == (family, what)


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_nothing_known(seed: int) -> None:
    assert recognised(b"\x80" + random.Random(seed).randbytes(3000)) is None


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_cut_image_is_told_from_a_whole_one(kind: str) -> None:
    whole = image(kind)
    assert not is_cut(whole)
    assert all(is_cut(whole[: int(len(whole) * share)]) for share in (0.2, 0.5, 0.9))


def test_bytes_of_no_image_are_not_cut() -> None:
    assert not is_cut(b"") and not is_cut(b"words") and not is_cut(archive())


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("LFS", "git -C {folder} lfs pull"),
        ("annex", "git -C {folder} annex get ."),
        ("UTF-16", "iconv -f UTF-16 -t UTF-8 {file} > NEW"),
        ("PNG after a BOM", "tail -c +4 {file} > NEW"),
        ("zip in base64", "base64 -d {file} > NEW"),
        ("JPEG in an address", "tail -c +24 {file} | base64 -d > NEW"),
    ],
)
def test_what_can_be_mended_names_the_command(name: str, command: str) -> None:
    kind = recognised(IMPOSTORS[name][0][:HEAD])
    assert kind is not None
    told = kind.explained(Path("/a b/c.png"), "Get it")
    assert f"`{command.format(file=repr('/a b/c.png'), folder=repr('/a b'))}`" in told
    assert kind.explained(None, "Get it").endswith(". Get it")  # a member of an archive


@pytest.mark.parametrize("name", ["PNG after a BOM", "zip in base64", "JPEG in an address"])
def test_commands_mend(tmp_path: Path, name: str) -> None:
    import subprocess

    content = IMPOSTORS[name][0]
    file = tmp_path / "a file"
    file.write_bytes(content)
    kind = of_file(file)
    assert kind is not None
    command = kind.explained(file, "").split("`")[1].replace("NEW", "new")
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    mended = recognised((tmp_path / "new").read_bytes()[:HEAD])
    assert mended is not None and mended.family in (Family.IMAGE, Family.ARCHIVE)


@pytest.mark.parametrize("name", ["page", "zip in letters", "empty", "error", "zeros"])
def test_what_cannot_be_mended_is_got_anew(name: str) -> None:
    kind = recognised(IMPOSTORS[name][0][:HEAD])
    assert kind is not None and kind.explained(Path("a"), "Get it").endswith(". Get it")


@pytest.mark.parametrize(
    ("target", "what"),
    [
        (".git/annex/objects/mX/k9/SHA256E-s1--a.png/SHA256E-s1--a.png", "git-annex pointer"),
        ("../blobs/4d7a", "a symbolic link to ../blobs/4d7a, which is not there"),
    ],
)
def test_link_that_leads_nowhere_is_named(tmp_path: Path, target: str, what: str) -> None:
    (tmp_path / "link").symlink_to(target)
    kind = of_file(tmp_path / "link")
    assert kind is not None and what in kind.what


def test_link_that_leads_somewhere_is_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(image())
    (tmp_path / "link").symlink_to("real")
    assert broken_link(tmp_path / "link") is None
    kind = of_file(tmp_path / "link")
    assert kind is not None and kind.family is Family.IMAGE


def test_nothing_is_said_of_what_is_not_there_or_a_folder(tmp_path: Path) -> None:
    assert of_file(tmp_path / "gone") is None
    assert of_file(tmp_path) is None
