"""File kinds: what a file is that is not what its name says, and the command that mends it.

Data come with git, over the web, through editors and by hand, and what lies on the disk is often
something else: a pointer to the real file, a server's error page, half of a download. A reader that
fails on such a file would blame a byte of it. It asks here instead what the whole of it is.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

#: Bytes of a file's beginning that are enough to tell what it is.
HEAD = 2**16

_BOM = codecs.BOM_UTF8
_QUOTED = 80  # letters of a text that a message quotes


class Family(Enum):
    """What a reader may make of a kind."""

    IMPOSTOR = auto()  # never what anyone wants
    IMAGE = auto()
    ARCHIVE = auto()  # a zip archive
    PACKED = auto()  # another archive, or a document
    TEXT = auto()  # a text in words, which says little about what it should have been


@dataclass(frozen=True)
class FileKind:
    """What a file is, to follow "it is".

    ``mend``: what a user can do, a sentence with ``{file}`` and ``{folder}`` for the paths; empty
    if nothing helps but to get the file anew.
    """

    what: str
    family: Family = Family.IMPOSTOR
    mend: str = ""

    def explained(self, file: Path | None, anew: str) -> str:
        """The kind in a sentence, and what to do in another.

        ``file``: where it lies, ``None`` if it is no file of its own, such as an archive's member.
        ``anew``: what gets it anew, a sentence without its full stop, or nothing.
        """
        told = f"it is {self.what}"
        if self.mend and file is not None:
            place = {"file": shlex.quote(str(file)), "folder": shlex.quote(str(file.parent))}
            return f"{told}. {self.mend.format(**place)}"
        return f"{told}. {anew}" if anew else told


_EMPTY = FileKind("empty, as after a download that broke off at once")
_ZEROS = FileKind("nothing but zero bytes, as after a download that broke off, or on a full disk")
_ANNEX = FileKind(
    "a git-annex pointer, which stands for the real file",
    mend="`git -C {folder} annex get .` gets what such pointers stand for",
)
_UTF16 = FileKind(
    "text in UTF-16, as PowerShell's > writes it",
    mend="`iconv -f UTF-16 -t UTF-8 {file} > NEW` turns rows into UTF-8; nothing else survives it",
)
NOT_UTF8 = FileKind(
    "not UTF-8 text",
    mend="If it holds rows in Windows' letters, `iconv -f CP1252 -t UTF-8 {file} > NEW` turns them "
    "into UTF-8",
)

#: What files of a kind begin with.
_MAGIC: Mapping[bytes, FileKind] = {
    b"PK\3\4": FileKind("a zip archive", Family.ARCHIVE, "`unzip {file}` unpacks it"),
    b"PK\5\6": FileKind("a zip archive without members", Family.ARCHIVE),
    b"PK\7\x08": FileKind("the first part of a zip archive in parts", Family.ARCHIVE),
    b"\x89PNG\r\n\x1a\n": FileKind("a PNG image", Family.IMAGE),
    b"\xff\xd8\xff": FileKind("a JPEG image", Family.IMAGE),
    b"GIF8": FileKind("a GIF image", Family.IMAGE),
    b"RIFF": FileKind("a WebP image", Family.IMAGE),
    b"\x1f\x8b": FileKind(
        "packed with gzip", Family.PACKED, "`gzip -dc < {file} > NEW` unpacks it"
    ),
    b"BZh": FileKind("packed with bzip2", Family.PACKED, "`bzip2 -dc < {file} > NEW` unpacks it"),
    b"\xfd7zXZ": FileKind("packed with xz", Family.PACKED, "`xz -dc < {file} > NEW` unpacks it"),
    b"\x28\xb5\x2f\xfd": FileKind(
        "packed with zstd", Family.PACKED, "`zstd -dc < {file} > NEW` unpacks it"
    ),
    b"7z\xbc\xaf": FileKind("a 7z archive", Family.PACKED, "`7z x {file}` unpacks it"),
    b"Rar!": FileKind("a RAR archive", Family.PACKED, "`unrar x {file}` unpacks it"),
    b"PAR1": FileKind("a parquet file", Family.PACKED),
    b"%PDF": FileKind("a PDF document", Family.PACKED),
}
_TAR = FileKind("a tar archive", Family.PACKED, "`tar -xf {file}` unpacks it")
_PNG = b"\x89PNG"


def recognised(head: bytes) -> FileKind | None:
    """What content that begins with ``head`` is; ``None`` if that cannot be told.

    ``head`` is the content's first ``HEAD`` bytes, or all of it where it is shorter.
    """
    if not head:
        return _EMPTY
    if not head.strip(b"\0"):
        return _ZEROS
    bare = head.removeprefix(_BOM)
    return (
        _pointer(bare)
        or _saved_as_text(head)
        or _binary(head)
        or _in_base64(bare)
        or _utf16(head)
        or _text(bare)
    )


def of_file(path: Path) -> FileKind | None:
    """What a file is; ``None`` if that cannot be told, or it cannot be read."""
    if (link := broken_link(path)) is not None:
        return link
    try:
        with path.open("rb") as file:
            return recognised(file.read(HEAD))
    except OSError:
        return None


def broken_link(path: Path) -> FileKind | None:
    """What a symbolic link is that leads nowhere; ``None`` if ``path`` is no such link.

    git-annex and the caches of downloads keep a file elsewhere and a link in its place.
    """
    try:
        if not path.is_symlink() or path.exists():
            return None
        target = str(path.readlink())
    except (OSError, ValueError):
        return None
    if "annex/objects/" in target.replace("\\", "/"):
        return _ANNEX
    return FileKind(f"a symbolic link to {target}, which is not there")


def error_message(value: object) -> FileKind | None:
    """What a JSON value is if a server sent it in place of a file; ``None`` if it may be a row."""
    if not isinstance(value, dict) or "id" in value:
        return None
    if not value.keys() & {"error", "errors", "message", "detail"}:
        return None
    return FileKind(f"a server's error message ({_quoted(json.dumps(value, ensure_ascii=False))})")


def is_cut(image: bytes) -> bool:
    """Whether the end of an image's file is missing, as far as its kind tells."""
    if image.startswith(_PNG):
        return b"IEND" not in image[-64:]
    if image.startswith(b"\xff\xd8\xff"):
        return b"\xff\xd9" not in image[-64:]
    if image.startswith(b"GIF8"):
        return not image.rstrip(b"\0").endswith(b";")
    if image.startswith(b"RIFF"):
        return len(image) < 8 + int.from_bytes(image[4:8], "little")
    if image.startswith(b"BM"):
        return len(image) < int.from_bytes(image[2:6], "little")
    return False


