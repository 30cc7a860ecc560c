"""Download: only what is needed, resumable, checked, and refused in time on a disk too small."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import warnings
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import hub_server, world
from fakes.hub_server import HubServer, zipped
from huggingface_hub import constants
from typer.testing import CliRunner

from proactivebench_tasks.cli.app import app
from proactivebench_tasks.config import DATA_DIR
from proactivebench_tasks.data import download, prepared
from proactivebench_tasks.data.hub import Hub
from proactivebench_tasks.data.hub_store import downloads
from proactivebench_tasks.data.store import LocalStore
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset

ROD, COCO, QUICKDRAW = Dataset.ROD, Dataset.COCO, Dataset.QUICKDRAW
SIZE = 1_000_000  # of an archive, about


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Three archives; ROD's images are in two of them."""
    folder = world.make(tmp_path_factory.mktemp("official"), {d: list(range(6)) for d in Dataset})
    files = {f"test/{d.jsonl}": (folder / d.jsonl).read_bytes() for d in Dataset}
    files["test/a.zip"] = zipped(folder, ROD.value, padding=SIZE)
    half = folder / "half"
    (half / ROD.value).mkdir(parents=True)
    for file in (folder / ROD.value).glob("5_*"):
        shutil.copy(file, half / ROD.value)
    files["test/b.zip"] = zipped(half, ROD.value, padding=SIZE)
    files["test/rod.zip"] = zipped(folder, COCO.value, QUICKDRAW.value, padding=SIZE)
    return files


@pytest.fixture
def hub(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HubServer]:
    with HubServer(dict(files)) as server:
        hub_server.connect(monkeypatch, server, tmp_path / "hf")
        monkeypatch.setattr(download, "PIECE", 100_000)
        monkeypatch.setattr(published, "load", lambda: BUILTIN)
        yield server


def get(folder: Path, *datasets: Dataset) -> list[str]:
    found = download.download(Hub(), datasets or list(Dataset), folder, BUILTIN)
    return [file.path for file in found]


def sent(hub: HubServer, name: str) -> int:
    return hub.sent[f"test/{name}"]


@pytest.mark.parametrize(
    ("datasets", "needed"),
    [
        ([ROD], ["a.zip", "b.zip"]),
        ([COCO], ["rod.zip"]),
        ([QUICKDRAW, COCO], ["rod.zip"]),
        ([COCO, ROD], ["a.zip", "b.zip", "rod.zip"]),
    ],
)
def test_only_archives_that_hold_images_of_the_datasets_are_fetched(
    hub: HubServer, tmp_path: Path, datasets: list[Dataset], needed: list[str]
) -> None:
    folder = tmp_path / "data"
    assert get(folder, *datasets) == needed
    assert sorted(path.name for path in folder.glob("*.zip")) == needed
    assert sorted(path.name for path in folder.glob("*.jsonl")) == sorted(d.jsonl for d in datasets)
    for name in needed:
        assert (folder / name).read_bytes() == hub.files[f"test/{name}"]
    assert not list(folder.glob("*.part"))


def test_archive_that_holds_only_images_that_are_never_shown_is_not_needed(
    hub: HubServer, tmp_path: Path
) -> None:
    """The images of b.zip are those of a sample that is not evaluated."""
    few = replace(BUILTIN, sample_ids=dict.fromkeys(Dataset, frozenset({1})))
    found = download.download(Hub(), [ROD], tmp_path / "data", few)
    assert [file.path for file in found] == ["a.zip"]


def test_second_download_fetches_nothing(hub: HubServer, tmp_path: Path) -> None:
    get(tmp_path / "data", ROD)
    before = hub.archive_bytes_sent
    get(tmp_path / "data", ROD)
    assert hub.archive_bytes_sent == before


