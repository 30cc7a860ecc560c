"""Data as they come: each bad file is named for what it is, as rows, as an image, as an archive."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import world
from fakes.hub_server import zipped
from fakes.probe import Lab, Probe
from PIL import Image
from typer.testing import CliRunner

from proactivebench_tasks.cli.app import app
from proactivebench_tasks.data.store import LocalStore
from proactivebench_tasks.data.verify import verify
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset

ROD, QUICKDRAW = Dataset.ROD, Dataset.QUICKDRAW
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 51234\n"
ANNEX = b"/annex/objects/SHA256E-s51234--" + b"4d" * 32 + b".png\n"
PAGE = b"<!DOCTYPE html>\n<html><head><title>504 Gateway Time-out</title></head></html>\n"

#: What becomes of a file, and how it is then named.
Spoil = Callable[[bytes], bytes]
STAND_INS: Mapping[str, tuple[Spoil, str]] = {
    "LFS": (lambda whole: LFS, "it is a Git LFS pointer, which stands for a file of 51,234 bytes"),
    "LFS, Windows": (lambda whole: LFS.replace(b"\n", b"\r\n"), "it is a Git LFS pointer"),
    "annex": (lambda whole: ANNEX, "it is a git-annex pointer"),
    "page": (lambda whole: PAGE, "it is an HTML page ('504 Gateway Time-out')"),
    "error": (
        lambda whole: b'{"error": "Access is restricted"}',
        """it is a server's error message ('{"error": "Access is restricted"}')""",
    ),
    "empty": (lambda whole: b"", "it is empty"),
    "zeros": (lambda whole: bytes(len(whole)), "it is nothing but zero bytes"),
}
SPOILT: Mapping[str, tuple[Spoil, str]] = STAND_INS | {
    "letters": (lambda whole: whole.decode("latin-1").encode(), "that was saved or sent as text"),
    "replaced": (
        lambda whole: whole.decode("utf-8", "replace").encode(),
        "that was saved or sent as text",
    ),
    "base64": (lambda whole: base64.b64encode(whole), "in base64"),
    "half": (lambda whole: whole[: len(whole) // 2], "cut short, as after half a download"),
    "words": (lambda whole: b"Entry not found", "it is a text ('Entry not found')"),
}
IMAGES = SPOILT | {
    "Windows": (lambda whole: whole.replace(b"\n", b"\r\n"), "its line ends were changed"),
    "BOM": (lambda whole: b"\xef\xbb\xbf" + whole, "a PNG image with a byte order mark before it"),
    "archive": (lambda whole: b"PK\3\4" + bytes(80), "it is a zip archive"),
}
ROWS: Mapping[str, tuple[Spoil, str]] = {
    **{name: each for name, each in STAND_INS.items() if name != "empty"},
    "UTF-16": (lambda whole: whole.decode().encode("utf-16"), "it is text in UTF-16"),
    "packed": (lambda whole: b"\x1f\x8b\x08\0" + bytes(9), "it is packed with gzip"),
    "archive": (lambda whole: b"PK\3\4" + bytes(9), "it is a zip archive"),
    "Windows' letters": (
        lambda whole: whole.replace(b"sample 3", "früh".encode("cp1252")),
        "it is not UTF-8 text",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows 0 to 29 of three datasets, with their images; ids 0 to 29 count."""
    protocol = replace(BUILTIN, sample_ids=dict.fromkeys(Dataset, frozenset(range(30))))
    monkeypatch.setattr(published, "load", lambda: protocol)
    return world.make(tmp_path, {each: list(range(30)) for each in (ROD, QUICKDRAW)})


def noise(file: Path) -> bytes:
    """An image that takes some kilobytes, in place of one that takes a few bytes."""
    Image.effect_noise((60, 60), 90).convert("RGB").save(file)
    return file.read_bytes()


def faults(folder: Path, dataset: Dataset = ROD) -> tuple[str, ...]:
    return verify(LocalStore(folder), dataset, published.load()).faults


# Rows


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_are_something_else_are_one_fault(folder: Path, name: str) -> None:
    spoil, named = ROWS[name]
    file = folder / ROD.jsonl
    file.write_bytes(spoil(file.read_bytes()))
    (only,) = faults(folder)
    assert only.startswith(f"{file}: cannot be read: ")
    assert named in only and "`" in only.partition(named)[2]  # a command that mends it


@pytest.mark.parametrize(
    "spoil",
    [
        lambda whole: b"\xef\xbb\xbf" + whole,
        lambda whole: whole.replace(b"\n", b"\r\n"),
        lambda whole: b"\xef\xbb\xbf" + whole.replace(b"\n", b"\r\n"),
        lambda whole: whole.replace(b"\n", b"\r"),
        lambda whole: b"\r\n\r\n" + whole.rstrip(),
    ],
    ids=["BOM", "Windows", "both", "old Mac", "blank lines"],
)
def test_rows_that_mean_the_same_are_read(folder: Path, spoil: Spoil) -> None:
    file = folder / ROD.jsonl
    file.write_bytes(spoil(file.read_bytes()))
    assert faults(folder) == ()


@pytest.mark.parametrize("share", [0.3, 0.5, 0.99])
def test_half_of_the_rows_is_called_half_a_download(folder: Path, share: float) -> None:
    file = folder / ROD.jsonl
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    torn, *_ = faults(folder)
    assert "not JSON" in torn and "half a download" in torn
    assert f"`proactivebench download --datasets rod --data-dir {folder}` gets it anew" in torn


def test_rows_that_a_link_stood_for_are_named(folder: Path) -> None:
    (folder / ROD.jsonl).unlink()
    (folder / ROD.jsonl).symlink_to("../.git/annex/objects/a/b/SHA256-s1--4d/SHA256-s1--4d")
    (only,) = faults(folder)
    assert "it is a git-annex pointer" in only and f"`git -C {folder} annex get .`" in only


# Images


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("packed", [False, True], ids=["in a folder", "in an archive"])
def test_image_that_is_something_else_is_named(folder: Path, name: str, packed: bool) -> None:
    spoil, named = IMAGES[name]
    file = folder / ROD.value / "8_0.png"
    file.write_bytes(spoil(noise(file)))
    if packed:
        (folder / "all.zip").write_bytes(zipped(folder, ROD.value))
        shutil.rmtree(folder / ROD.value)
    (only,) = faults(folder)
    assert only.startswith(f"sample 8: image {ROD.value}/8_0.png in {folder} cannot be read: ")
    assert named in only and "`" in only.partition(named)[2]
    if packed:
        assert f"Delete {folder / 'all.zip'}" in only


def test_image_that_a_link_stood_for_is_named(folder: Path) -> None:
    file = folder / ROD.value / "8_0.png"
    file.unlink()
    file.symlink_to("../../.git/annex/objects/a/b/SHA256-s1--4d/SHA256-s1--4d")
    (only,) = faults(folder)
    assert "8_0.png" in only and "it is a git-annex pointer" in only


# Archives


def archived(folder: Path, name: str = "rod.zip") -> Path:
    """The images of ROD in an archive, and no longer in a folder."""
    noise(folder / ROD.value / "8_0.png")
    file = folder / name
    file.write_bytes(zipped(folder, ROD.value))
    shutil.rmtree(folder / ROD.value)
    return file


@pytest.mark.parametrize("name", SPOILT)
def test_archive_that_is_something_else_is_one_fault(folder: Path, name: str) -> None:
    spoil, named = SPOILT[name]
    file = archived(folder)
    file.write_bytes(spoil(file.read_bytes()))
    (only,) = faults(folder)
    assert f"more images: archive {file} cannot be read: " in only
    assert named in only and "`" in only.partition(named)[2]
    assert faults(folder, QUICKDRAW) == ()


def test_archive_with_line_ends_of_windows_is_named(folder: Path) -> None:
    for number in range(9):
        noise(folder / ROD.value / f"{number}_0.png")
    file = archived(folder)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    (only,) = faults(folder)
    assert f"archive {file} cannot be read: " in only and "its line ends were changed" in only


def test_archive_that_a_link_stood_for_is_named(folder: Path) -> None:
    file = archived(folder)
    file.unlink()
    file.symlink_to(".git/annex/objects/a/b/SHA256-s1--4d/SHA256-s1--4d")
    (only,) = faults(folder)
    assert f"archive {file} cannot be read: it is a git-annex pointer" in only


def test_folder_that_is_named_like_an_archive_is_none(folder: Path) -> None:
    (folder / "rod.zip").mkdir()
    assert faults(folder) == ()


@pytest.mark.parametrize("broken", ["rod.zip", "Realistic-Occlusion-Dataset.zip", "test_ROD-1.zip"])
def test_fault_of_one_datasets_archive_is_not_told_of_another(folder: Path, broken: str) -> None:
    archived(folder, broken).write_bytes(LFS)
    (folder / QUICKDRAW.value / "8_0000.png").unlink()
    (missing,) = faults(folder, QUICKDRAW)
    assert "8_0000.png is neither in" in missing and "LFS" not in missing


def test_fault_of_an_archive_is_not_told_of_images_that_have_theirs_elsewhere(folder: Path) -> None:
    archived(folder, "part_1.zip").write_bytes(PAGE)
    (folder / QUICKDRAW.value / "8_0000.png").unlink()
    (folder / "part_2.zip").write_bytes(zipped(folder, QUICKDRAW.value))
    (missing,) = faults(folder, QUICKDRAW)
    assert "8_0000.png is neither in" in missing and "HTML" not in missing
    (rod,) = faults(folder)
    assert "part_1.zip cannot be read: it is an HTML page" in rod


# The command, and a run


@pytest.fixture
def bad(folder: Path) -> list[str]:
    """One image of each bad kind, in samples of their own; their names."""
    for number, (spoil, _) in enumerate(IMAGES.values()):
        file = folder / ROD.value / f"{number}_0.png"
        file.write_bytes(spoil(noise(file)))
    return [named for _, named in IMAGES.values()]


def test_command_lists_each_bad_file_by_its_name(folder: Path, bad: list[str]) -> None:
    arguments = ["verify", "--data-dir", str(folder), "--datasets", "rod,quickdraw"]
    result = CliRunner().invoke(app, arguments)
    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    for number, named in enumerate(bad):
        (line,) = [each for each in lines if f"/{number}_0.png in " in each]
        assert line.startswith(f"rod: sample {number}: ") and named in line
    assert len([line for line in lines if ": sample " in line]) == len(bad)


def test_command_lists_what_is_odd_by_kind_with_examples_and_exits_0(folder: Path) -> None:
    for number in range(5):
        file = folder / ROD.value / f"{number}_0.png"
        Image.new("I;16", (9, 9), 1000 * number).save(file)
    Image.new("CMYK", (90, 3)).save(folder / ROD.value / "7_0.png", "JPEG")
    arguments = ["verify", "--data-dir", str(folder), "--datasets", "rod"]
    result = CliRunner().invoke(app, arguments)
    lines = [line for line in result.stdout.splitlines() if line.startswith("rod, odd: ")]
    assert result.exit_code == 0
    assert lines[0].startswith("rod, odd: 16-bit grey, or wider (all above 255 turns white): 5 im")
    assert lines[0].endswith(f"{ROD.value}/2_0.png (sample 2), ...")
    assert lines[1].startswith("rod, odd: printing colours, CMYK ")
    assert lines[2].startswith("rod, odd: extreme aspect, more than 20 to 1 ")
    assert len(lines) == 3


def test_run_fails_the_samples_of_bad_files_alone_before_any_generation(lab: Lab) -> None:
    lab.make(ROD, QUICKDRAW, count=30)
    for number, (spoil, _) in enumerate(IMAGES.values()):
        file = lab.data / ROD.value / f"{number}_0.png"
        file.write_bytes(spoil(noise(file)))
    (lab.data / "QuickDraw.zip").write_bytes(LFS)
    for file in (lab.data / QUICKDRAW.value).glob("8_*.png"):
        file.unlink()
    model = Probe(batch_size=4)
    rod, drawn = "proactivebench_mcqa_rod", "proactivebench_mcqa_quickdraw"
    outcome = lab.evaluate(model, rod, drawn)
    failed = list(outcome.failed(rod).values())
    assert len(failed) == len(IMAGES)
    for error, (_, named) in zip(failed, IMAGES.values(), strict=True):
        assert named in error
    (error,) = outcome.failed(drawn).values()
    assert "QuickDraw.zip cannot be read: it is a Git LFS pointer" in error
    # Nothing was asked about them, and nothing twice.
    asked = {(task, sample) for call in model.calls for task, sample in call}
    assert not asked & {(task, sample) for task in (rod, drawn) for sample in outcome.failed(task)}
    turns = [t["turns"] for task in (rod, drawn) for t in outcome.transcripts[task].values()]
    assert model.turns == sum(map(len, turns)) > 100