def _pointer(bare: bytes) -> FileKind | None:
    """Git's stand-ins for large files."""
    if re.match(rb"version https?://(git-lfs|hawser)\.github\.com/", bare):
        size = re.search(rb"^size (\d+)", bare, re.MULTILINE)
        stands_for = f"a file of {int(size[1]):,} bytes" if size else "the real file"
        return FileKind(
            f"a Git LFS pointer, which stands for {stands_for}",
            mend="`git -C {folder} lfs pull` gets what such pointers stand for",
        )
    if bare.startswith(b"# xet version"):
        return FileKind("a Git Xet pointer, which stands for the real file")
    # Where links cannot be made, git writes the link's target into a file.
    if re.match(rb"[^\s\0]{0,200}annex[/\\]objects[/\\]", bare):
        return _ANNEX
    return None


def _saved_as_text(head: bytes) -> FileKind | None:
    """A binary file that an editor, a transfer or git took for text: it was recoded, or its line
    ends were changed. Much of what it held is lost."""
    if head.startswith(_BOM) and (kind := _binary(head.removeprefix(_BOM))) is not None:
        return FileKind(
            f"{kind.what} with a byte order mark before it",
            mend="`tail -c +4 {file} > NEW` takes the mark off",
        )
    if head.startswith((b"\x89PNG\r\r\n", b"\x89PNG\n\x1a\n", b"\x89PNG\r\n\x1a\r\n")):
        return _spoilt("a PNG image", "its line ends were changed")
    text = _decoded(head)
    if text is not None and not text.isascii():
        for magic, kind in _MAGIC.items():
            if any(text.startswith(each) for each in _recoded(magic)):
                return _spoilt(kind.what, "its bytes were turned into letters")
    if head.startswith(b"PK\3\4") and head.count(b"\n") == head.count(b"\r\n") >= 8:
        return _spoilt("a zip archive", "its line ends were changed")
    return None


def _spoilt(what: str, how: str) -> FileKind:
    return FileKind(f"{what} that was saved or sent as text: {how}, which cannot be undone")


def _recoded(magic: bytes) -> set[str]:
    """How the first bytes of a file look once they were turned into letters."""
    return {
        magic[:4].decode("latin-1"),
        magic[:4].decode("cp1252", "replace"),
        magic[:4].decode("ascii", "replace"),
    }


def _binary(head: bytes) -> FileKind | None:
    if head[257:262] == b"ustar":
        return _TAR
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def _in_base64(bare: bytes) -> FileKind | None:
    start = re.match(rb"\s*(data:[\w/+.-]+;base64,)?([A-Za-z0-9+/]{16})", bare)
    if start is None:
        return None
    try:
        kind = _binary(base64.b64decode(start[2]))
    except binascii.Error:
        return None
    if kind is None:
        return None
    strip = f"tail -c +{start.start(2) + 1} {{file}} | " if start[1] else ""
    decode = "base64 -d > NEW" if strip else "base64 -d {file} > NEW"
    return FileKind(f"{kind.what} in base64", mend=f"`{strip}{decode}` decodes it")


def _utf16(head: bytes) -> FileKind | None:
    even = head[: len(head) // 2 * 2]
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and len(head) > 3
    bare = len(even) > 3 and (not even[1::2].strip(b"\0") or not even[::2].strip(b"\0"))
    return _UTF16 if marked or bare else None


def _text(bare: bytes) -> FileKind | None:
    """A server's page, its error as JSON, or a text in words."""
    text = _decoded(bare)
    if text is None or any(ord(letter) < 32 and letter not in "\t\n\r\f" for letter in text):
        return None
    if re.match(
        r"\s*<(!--|(!doctype|[?]xml|html|head|body|title|h1|error)\b)", text, re.IGNORECASE
    ):
        is_html = re.search(r"<(!doctype html|html|head|body|title)\b", text, re.IGNORECASE)
        titles = r"<(title|h1|code|message)\b[^>]*>(.*?)</\1"
        title = re.search(titles, text, re.IGNORECASE | re.DOTALL)
        quoted = f" ({_quoted(html.unescape(title[2]))})" if title else ""
        page = "an HTML page" if is_html else "an XML page"
        return FileKind(f"{page}{quoted}, such as a server sends in place of a file")
    try:
        kind = error_message(json.loads(text))
    except (ValueError, RecursionError):
        kind = None
    if kind is None and text.strip():
        return FileKind(f"a text ({_quoted(text)})", Family.TEXT)
    return kind


def _decoded(head: bytes) -> str | None:
    """The text that UTF-8 bytes are, ``None`` if they are none. The last letter may be cut."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return None


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _QUOTED else f"{line[:_QUOTED]}...")