def test_download_goes_on_where_it_was_cut(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    monkeypatch.setattr(download, "AT_ONCE", 1)  # so that the pieces are asked for in order
    Hub().listing  # noqa: B018
    download.archives(Hub(), [ROD], BUILTIN)
    before = sent(hub, "a.zip")
    # The fourth piece and all that follow are cut, again and again.
    content = hub.files["test/a.zip"]
    served = iter(range(1000))
    real = hub.trouble

    def trouble(path: str) -> hub_server.Trouble | None:
        if path.endswith("/cdn/test/a.zip") and next(served) >= 3:
            return hub_server.Trouble("", 1, after=5000)
        return real(path)

    hub.trouble = trouble  # type: ignore[method-assign]
    with pytest.raises(DataError, match=r"a\.zip"):
        get(folder, ROD)
    (part,) = folder.glob("a.zip.*.part")
    kept = part.stat().st_size
    assert 0 < kept < len(content)
    assert content.startswith(part.read_bytes())

    hub.trouble = real  # type: ignore[method-assign]
    before = sent(hub, "a.zip")
    get(folder, ROD)
    assert (folder / "a.zip").read_bytes() == content
    assert sent(hub, "a.zip") - before == len(content) - kept


def test_passing_trouble_is_waited_for(hub: HubServer, tmp_path: Path) -> None:
    hub.cut("/cdn/test/a.zip", after=3000, times=3)
    hub.fail("a.zip", 503, times=2)
    hub.fail("b.zip", 429, times=2)
    get(tmp_path / "data", ROD)
    assert (tmp_path / "data" / "a.zip").read_bytes() == hub.files["test/a.zip"]


def test_disk_that_is_too_small_is_refused_with_figures(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 0, 1_500_000))
    with pytest.raises(DataError) as error:
        get(tmp_path / "data", ROD)
    for part in ("1.5 MB free", "2.0 MB", "a.zip", "b.zip", "--data-dir"):
        assert part in str(error.value), str(error.value)
    assert not list((tmp_path / "data").glob("*.zip*"))


def test_what_is_there_counts_for_the_room_that_is_needed(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    usage = namedtuple("usage", "total used free")
    get(folder, ROD)
    whole = {name: (folder / name).read_bytes() for name in ("a.zip", "b.zip")}

    # One archive is there, and half of the other: the rest needs no more room than it has bytes.
    (file,) = (f for f in Hub().listing.files if f.path == "a.zip")
    half = len(whole["a.zip"]) // 2
    (folder / "a.zip").unlink()
    download.Wanted(file, folder / "a.zip").part.write_bytes(whole["a.zip"][:half])
    rest = len(whole["a.zip"]) - half
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 0, rest - 1))
    hub.requests.clear()
    with pytest.raises(DataError, match="Make room"):
        get(folder, ROD)
    assert [line for line in hub.requests if "/cdn/" in line] == []

    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 0, rest))
    before = sent(hub, "a.zip"), hub.archive_bytes_sent
    get(folder, ROD)
    assert sent(hub, "a.zip") - before[0] == hub.archive_bytes_sent - before[1] == rest
    assert {name: (folder / name).read_bytes() for name in whole} == whole

    # All is there: it needs no room, and nothing is asked of the archives.
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 0, 0))
    hub.requests.clear()
    assert get(folder, ROD) == ["a.zip", "b.zip"]
    assert [line for line in hub.requests if "/cdn/" in line] == []


def test_full_disk_keeps_what_was_fetched_and_says_so(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> Iterator[bytes]:
        yield hub.files["test/a.zip"][:1000]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(download, "_pieces", full)
    with pytest.raises(DataError, match=r"No space left on device.*run the same command again"):
        get(tmp_path / "data", ROD)
    (part,) = (tmp_path / "data").glob("*.part")
    assert part.stat().st_size == 1000


def test_interrupted_copy_of_the_rows_leaves_none(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:10])
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        get(tmp_path / "data", ROD)
    assert [path.name for path in (tmp_path / "data").iterdir()] == [".download.lock"]


