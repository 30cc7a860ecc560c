"""Files: what is read of a jsonl and what is refused; writes of which nobody sees a part; sizes."""

from __future__ import annotations

import ast
import errno
import gzip
import hashlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from loguru import logger

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import digest, format_size, locked, read_jsonl, written_whole

Write = Callable[[bytes], Path]


@pytest.fixture(params=["x.jsonl", "x.jsonl.gz"])
def write(tmp_path: Path, request: pytest.FixtureRequest) -> Write:
    """Writes a jsonl of this content, packed or not."""
    path = tmp_path / request.param

    def write(content: bytes) -> Path:
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


def fault(path: Path) -> str:
    with pytest.raises(DataError) as error:
        list(read_jsonl(path))
    return str(error.value)


# read_jsonl


def test_values_come_with_their_line_numbers_from_1(write: Write) -> None:
    path = write(b'{"a": 1}\n[2]\n"three"\nnull\n5')
    assert list(read_jsonl(path)) == [(1, {"a": 1}), (2, [2]), (3, "three"), (4, None), (5, 5)]


def test_blank_lines_are_skipped_and_counted(write: Write) -> None:
    assert list(read_jsonl(write(b"\n1\n   \n\t\n2\n\n"))) == [(2, 1), (5, 2)]


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\n", b"\xef\xbb\xbf"])
def test_file_without_values_has_none(write: Write, content: bytes) -> None:
    assert list(read_jsonl(write(content))) == []


def test_byte_order_mark_is_no_part_of_the_first_value(write: Write) -> None:
    assert list(read_jsonl(write(b'\xef\xbb\xbf{"a": 1}\n2'))) == [(1, {"a": 1}), (2, 2)]


def test_byte_order_mark_in_another_line_is_a_fault(write: Write) -> None:
    path = write(b"1\n\xef\xbb\xbf2\n")
    assert fault(path).startswith(f"{path}, line 2: not JSON: ")


def test_line_ends_of_windows_are_line_ends(write: Write) -> None:
    assert list(read_jsonl(write(b'{"a": 1}\r\n\r\n2\r\n'))) == [(1, {"a": 1}), (3, 2)]


def test_text_is_utf8_and_its_odd_line_ends_are_no_line_ends(write: Write) -> None:
    text = "猫\u2028\x85é"
    assert list(read_jsonl(write(f'"{text}"\n2'.encode()))) == [(1, text), (2, 2)]


@pytest.mark.parametrize(
    "line",
    [b"{", b"nonsense", b"{}}", b"1 2", b"'text'", b'{"a": 1,}', b"9" * 5000, b"[" * 100_000],
    ids=lambda line: repr(line[:9]),
)
def test_line_that_is_no_json_is_named(write: Write, line: bytes) -> None:
    path = write(b"1\n\n" + line + b"\n4\n")
    assert fault(path).startswith(f"{path}, line 3: not JSON: ")


def test_values_before_a_fault_are_read(write: Write) -> None:
    lines = read_jsonl(write(b"1\n{\n3\n"))
    assert next(lines) == (1, 1)
    with pytest.raises(DataError):
        next(lines)


def test_with_on_fault_lines_at_fault_are_told_and_skipped(write: Write) -> None:
    faults: list[DataError] = []
    path = write(b"{\n2\n" + b"[" * 100_000 + b"\n4\nnonsense")
    assert list(read_jsonl(path, faults.append)) == [(2, 2), (4, 4)]
    assert [str(each).partition(": ")[0] for each in faults] == [
        f"{path}, line {number}" for number in (1, 3, 5)
    ]


def test_what_on_fault_raises_is_passed_on(write: Write) -> None:
    def stop(error: DataError) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        list(read_jsonl(write(b"{"), stop))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b'{"id": "\xe9"}', b"1\n\x89PNG\r\n"])
def test_file_that_is_not_utf8_is_named_also_with_on_fault(write: Write, content: bytes) -> None:
    path = write(content)
    assert fault(path).startswith(f"{path}: cannot be read: 'utf-8' codec can't decode")
    with pytest.raises(DataError, match="cannot be read"):
        list(read_jsonl(path, on_fault=lambda error: None))


