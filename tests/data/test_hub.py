"""The official data on the hub, by the real client against a stand-in of the hub's HTTP API."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest
from fakes import hub_server, world
from fakes.hub_server import HubServer, zipped
from fakes.probe import ALL, Lab, Probe, sample_id
from huggingface_hub import constants

from proactivebench_tasks.data import prepared, rows, suite
from proactivebench_tasks.data.hub import Hub, HubListing
from proactivebench_tasks.data.hub_store import HubStore, downloads
from proactivebench_tasks.data.store import LocalStore, NetworkRead, Store
from proactivebench_tasks.demo import DATA as DEMO_DATA
from proactivebench_tasks.environments.reachable import image_paths
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Dataset

QUICKDRAW, ROD, COCO = Dataset.QUICKDRAW, Dataset.ROD, Dataset.COCO
IMAGE = f"{ROD.value}/1_0.png"
COUNT = 8  # samples of each dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in the official layout."""
    ids = {d: [sample_id(number, d) for number in range(COUNT)] for d in Dataset}
    return world.make(tmp_path_factory.mktemp("official"), ids)


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, bytes]:
    """The same data as the hub has them: in archives whose names do not tell which dataset is in
    them, and one of which holds two datasets."""
    held = {
        "images_0.zip": [Dataset.VSOD, Dataset.MVPN],
        "extra.zip": [ROD],
        "rod.zip": [QUICKDRAW],
        "a b+ü.zip": [Dataset.IMAGENETC],
        "more/x.zip": [Dataset.CHANGEIT],
        "z.zip": [COCO],
    }
    files = {f"test/{d.jsonl}": (folder / d.jsonl).read_bytes() for d in Dataset}
    for name, datasets in held.items():
        names = [dataset.value for dataset in datasets]
        files[f"test/{name}"] = zipped(folder, *names, padding=3_000_000)
    return files


@pytest.fixture
def hub(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HubServer]:
    with HubServer(dict(files)) as server:
        hub_server.connect(monkeypatch, server, tmp_path / "hf")
        yield server


def new_store() -> HubStore:
    """The hub's data as a new process would see them."""
    return HubStore(Hub())


def archive_requests(hub: HubServer) -> int:
    return sum("/cdn/" in line and line.endswith(".zip") for line in hub.requests)


@pytest.fixture
def lab(lab: Lab, monkeypatch: pytest.MonkeyPatch, hub: HubServer) -> Lab:
    monkeypatch.delenv("PROACTIVEBENCH_DATA_DIR", raising=False)
    return lab


# Where an image is


def test_image_on_the_hub_is_located_where_it_opens(hub: HubServer) -> None:
    store = new_store()
    content = store.read(IMAGE)
    place = store.locate(IMAGE)
    assert place.startswith(f"zip://{IMAGE}::hf://datasets/")
    with fsspec.open(place) as file:
        assert file.read() == content


def test_nobody_is_asked_only_to_locate_an_image(hub: HubServer) -> None:
    assert new_store().locate(IMAGE) == IMAGE
    assert archive_requests(hub) == 0


# A first number


def test_first_number_needs_no_setup_and_little_of_the_archive(lab: Lab, hub: HubServer) -> None:
    outcome = lab.evaluate(Probe(4), ALL[QUICKDRAW], limit=8)
    assert len(outcome.transcripts[ALL[QUICKDRAW]]) == 8
    assert not outcome.failed(ALL[QUICKDRAW])
    total = sum(len(content) for name, content in hub.files.items() if name.endswith(".zip"))
    assert hub.sent["test/rod.zip"] < 0.05 * len(hub.files["test/rod.zip"])
    assert hub.archive_bytes_sent < 0.05 * total


def test_second_run_reads_nothing_of_the_archives(lab: Lab, hub: HubServer) -> None:
    first = lab.evaluate(Probe(4), ALL[QUICKDRAW], limit=8)
    suite._hub.cache_clear()
    before = archive_requests(hub)
    second = lab.evaluate(Probe(4), ALL[QUICKDRAW], limit=8)
    assert second.transcripts == first.transcripts
    assert archive_requests(hub) == before


def test_an_image_is_one_range_request(hub: HubServer) -> None:
    store = new_store()
    store.read(IMAGE)
    before = archive_requests(hub)
    store.read(f"{ROD.value}/2_1.png")
    assert archive_requests(hub) == before + 1


