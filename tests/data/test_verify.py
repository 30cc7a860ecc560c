"""Verify, info and train-data: what they find, what they say, and their exit codes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import world
from fakes.hub_server import zipped
from huggingface_hub import constants
from PIL import Image
from typer.testing import CliRunner

from proactivebench_tasks.cli.app import app
from proactivebench_tasks.config import DATA_DIR
from proactivebench_tasks.data import rows
from proactivebench_tasks.data.hub import REPO
from proactivebench_tasks.data.prepared import prepared
from proactivebench_tasks.data.store import LocalStore
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.data.verify import Findings, verify
from proactivebench_tasks.demo import DATA as DEMO_DATA
from proactivebench_tasks.environments.reachable import image_paths
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset

ROD, VSOD, QUICKDRAW = Dataset.ROD, Dataset.VSOD, Dataset.QUICKDRAW
IDS = [3, 5, 8]
PROTOCOL = replace(BUILTIN, sample_ids=dict.fromkeys(Dataset, frozenset(IDS)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(published, "load", lambda: PROTOCOL)
    monkeypatch.delenv(DATA_DIR, raising=False)
    (tmp_path / "data").mkdir()
    return world.make(tmp_path / "data", dict.fromkeys(Dataset, IDS))


def check(folder: Path, dataset: Dataset = ROD, quick: bool = False) -> Findings:
    return verify(LocalStore(folder), dataset, PROTOCOL, quick)


def edit(folder: Path, dataset: Dataset, change: Callable[[list[dict]], None]) -> None:  # type: ignore[type-arg]
    file = folder / dataset.jsonl
    table = [json.loads(line) for line in file.read_text().splitlines()]
    change(table)
    file.write_text("".join(json.dumps(row) + "\n" for row in table))


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("dataset", list(Dataset))
def test_whole_data_has_no_faults(folder: Path, dataset: Dataset, quick: bool) -> None:
    found = check(folder, dataset, quick)
    assert (found.faults, found.samples, found.expected) == ((), 3, 3)
    assert found.images >= 3


def test_demo_has_no_faults() -> None:
    for dataset in Dataset:
        found = verify(LocalStore(DEMO_DATA / "test"), dataset, BUILTIN)
        assert (found.faults, found.expected) == ((), None)
        assert found.samples == 16


@pytest.mark.parametrize("quick", [True, False])
def test_each_missing_image_is_named_with_a_sample(folder: Path, quick: bool) -> None:
    for name in ("1_0.png", "2_3.png"):
        (folder / ROD.value / name).unlink()
    faults = check(folder, quick=quick).faults
    assert len(faults) == 2
    assert faults[0].startswith(f"sample 5: image {ROD.value}/1_0.png is neither in")
    assert faults[1].startswith(f"sample 8: image {ROD.value}/2_3.png is neither in")


def test_every_image_that_can_be_shown_is_looked_at(folder: Path) -> None:
    needed = {
        path
        for dataset in Dataset
        for row in rows.read(folder / dataset.jsonl, dataset)
        for path in image_paths(row.sample)
    }
    for path in needed:
        (folder / path).write_bytes(b"no image")
    assert sum(len(check(folder, dataset).faults) for dataset in Dataset) == len(needed)
    assert not any(check(folder, dataset, quick=True).faults for dataset in Dataset)


def test_unreadable_images_are_told_by_cause(folder: Path) -> None:
    whole = (folder / ROD.value / "2_0.png").read_bytes()
    (folder / ROD.value / "2_0.png").write_bytes(whole[:50])
    (folder / ROD.value / "2_1.png").write_bytes(b"")
    Image.new("1", (9000, 9000)).save(folder / ROD.value / "2_2.png")
    cut, empty, huge = check(folder).faults
    assert "2_0.png" in cut
    assert "2_1.png" in empty
    assert "9,000 x 9,000 pixels" in huge


def test_damage_in_an_archive_is_told_with_its_name(folder: Path) -> None:
    data = bytearray(zipped(folder, ROD.value))
    at = data.index(b"2_0.png") + len("2_0.png") + 20
    data[at] ^= 255
    (folder / "a.zip").write_bytes(data)
    shutil.rmtree(folder / ROD.value)
    (fault,) = check(folder).faults
    assert fault.startswith("sample 8: archive")
    assert "a.zip" in fault
    assert "is damaged" in fault


def test_all_faulty_rows_are_told_not_only_the_first(folder: Path) -> None:
    def change(table: list[dict[str, object]]) -> None:
        table[0]["answer"] = "A moon."
        table[2]["num_images"] = "4"

    edit(folder, ROD, change)
    found = check(folder)
    assert found.samples == 1
    first, third, lacking = found.faults
    assert "line 1" in first
    assert "A moon." in first
    assert "line 3" in third
    assert "num_images" in third
    assert "2 of 3 samples lack: 3, 8" in lacking


def test_lacking_samples_are_told(folder: Path) -> None:
    edit(folder, ROD, lambda table: table.pop(1))
    assert check(folder).faults == (f"{ROD.jsonl}: 1 of 3 samples lack: 5",)


def test_samples_left_out_for_being_easy_are_not_lacking(folder: Path) -> None:
    edit(folder, VSOD, lambda table: table[1].update(strong_occlusions=False))
    found = check(folder, VSOD)
    assert (found.faults, found.samples) == ((), 2)


def test_rows_that_do_not_count_are_not_looked_at(folder: Path) -> None:
    edit(
        folder, ROD, lambda table: table.append(table[0] | {"id": 99, "image_template": "x{image}"})
    )
    assert check(folder).faults == ()


def test_suggestion_that_leads_nowhere_is_a_fault(folder: Path) -> None:
    edit(folder, QUICKDRAW, lambda table: table[1].update(options=["Sing a song."]))
    (fault,) = check(folder, QUICKDRAW).faults
    assert "sample 5" in fault
    assert "Sing a song." in fault


def test_window_that_shows_nothing_is_a_fault(folder: Path) -> None:
    def change(table: list[dict[str, dict[str, int]]]) -> None:
        table[2]["crop"]["width"] = -30  # so that it opens on the third step to the left

    edit(folder, Dataset.COCO, change)
    faults = check(folder, Dataset.COCO).faults
    assert faults
    assert all(f.startswith("sample 8: Box(") and f.endswith("shows nothing") for f in faults)


def test_missing_jsonl_is_one_fault(folder: Path) -> None:
    (folder / ROD.jsonl).unlink()
    (only,) = check(folder).faults
    assert "does not exist" in only


# The commands


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


@pytest.mark.parametrize("quick", [["--quick"], []])
def test_command_reports_by_dataset_and_exits_0(folder: Path, quick: list[str]) -> None:
    code, said = run("verify", "--data-dir", str(folder), *quick)
    assert code == 0, said
    for dataset in Dataset:
        assert any(line.split()[:2] == [dataset.value, "3/3"] for line in said.splitlines())


def test_command_exits_1_and_lists_the_faults(folder: Path) -> None:
    (folder / ROD.value / "1_0.png").unlink()
    code, said = run("verify", "--data-dir", str(folder), "--datasets", "rod,coco")
    assert code == 1
    assert f"rod: sample 5: image {ROD.value}/1_0.png is neither in" in said
    assert VSOD.value not in said


def test_command_uses_the_folder_that_is_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_DIR, str(folder))
    assert run("verify")[0] == 0


def test_command_does_not_read_the_whole_hub(folder: Path) -> None:
    code, said = run("verify")
    assert code == 2
    assert "proactivebench download" in said
    assert "--quick" in said


@pytest.fixture
def hugging_face(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test folder in the Hugging Face cache, as ``hf download`` leaves it."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    repository = tmp_path / "hf" / f"datasets--{REPO.replace('/', '--')}"
    snapshot = repository / "snapshots" / ("a" * 40)
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("a" * 40)
    return Path(shutil.copytree(folder, snapshot / "test"))


def test_command_looks_at_what_lies_in_the_hugging_face_cache(hugging_face: Path) -> None:
    code, said = run("verify", "--datasets", "rod,vsod")
    assert code == 0, said
    (hugging_face / ROD.value / "1_0.png").write_bytes(b"")
    code, said = run("verify", "--datasets", "rod")
    assert code == 1
    assert f"Delete {hugging_face / ROD.value / '1_0.png'}" in said


def test_downloads_come_before_the_hugging_face_cache(hugging_face: Path, own_cache: Path) -> None:
    downloaded = Path(shutil.copytree(hugging_face, own_cache / "data"))
    edit(downloaded, ROD, lambda table: table.pop(1))
    assert "1 of 3 samples lack: 5" in run("verify", "--datasets", "rod")[1]
    (hugging_face / VSOD.jsonl).unlink()
    assert run("verify", "--datasets", "vsod")[0] == 0


def test_what_is_in_neither_is_to_be_downloaded(hugging_face: Path, own_cache: Path) -> None:
    (hugging_face / ROD.value / "1_0.png").unlink()
    (hugging_face / VSOD.jsonl).unlink()
    code, said = run("verify", "--datasets", "rod,vsod")
    assert code == 1
    data = own_cache / "data"
    assert f"`proactivebench download --data-dir {data}` fetches it" in said
    assert f"`proactivebench download --datasets vsod --data-dir {data}` gets it" in said


def test_command_names_a_folder_that_is_none(tmp_path: Path) -> None:
    code, said = run("verify", "--data-dir", str(tmp_path / "none"))
    assert code == 2
    assert "none is no folder" in said


def test_odd_members_are_noted_and_are_no_fault(folder: Path) -> None:
    import zipfile

    with zipfile.ZipFile(folder / "odd.zip", "w") as archive:
        archive.writestr("../../escape.png", b"x")
    (folder / "cut.zip").write_bytes(b"cut")
    code, said = run("verify", "--data-dir", str(folder))
    assert code == 0
    assert "note: archive" in said
    assert "climbs out" in said
    assert "cut.zip cannot be read: it is a text ('cut')" in said


def test_info_tells_where_everything_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_DIR, str(folder))
    (folder / "a.zip").write_bytes(zipped(folder, ROD.value))
    (folder / VSOD.jsonl).unlink()
    code, said = run("info")
    assert code == 0, said
    for part in (
        str(folder),
        "a.zip",
        f"{VSOD.jsonl} missing",
        f"proactivebench download --datasets vsod --data-dir {folder}",
        "lmms-eval",
        BUILTIN.version,
        "CC BY-NC 4.0",
    ):
        assert part in said


def rows_of(said: str) -> dict[str, str]:
    """What is said of the rows of each dataset."""
    lines = [line.strip().partition(" ") for line in said.splitlines() if line.startswith("    ")]
    return {name: rest.strip() for name, _, rest in lines if name in {d.task for d in Dataset}}


def test_info_counts_samples(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_DIR, str(folder))
    monkeypatch.setattr(published, "is_here", lambda: True)
    edit(folder, ROD, lambda table: table.pop(1))
    edit(folder, VSOD, lambda table: table[1].update(strong_occlusions=False))
    edit(folder, QUICKDRAW, lambda table: table.append(table[0] | {"id": 99}))  # does not count
    edit(folder, Dataset.MVPN, lambda table: table[0].update(answer="A moon."))
    (folder / Dataset.COCO.jsonl).write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    code, said = run("info")
    assert code == 0, said
    rows = rows_of(said)
    assert rows["rod"].startswith("2 of 3 samples ")
    assert rows["vsod"].startswith("2 of 3 samples ")
    assert rows["quickdraw"].startswith("3 of 3 samples ")
    assert rows["imagenetc"].startswith("3 of 3 samples ")
    assert rows["mvpn"].startswith("2 of 3 samples, 1 row at fault: `proactivebench verify`")
    assert "it is a Git LFS pointer" in rows["coco"]


def test_a_dataset_of_which_the_protocol_lists_nothing_counts_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of a user's own does: the published ids are those of the published seven."""
    others = replace(PROTOCOL, sample_ids={VSOD: frozenset(IDS)})
    monkeypatch.setattr(published, "load", lambda: others)
    monkeypatch.setattr(published, "is_here", lambda: True)
    monkeypatch.setenv(DATA_DIR, str(folder))
    assert others.accepts(ROD, 99)
    assert not others.accepts(VSOD, 99)
    found = verify(LocalStore(folder), ROD, others)
    assert (found.faults, found.samples, found.expected) == ((), 3, None)
    assert prepared(Suite.OFFICIAL, ROD).read_text().count("\n") == 3
    for command in ("info", "verify", "protocol"):
        assert run(command)[0] == 0
    rows = rows_of(run("info")[1])
    assert rows["rod"].startswith("3 samples ")
    assert rows["vsod"].startswith("3 of 3 samples ")