def test_missing_file_is_not_found(tmp_path: Path) -> None:
    for name in ("gone.jsonl", "gone.jsonl.gz", "no/folder.jsonl"):
        with pytest.raises(FileNotFoundError):
            list(read_jsonl(tmp_path / name, on_fault=lambda error: None))


def test_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").mkdir()
    assert fault(tmp_path / "x.jsonl").startswith(f"{tmp_path / 'x.jsonl'}: cannot be read: ")


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9, 0.999])
def test_cut_gz_is_named(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "x.jsonl.gz"
    noise = hashlib.sha256(b"").hexdigest()
    whole = gzip.compress("".join(f'"{i} {noise}"\n' for i in range(5000)).encode())
    path.write_bytes(whole[: int(len(whole) * kept)])
    assert fault(path).startswith(f"{path}: cannot be read: ")


def test_damaged_gz_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    whole = bytearray(gzip.compress(os.urandom(10_000).hex().encode()))
    whole[5000] ^= 255
    path.write_bytes(whole)
    assert fault(path).startswith(str(path))


def test_gz_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.gz").write_bytes(b'{"a": 1}\n')
    assert "cannot be read: Not a gzipped file" in fault(tmp_path / "x.jsonl.gz")


# written_whole


def test_draft_takes_the_place_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text("old")
    with written_whole(path) as draft:
        assert draft.parent == path.parent  # on the same disk, or it could not be moved
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where" / "file"
    with written_whole(path) as draft:
        draft.write_bytes(b"content")
    assert path.read_bytes() == b"content"


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("there", [True, False])
def test_exception_keeps_what_was_there_and_leaves_no_draft(
    tmp_path: Path, error: type[BaseException], there: bool
) -> None:
    path = tmp_path / "file"
    if there:
        path.write_text("old")
    with pytest.raises(error), written_whole(path) as draft:
        draft.write_text("half of the n")
        raise error
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == (
        {"file": "old"} if there else {}
    )


def test_exception_before_anything_is_written_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="early"), written_whole(tmp_path / "file"):
        raise ValueError("early")
    assert list(tmp_path.iterdir()) == []


def test_file_that_cannot_be_replaced_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError), written_whole(tmp_path / "file") as draft:
        draft.write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").is_dir()


def test_draft_is_no_file_that_a_search_for_its_kind_finds(tmp_path: Path) -> None:
    with written_whole(tmp_path / "rows.jsonl") as draft:
        draft.write_text("new")
        assert list(tmp_path.glob("*.jsonl")) == []