def test_archives_are_found_by_what_they_hold(hub: HubServer, folder: Path) -> None:
    store = new_store()
    for dataset in Dataset:
        for file in (folder / dataset.value).iterdir():
            path = f"{dataset.value}/{file.name}"
            assert store.read(path) == file.read_bytes()
    assert store.read("ROD/none.png") is None
    assert "extra.zip" in store.missing("ROD/none.png")


def tree_requests(hub: HubServer) -> int:
    return sum("/tree/" in line for line in hub.requests)


def test_listing_that_comes_in_pages_is_read_whole(hub: HubServer) -> None:
    hub.page = 2
    count = len(hub.files) - 1  # the README is not in the test folder
    entries = count + 1  # the folder `more`
    assert (len(Hub().listing.files), tree_requests(hub)) == (count, entries / 2)
    assert len(new_store().archives.all) == 6


def test_page_of_the_listing_that_fails_is_asked_for_again(hub: HubServer) -> None:
    hub.page = 5
    whole = Hub()._files(hub.commit)
    assert tree_requests(hub) == 3
    real, seen = hub.trouble, []

    def second_page_is_limited(path: str) -> hub_server.Trouble | None:
        seen.extend([path] * ("/tree/" in path))
        return hub_server.Trouble("", 1, 429) if seen == [path, path] else real(path)

    hub.trouble = second_page_is_limited  # type: ignore[method-assign]
    assert Hub()._files(hub.commit) == whole
    assert hub.pauses


def test_files_are_listed_with_size_hash_and_the_commit_they_are_of(hub: HubServer) -> None:
    hub.files["test/small.txt"] = b"small"
    listing = Hub().listing
    assert listing.commit == hub.commit
    assert [file.path for file in listing.files] == sorted(file.path for file in listing.files)
    for file in listing.files:
        content = hub.files[f"test/{file.path}"]
        assert file.size == len(content)
        is_large = file.size > hub_server.LARGE
        assert file.sha256 == (hashlib.sha256(content).hexdigest() if is_large else None)
    assert {file.sha256 is None for file in listing.files} == {True, False}
    (line,) = {line for line in hub.requests if "/tree/" in line}
    assert f"/tree/{hub.commit}/test" in line


def test_listing_is_asked_for_once_for_each_commit(hub: HubServer) -> None:
    assert [Hub().listing for _ in range(3)] == [Hub().listing] * 3
    assert tree_requests(hub) == 1
    hub.commit = "beef" + "0" * 36
    assert Hub().listing.commit == hub.commit
    assert tree_requests(hub) == 2


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        "3",
        '"text"',
        "null",
        "{}",
        '{"commit": "c0ffee"}',
        '{"commit": "c0ffee", "files": 3}',
        '{"commit": "c0ffee", "files": [3]}',
        '{"commit": "c0ffee", "files": [{"path": "a.zip", "size": 1}]}',
        '{"commit": "c0ffee", "files": [{"path": "a.zip", "size": "big", "etag": "x"}]}',
        '{"commit": null, "files": []}',
        b"\xff\xfe",
    ],
    ids=repr,
)
def test_saved_listing_that_is_damaged_is_asked_for_anew(
    hub: HubServer, own_cache: Path, damage: str | bytes
) -> None:
    whole = Hub().listing
    saved = own_cache / "hub.json"
    saved.write_bytes(damage.encode() if isinstance(damage, str) else damage)
    assert HubListing.saved() is None
    assert Hub().listing == whole == HubListing.saved()
    assert tree_requests(hub) == 2


def test_cache_that_cannot_be_written_only_means_that_the_listing_is_not_kept(
    hub: HubServer, own_cache: Path
) -> None:
    (own_cache / "hub.json").mkdir()
    assert Hub().listing.commit == hub.commit
    assert HubListing.saved() is None


# The same from everywhere


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The demo's content as the hub would have it."""
    test = DEMO_DATA / "test"
    files = {f"test/{d.jsonl}": (test / d.jsonl).read_bytes() for d in Dataset}
    for number, dataset in enumerate(Dataset):
        files[f"test/{number}.zip"] = zipped(test, dataset.value)
    return files


def as_zips(files: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name.removeprefix("test/")).write_bytes(content)
    return folder