def test_sample_that_is_wrong_keeps_no_other_from_being_fetched(
    hub: HubServer, tmp_path: Path
) -> None:
    table = [json.loads(line) for line in hub.files[f"test/{ROD.jsonl}"].splitlines()]
    table[0]["options"] = ["Sing a song."]  # leads nowhere, which `verify` tells
    text = "".join(json.dumps(row) + "\n" for row in table)
    hub.files[f"test/{ROD.jsonl}"] = text.encode()
    assert get(tmp_path / "data", ROD) == ["a.zip", "b.zip"]


def part_of(name: str, folder: Path) -> download.Wanted:
    (file,) = (f for f in Hub().listing.files if f.path == name)
    folder.mkdir(exist_ok=True)
    return download.Wanted(file, folder / name)


@pytest.mark.parametrize("size", [1, 1000, 99_999, 100_000, 3 * SIZE])
def test_damaged_part_is_found_by_its_checksum_and_fetched_from_its_beginning(
    hub: HubServer, tmp_path: Path, log: list[str], size: int
) -> None:
    part = part_of("a.zip", tmp_path / "data").part
    part.write_bytes(random.Random(0).randbytes(size))
    get(tmp_path / "data", ROD)
    assert (tmp_path / "data" / "a.zip").read_bytes() == hub.files["test/a.zip"]
    assert [line for line in log if line.startswith("WARNING")] == [
        f"WARNING {part} was damaged; fetching it from its beginning\n"
    ]