def test_info_without_wording_counts_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_DIR, str(folder))
    monkeypatch.setattr(published, "is_here", lambda: False)
    code, said = run("info")
    assert code == 0, said
    assert rows_of(said)["rod"].startswith("3 rows ")
    assert "proactivebench protocol fetch" in said


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has nothing, and must not ask anybody for it."""

    def asked(*_: object, **__: object) -> None:
        pytest.fail("somebody was asked")

    monkeypatch.setattr("socket.socket.connect", asked)
    monkeypatch.setattr("socket.getaddrinfo", asked)
    monkeypatch.setattr(published, "_pip_download", asked)
    monkeypatch.setattr(published, "_installed", lambda: None)
    monkeypatch.setattr(published, "load", published.load.__wrapped__)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    monkeypatch.setenv("PROACTIVEBENCH_CACHE", str(tmp_path / "empty"))


@pytest.mark.parametrize("offline", [False, True])
def test_info_asks_nobody_and_says_what_would_be_fetched(
    nobody: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, offline: bool
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    code, said = run("info")
    assert code == 0, said
    for row in rows_of(said).values():
        assert row.endswith("missing") if offline else row.endswith("fetched when needed")
    assert len(rows_of(said)) == 7
    assert "proactivebench download --datasets rod,vsod" in said
    assert "not on this disk: `proactivebench protocol fetch` gets it" in said
    assert not (tmp_path / "empty").exists()