def test_demo_is_the_same_from_folder_zips_and_hub(
    demo: dict[str, bytes], hub: HubServer, tmp_path: Path
) -> None:
    hub.files |= demo
    folder = LocalStore(DEMO_DATA / "test")
    others: list[Store] = [LocalStore(as_zips(demo, tmp_path / "zips")), new_store()]
    count = 0
    for dataset in Dataset:
        for row in rows.read(folder.rows(dataset), dataset):
            for path in image_paths(row.sample):
                content = folder.read(path)
                assert content is not None
                assert all(other.read(path) == content for other in others)
                count += 1
    assert count > 300


@pytest.mark.slow
def test_transcripts_are_the_same_from_folder_zips_and_hub(
    demo: dict[str, bytes], hub: HubServer, lab: Lab, tmp_path: Path
) -> None:
    from fakes.probe import task_manager, transcript
    from lmms_eval import evaluator

    hub.files |= demo
    seen = []
    for place in (DEMO_DATA / "test", as_zips(demo, tmp_path / "zips"), None):
        if place:
            lab.monkeypatch.setenv("PROACTIVEBENCH_DATA_DIR", str(place))
        else:
            lab.monkeypatch.delenv("PROACTIVEBENCH_DATA_DIR")
        results = evaluator.simple_evaluate(
            model="proactivebench_baseline",
            model_args="policy=random",
            tasks=list(ALL.values()),
            task_manager=task_manager(),
            bootstrap_iters=0,
        )
        records = {t: [transcript(r) for r in rows] for t, rows in results["samples"].items()}
        for turn in (
            turn for found in records.values() for each in found for turn in each["turns"]
        ):
            del turn["file"]  # which names the place
        seen.append(records)
    assert seen[0] == seen[1] == seen[2]
    assert hub.archive_bytes_sent > 0


def test_download_is_read_before_the_hub(hub: HubServer, folder: Path) -> None:
    downloads().mkdir(parents=True)
    (downloads() / "any.zip").write_bytes(hub.files["test/extra.zip"])
    (downloads() / ROD.jsonl).write_bytes(hub.files[f"test/{ROD.jsonl}"])
    store = new_store()
    assert store.rows(ROD).parent == downloads()
    assert store.read(IMAGE) == (folder / IMAGE).read_bytes()
    assert hub.requests == []


def test_archive_in_the_hugging_face_cache_is_read_there(hub: HubServer, folder: Path) -> None:
    import huggingface_hub

    huggingface_hub.hf_hub_download(hub_server.REPO, "test/extra.zip", repo_type="dataset")
    store = new_store()
    store.rows(ROD)
    before = archive_requests(hub)
    assert store.read(IMAGE) == (folder / IMAGE).read_bytes()
    assert archive_requests(hub) == before


def test_readme_that_describes_train_alone_does_not_disturb(lab: Lab, hub: HubServer) -> None:
    """The real repository's README has ``dataset_info`` for train only; here it lies beside the
    test rows, too."""
    assert b"- name: train" in hub.files["README.md"]
    folder = new_store().rows(ROD).parent
    (folder / "README.md").write_bytes(hub.files["README.md"])
    (folder.parent / "README.md").write_bytes(hub.files["README.md"])
    outcome = lab.evaluate(Probe(4), ALL[ROD], limit=2)
    assert len(outcome.transcripts[ALL[ROD]]) == 2


# Trouble


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("part", ["/api/datasets", "/tree/", ".jsonl", ".zip"])
def test_trouble_that_passes_is_waited_for(
    hub: HubServer, folder: Path, status: int, part: str
) -> None:
    hub.fail(part, status, times=2)
    store = new_store()
    assert store.rows(ROD).read_bytes() == (folder / ROD.jsonl).read_bytes()
    assert store.read(IMAGE) == (folder / IMAGE).read_bytes()
    assert hub.pauses


def test_retry_after_is_kept(hub: HubServer, folder: Path) -> None:
    store = new_store()
    store.archives  # noqa: B018
    hub.fail(".zip", 429, Retry_After="17")
    assert store.read(IMAGE) == (folder / IMAGE).read_bytes()
    assert hub.pauses == [18.0]  # huggingface_hub adds one


def test_cut_transfer_is_repeated(hub: HubServer, folder: Path) -> None:
    store = new_store()
    hub.cut("/cdn/test/extra.zip", after=10, times=2)
    assert store.read(IMAGE) == (folder / IMAGE).read_bytes()
    hub.cut("/cdn/test/extra.zip", after=10)
    assert store.read(f"{ROD.value}/2_1.png") == (folder / ROD.value / "2_1.png").read_bytes()