@pytest.mark.parametrize("begun", [False, True])
def test_archive_that_comes_out_wrong_is_deleted(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    part = part_of("a.zip", tmp_path / "data").part
    if begun:
        part.write_bytes(hub.files["test/a.zip"][:1000])
    real = Hub.bytes_at
    monkeypatch.setattr(Hub, "bytes_at", lambda *args: real(*args)[:-1] + b"?")
    with pytest.raises(DataError, match=r"a\.zip came out wrong.*SHA-256.*run the command again"):
        get(tmp_path / "data", ROD)
    assert not list((tmp_path / "data").glob("a.zip*"))


def test_archive_of_another_size_is_fetched_anew(hub: HubServer, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.zip").write_bytes(b"cut short")
    get(folder, ROD)
    assert (folder / "a.zip").read_bytes() == hub.files["test/a.zip"]


def test_two_downloads_at_once_fetch_once(hub: HubServer, tmp_path: Path) -> None:
    download.archives(Hub(), [ROD], BUILTIN)
    before = hub.archive_bytes_sent
    results: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: results.append(get(tmp_path / "data", ROD)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [["a.zip", "b.zip"]] * 2
    sizes = sum(len(hub.files[f"test/{name}"]) for name in ("a.zip", "b.zip"))
    assert hub.archive_bytes_sent - before == sizes


# Disks whose locks do nothing


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)


class Meeting:
    """Halts the downloads of two threads where a test says so."""

    def __init__(self, hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.results: dict[str, object] = {}
        self.dying: set[str] = set()
        self._go = {name: threading.Semaphore(0) for name in ("first", "second")}
        self._halted = threading.Semaphore(0)
        self._threads: dict[str, threading.Thread] = {}
        pieces = download._pieces

        def halting(*args: Any) -> Iterator[bytes]:
            name = threading.current_thread().name
            for number, piece in enumerate(pieces(*args)):
                if args[1].path == "a.zip" and number == self._pieces.get(name):
                    self._halted.release()
                    self._go[name].acquire()
                    if name in self.dying:
                        raise OSError("the cable is out")
                yield piece

        self._pieces: dict[str, int] = {}
        monkeypatch.setattr(download, "_pieces", halting)

    def start(self, name: str, halt_at: int | None = None) -> None:
        """Let a download run, up to this piece of its own, or to its end."""
        if halt_at is not None:
            self._pieces[name] = halt_at
        thread = threading.Thread(target=self._download, args=(name,), name=name, daemon=True)
        self._threads[name] = thread
        thread.start()
        if halt_at is None:
            thread.join(60)
        else:
            assert self._halted.acquire(timeout=60), self.results

    def finish(self, name: str) -> None:
        self._go[name].release()
        self._threads[name].join(60)

    def _download(self, name: str) -> None:
        try:
            self.results[name] = get(self.folder, ROD)
        except Exception as error:
            self.results[name] = error


@pytest.mark.parametrize("first_at", [0, 5])
@pytest.mark.parametrize("second_at", [None, 0, 3])
@pytest.mark.parametrize("last", ["first", "second"])
def test_without_locks_two_downloads_of_a_folder_damage_nothing(
    hub: HubServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    no_locks: None,
    first_at: int,
    second_at: int | None,
    last: str,
) -> None:
    """The first halts after so many pieces; the second goes to its end, or halts too; then one of
    them ends before the other."""
    folder = tmp_path / "data"
    meeting = Meeting(hub, folder, monkeypatch)
    meeting.start("first", first_at)
    meeting.start("second", second_at)
    for name in sorted(meeting.results.keys() ^ {"first", "second"}, key=lambda name: name == last):
        meeting.finish(name)
    assert meeting.results == {"first": ["a.zip", "b.zip"], "second": ["a.zip", "b.zip"]}
    for name in ("a.zip", "b.zip"):
        assert (folder / name).read_bytes() == hub.files[f"test/{name}"]
    assert {path.name for path in folder.iterdir()} == {
        *("a.zip", "b.zip", ROD.jsonl, ".download.lock")
    }


def test_without_locks_what_a_dying_download_leaves_is_gone_on_with(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_locks: None
) -> None:
    folder = tmp_path / "data"
    meeting = Meeting(hub, folder, monkeypatch)
    meeting.start("first", 6)
    meeting.start("second", 0)
    meeting.dying.add("first")
    meeting.finish("first")
    assert isinstance(meeting.results["first"], DataError)
    meeting.finish("second")
    assert meeting.results["second"] == ["a.zip", "b.zip"]
    assert (folder / "a.zip").read_bytes() == hub.files["test/a.zip"]


def deny_locks(monkeypatch: pytest.MonkeyPatch, folder: Path, number: int) -> None:
    """Have locks on files below ``folder`` refused with this number of an error."""
    real = fcntl.flock

    def flock(file: int, operation: int) -> None:
        if Path(f"/proc/self/fd/{file}").resolve().is_relative_to(folder):
            raise OSError(number, os.strerror(number))
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_cache_of_the_hub_on_a_disk_without_locks_is_named_with_what_to_set(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    deny_locks(monkeypatch, tmp_path / "hf", number)
    with pytest.raises(DataError, match=r"hf, on a disk without locks: .*Set HF_HOME to a folder"):
        get(tmp_path / "data", ROD)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_disk_that_knows_no_locks_is_named_once_and_used(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: list[str], number: int
) -> None:
    folder = tmp_path / "data"
    deny_locks(monkeypatch, folder, number)
    with warnings.catch_warnings(action="ignore"):  # of filelock, which has another lock then
        for _ in range(2):
            assert get(folder, ROD) == ["a.zip", "b.zip"]
    assert (folder / "a.zip").read_bytes() == hub.files["test/a.zip"]
    named = [line for line in log if f"WARNING {folder} is on a disk without locks" in line]
    assert len(named) == (number != errno.ENOSYS)


_CHILD = """
import fcntl, sys
fcntl.flock = lambda *_: None
from pathlib import Path
from proactivebench_tasks.data import download
from proactivebench_tasks.data.hub import Hub
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset
download.PIECE = 100_000
print("ready", flush=True)
sys.stdin.readline()
print(*(f.path for f in download.download(Hub(), [Dataset.ROD], Path(sys.argv[1]), BUILTIN)))
"""


@pytest.mark.slow
def test_without_locks_two_processes_that_start_at_once_get_the_data(
    hub: HubServer, tmp_path: Path, own_cache: Path
) -> None:
    folder = tmp_path / "data"
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(folder)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for child in children:
        assert child.stdout and child.stdout.readline() == "ready\n"
    said = [child.communicate("\n", timeout=120)[0] for child in children]
    assert said == ["a.zip b.zip\n"] * 4
    for name in ("a.zip", "b.zip"):
        assert (folder / name).read_bytes() == hub.files[f"test/{name}"]
    assert (folder / ROD.jsonl).read_bytes() == hub.files[f"test/{ROD.jsonl}"]


def test_nothing_is_written_outside_the_folder(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = (f for f in Hub().listing.files if f.path == "a.zip")
    monkeypatch.setattr(download, "archives", lambda *_: [replace(file, path="../escape.zip")])
    with pytest.raises(DataError, match="outside"):
        get(tmp_path / "data", ROD)
    assert not (tmp_path / "escape.zip").exists()


# The command


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["download", *arguments])
    return result.exit_code, result.output


def test_command_fetches_to_a_folder_that_the_tasks_can_use(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    code, said = run("--datasets", "rod,coco", "--data-dir", str(folder))
    assert code == 0, said
    assert all(part in said for part in ("a.zip", "rod.zip", "CC BY-NC", DATA_DIR))
    assert (LocalStore(folder).read(f"{ROD.value}/1_0.png") or b"").startswith(b"\x89PNG")
    monkeypatch.setenv(DATA_DIR, str(folder))
    assert Path(prepared.rod).is_file()


def test_command_without_a_folder_fetches_to_where_runs_look(hub: HubServer) -> None:
    code, said = run("--datasets", "coco")
    assert code == 0, said
    assert (downloads() / "rod.zip").is_file()
    before = hub.archive_bytes_sent
    assert Suite.OFFICIAL.store.read(f"{COCO.value}/0.png")
    assert CliRunner().invoke(app, ["verify", "--datasets", "coco"]).exit_code == 0
    assert hub.archive_bytes_sent == before


def test_command_fetches_to_the_folder_that_is_set(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_DIR, str(tmp_path / "data"))
    assert run("--datasets", "coco")[0] == 0
    assert (tmp_path / "data" / "rod.zip").is_file()


def test_command_names_an_unknown_dataset(hub: HubServer) -> None:
    code, said = run("--datasets", "rod,moon")
    assert code == 2
    assert "'moon'" in said
    assert "quickdraw" in said


def test_command_offline_explains(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    code, said = run("--datasets", "rod")
    assert code == 2
    assert "HF_HUB_OFFLINE" in said


def test_interrupted_command_leaves_a_part_that_is_right(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = download._pieces

    def interrupted(*args: object) -> Iterator[bytes]:
        pieces = real(*args)  # type: ignore[arg-type]
        yield next(pieces)
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "_pieces", interrupted)
    with pytest.raises(KeyboardInterrupt):
        get(tmp_path / "data", ROD)
    (part,) = (tmp_path / "data").glob("*.part")
    assert hub.files["test/a.zip"].startswith(part.read_bytes())
    assert part.stat().st_size == 100_000


def test_imports_of_the_command_are_light() -> None:
    code = (
        "import sys, proactivebench_tasks.cli.app; print({'torch', 'datasets'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"


@pytest.mark.parametrize("fetched", [False, True])
def test_dry_run_shows_what_is_left_and_writes_nothing(
    hub: HubServer, tmp_path: Path, fetched: bool
) -> None:
    folder = tmp_path / "data"
    if fetched:
        get(folder, ROD)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    sent_before = hub.archive_bytes_sent
    arguments = ["download", "--datasets", "rod", "--data-dir", str(folder), "--dry-run"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    first, second, total = result.stdout.splitlines()
    assert first.endswith(str(folder / "a.zip")) and second.endswith(str(folder / "b.zip"))
    assert [line.startswith("      0 bytes of ") for line in (first, second)] == [fetched] * 2
    assert total.strip().startswith("0 bytes to fetch" if fetched else "2.") and " free" in total
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert hub.archive_bytes_sent - sent_before < SIZE / 10  # directories alone
    assert folder.exists() is fetched