def test_threads_that_write_the_same_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    both_write = threading.Barrier(2)

    def write(content: str) -> None:
        with written_whole(path) as draft:
            draft.write_text(content[: len(content) // 2])
            both_write.wait(30)  # each has half of its draft
            with draft.open("a") as file:
                file.write(content[len(content) // 2 :])
            both_write.wait(30)

    contents = ["a" * 1000, "b" * 2000]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, contents))
    assert path.read_text() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_drafts_of_processes_that_have_the_same_number_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on two machines, or in two containers, that share a disk."""
    path = tmp_path / "file"
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with written_whole(path) as one:
        with written_whole(path) as other:
            one.write_text("one")
            other.write_text("other")
        assert path.read_text() == "other"
    assert path.read_text() == "one"


def test_readers_see_the_old_content_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = {letter * 100_000 for letter in "abc"}
    path.write_text("a" * 100_000)
    done = threading.Event()

    def write(content: str) -> None:
        for _ in range(50):
            with written_whole(path) as draft:
                draft.write_text(content)

    def read() -> set[str]:
        seen = set()
        while not done.is_set():
            seen.add(path.read_text())
        return seen

    with ThreadPoolExecutor(4) as pool:
        reader = pool.submit(read)
        try:
            list(pool.map(write, sorted(contents)))
        finally:
            done.set()
    assert reader.result() <= contents
    assert list(tmp_path.iterdir()) == [path]


def test_processes_have_drafts_of_their_own(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from proactivebench_tasks.files import written_whole\n"
        "with written_whole(Path(sys.argv[1])) as draft: print(draft); draft.touch()"
    )
    path = tmp_path / "file"
    with written_whole(path) as draft:
        draft.write_text("ours")
        run = subprocess.run(
            [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() != str(draft)
        assert path.read_text() == ""  # theirs
    assert path.read_text() == "ours"


# Hashes and sizes


def test_digest_is_that_of_the_texts_and_of_where_they_end() -> None:
    assert digest("text") == hashlib.sha256(b"text").hexdigest()
    assert len({digest("a", "b"), digest("ab"), digest("b", "a"), digest("a", "", "b")}) == 4


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (89, "89 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (6_700, "6.7 kB"),
        (999_000, "999.0 kB"),
        (1_000_000, "1.0 MB"),
        (4_500_000, "4.5 MB"),
        (1_000_000_000, "1.00 GB"),
        (1_234_000_000, "1.23 GB"),
        (98_765_000_000_000, "98,765.00 GB"),
        (1_500_000.0, "1.5 MB"),
    ],
)
def test_size_is_shown_in_powers_of_ten(count: float, text: str) -> None:
    assert format_size(count) == text


# locked


def test_lock_keeps_another_process_out_and_says_so(tmp_path: Path, log: list[str]) -> None:
    path = tmp_path / "file.lock"
    code = (
        "import sys\nfrom pathlib import Path\nfrom proactivebench_tasks.files import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('in', flush=True)\n    sys.stdin.readline()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin and child.stdout and child.stdout.readline() == "in\n"

    def end_it(message: object) -> None:  # what is logged while it is waited for
        assert child.stdin
        child.stdin.write("\n")
        child.stdin.flush()

    sink = logger.add(end_it, level="INFO")
    with locked(path, "somebody is in there"):
        assert child.wait(30) == 0
    logger.remove(sink)
    assert log == ["INFO somebody is in there\n"]


def test_lock_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("")
    with pytest.raises(OSError), locked(tmp_path / "folder" / "file.lock"):
        pass


def test_what_is_raised_while_locked_is_passed_on_and_frees_the_lock(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(OSError, match="disk"), locked(tmp_path / "file.lock"):
            raise OSError(errno.ENOLCK, "disk")


# Encodings

ROOT = Path(__file__).parents[1]
SHIPPED = ("proactivebench_tasks", "model_patches", "task_yamls", "benchmarks", "examples", "docs")
OPENING = {"open", "read_text", "write_text", "fdopen", "TextIOWrapper"}
#: Calls of this name that open no text.
OTHER = {"Image.open", "os.open", "self.open", "self._hub.open"}


def opened_without_encoding(source: str) -> list[str]:
    """Calls that open a text and leave its encoding to the machine."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) in OTHER:
            continue
        given = [ast.unparse(each) for each in (*node.args, *(k.value for k in node.keywords))]
        is_said = "'utf-8'" in given or "encoding" in {keyword.arg for keyword in node.keywords}
        is_binary = any(re.fullmatch(r"'[rwax+]*b[rwax+]*'", each) for each in given)
        if ast.unparse(node.func).rpartition(".")[2] in OPENING and not is_said | is_binary:
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("folder", SHIPPED)
def test_every_text_is_opened_with_its_encoding(folder: str) -> None:
    files = list((ROOT / folder).rglob("*.py"))
    assert files
    odd = {str(file): opened_without_encoding(file.read_text(encoding="utf-8")) for file in files}
    assert {name: calls for name, calls in odd.items() if calls} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("open(path)", True),
        ("open(path, 'w')", True),
        ("path.open()", True),
        ("path.read_text()", True),
        ("path.write_text('text')", True),
        ("draft.write_text(text, errors='replace')", True),
        ("io.TextIOWrapper(raw)", True),
        ("open(path, 'rb')", False),
        ("path.open('a+b')", False),
        ("path.open('w', encoding='utf-8')", False),
        ("path.read_text('utf-8')", False),
        ("Image.open(path)", False),
    ],
)
def test_a_text_that_is_opened_without_encoding_is_found(source: str, found: bool) -> None:
    assert bool(opened_without_encoding(source)) is found