def test_answer_that_ignores_the_range_is_an_error(hub: HubServer) -> None:
    store = new_store()
    store.archives  # noqa: B018
    hub.ranges = False
    with pytest.raises(DataError, match="drops range requests"):
        store.read(IMAGE)


def test_trouble_that_lasts_is_an_error_that_says_what_to_do(hub: HubServer) -> None:
    store = new_store()
    store.archives  # noqa: B018
    hub.fail(".zip", 503, times=99)
    with pytest.raises(DataError, match=r"extra\.zip.*503.*proactivebench download"):
        store.read(IMAGE)


@pytest.mark.parametrize("part", ["/api/datasets", "/tree/"])
def test_trouble_that_lasts_is_given_up_in_time(hub: HubServer, part: str) -> None:
    """Also where huggingface_hub repeats a request by itself."""
    hub.fail(part, 503, times=99)
    with pytest.raises(DataError, match=r"the list of files.*503.*proactivebench download"):
        _ = Hub().listing
    assert sum(part in line for line in hub.requests) <= 6
    assert 10 < sum(hub.pauses) < 40


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_trouble_that_cannot_pass_is_not_waited_for(hub: HubServer, status: int) -> None:
    hub.fail("/tree/", status, times=99)
    with pytest.raises(DataError, match="the list of files"):
        _ = Hub().listing
    assert (tree_requests(hub), hub.pauses) == (1, [])


def test_rate_limit_that_lasts_advises_to_log_in(hub: HubServer) -> None:
    hub.fail("/api/", 429, times=99)
    with pytest.raises(DataError, match=r"\(429\).*hf auth login"):
        new_store().rows(ROD)


def test_archive_that_cannot_be_asked_hides_no_other(hub: HubServer, folder: Path) -> None:
    hub.fail("images_0.zip", 404, times=99)
    store = new_store()
    assert store.read(IMAGE) == (folder / IMAGE).read_bytes()
    with pytest.raises(DataError, match=r"images_0\.zip"):
        store.read(f"{Dataset.VSOD.value}/1_0000.png")


def test_private_dataset_advises_to_log_in(hub: HubServer) -> None:
    hub.token = "hf_secret"
    with pytest.raises(DataError, match=r"401.*hf auth login") as error:
        new_store().rows(ROD)
    assert "secret" not in str(error.value)


def test_token_is_sent_to_the_hub_and_not_to_the_cdn(
    hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "hf_secret"
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    store = new_store()
    assert store.read(IMAGE) == (folder / IMAGE).read_bytes()
    assert "hf_secret" not in hub.cdn_tokens


def test_damaged_member_is_an_error_and_is_not_kept(
    hub: HubServer, folder: Path, own_cache: Path
) -> None:
    content = hub.files["test/extra.zip"]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        at = archive.getinfo(IMAGE).header_offset + 30 + len(IMAGE) + 10
    hub.files["test/extra.zip"] = content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]
    with pytest.raises(DataError, match=r"extra\.zip.*is damaged"):
        new_store().read(IMAGE)
    assert not [f for f in (own_cache / "frames").rglob("*") if f.suffix != ".lock" and f.is_file()]


def test_new_commit_is_read_anew(hub: HubServer, folder: Path) -> None:
    assert new_store().read(IMAGE) == (folder / IMAGE).read_bytes()
    changed = folder / ROD.value / "2_1.png"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(IMAGE, changed.read_bytes())
    hub.files["test/extra.zip"] = buffer.getvalue() + bytes(0)
    hub.commit = "beef" + "0" * 36
    assert new_store().read(IMAGE) == changed.read_bytes()


# Offline


def test_offline_without_anything_explains_what_to_fetch_and_how(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError) as error:
        new_store().rows(ROD)
    for part in (ROD.jsonl, "HF_HUB_OFFLINE", "proactivebench download", "PROACTIVEBENCH_DATA_DIR"):
        assert part in str(error.value)
    assert hub.requests == []


def test_offline_what_was_read_before_is_there(
    hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_store()
    store.rows(ROD)
    store.read(IMAGE)
    before = list(hub.requests)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    store = new_store()
    assert store.rows(ROD).read_bytes() == (folder / ROD.jsonl).read_bytes()
    assert store.read(IMAGE) == (folder / IMAGE).read_bytes()
    with pytest.raises(DataError, match=r"extra\.zip.*HF_HUB_OFFLINE.*proactivebench download"):
        store.read(f"{ROD.value}/2_1.png")
    assert hub.requests == before


def test_hub_that_cannot_be_reached_is_survived_with_what_is_known(
    hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    store = new_store()
    store.rows(ROD)
    store.read(IMAGE)
    hub.fail("/api/", 503, times=99)
    store = new_store()
    assert store.rows(ROD).is_file()
    assert store.read(IMAGE) == (folder / IMAGE).read_bytes()
    assert any("WARNING" in line and hub.commit[:8] in line for line in log)


# Much over the network


def test_reading_much_of_an_archive_is_warned_of_once(
    hub: HubServer, log: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(f"{NetworkRead.__module__}.NETWORK_SHARE", 0.0003)
    store = new_store()
    for file in sorted((folder / ROD.value).iterdir()):
        store.read(f"{ROD.value}/{file.name}")
    (line,) = [line for line in log if "image by image" in line]
    assert all(part in line for part in ("WARNING", "extra.zip", "proactivebench download"))


def test_run_that_could_read_much_is_announced_when_it_is_prepared(
    lab: Lab, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{NetworkRead.__module__}.NETWORK_SHARE", 0.0003)
    _ = prepared.rod
    (line,) = [line for line in log if "without --limit" in line]
    assert all(part in line for part in ("extra.zip", "proactivebench download --datasets rod"))


def test_little_is_not_announced(lab: Lab, log: list[str]) -> None:
    _ = prepared.rod
    assert not [line for line in log if "without --limit" in line]


# Several at once


def test_threads_that_read_at_once_ask_for_the_commit_once(hub: HubServer) -> None:
    hub_client = Hub()
    (file,) = (file for file in hub_client.listing.files if file.path == "extra.zip")
    before = len(hub.requests)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda start: hub_client.bytes_at(file, start, start + 1), range(16)))
    asked = [line for line in hub.requests[before:] if "/api/datasets/" in line]
    assert len(asked) == 2  # the commit, and the test folder's files


def test_threads_fetch_an_image_once(hub: HubServer, folder: Path) -> None:
    store = new_store()
    with ThreadPoolExecutor(8) as pool:
        contents = list(pool.map(store.read, [IMAGE] * 16))
    assert contents == [(folder / IMAGE).read_bytes()] * 16
    # Three requests for the archive's index, one for the image.
    assert sum(line.endswith("/cdn/test/extra.zip") for line in hub.requests) == 4


_READER = """
import sys
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.data.suite import Suite
store = Suite.OFFICIAL.store
print(len(store.rows(Dataset.ROD).read_bytes()), len(store.read(sys.argv[1])))
"""


def test_processes_started_at_once_on_an_empty_cache_fetch_once(
    hub: HubServer, folder: Path, tmp_path: Path, own_cache: Path
) -> None:
    environment = os.environ | {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "home"),
        "PROACTIVEBENCH_CACHE": str(own_cache),
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _READER, IMAGE],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[0] for process in started]
    sizes = [(folder / ROD.jsonl).stat().st_size, (folder / IMAGE).stat().st_size]
    assert said == [f"{sizes[0]} {sizes[1]}\n"] * 2
    fetched = [line for line in hub.requests if "/cdn/" in line]
    assert sum(line.endswith(ROD.jsonl) for line in fetched) == 1
    assert sum(line.endswith("extra.zip") for line in fetched) == 4  # three for its index


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_workers_read_on(hub: HubServer, folder: Path) -> None:
    store = new_store()
    store.read(IMAGE)
    paths = [f"{ROD.value}/{file.name}" for file in sorted((folder / ROD.value).iterdir())][:12]
    expected = [(folder / path).read_bytes() for path in paths]
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            os._exit(0 if [store.read(path) for path in paths] == expected else 1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]


def test_listing_is_json_that_another_process_reads(hub: HubServer, own_cache: Path) -> None:
    new_store().rows(ROD)
    saved = json.loads((own_cache / "hub.json").read_text())
    assert saved["commit"] == hub.commit
    assert {file["path"] for file in saved["files"]} >= {"extra.zip", "more/x.zip", ROD.jsonl}
