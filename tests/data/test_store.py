"""LocalStore: which images a folder has; NetworkRead: what counts as much over the network."""

from __future__ import annotations

import zipfile
from pathlib import Path

import fsspec
import pytest

from proactivebench_tasks.data.store import LocalStore, NetworkRead
from proactivebench_tasks.errors import DataError


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    (tmp_path / "ROD").mkdir()
    (tmp_path / "ROD" / "1.png").write_bytes(b"content")
    return LocalStore(tmp_path)


def test_image_that_is_there_is_found_and_read(store: LocalStore) -> None:
    assert "ROD/1.png" in store
    assert store.read("ROD/1.png") == b"content"


@pytest.mark.parametrize("path", ["ROD/2.png", "VSOD/1.png", "ROD/1.png/2.png"])
def test_path_to_nothing_is_not_found(store: LocalStore, path: str) -> None:
    assert path not in store
    assert store.read(path) is None


def test_folder_is_no_image(store: LocalStore) -> None:
    assert "ROD" not in store
    with pytest.raises(DataError, match="ROD cannot be read"):
        store.read("ROD")


@pytest.mark.parametrize("path", ["ROD/" + "a" * 300, "ROD/a\0b"], ids=["too long", "NUL"])
def test_path_that_no_disk_can_have_is_an_error_of_ours_or_not_found(
    store: LocalStore, path: str
) -> None:
    try:
        assert path not in store
    except DataError as error:
        assert "cannot be read" in str(error)
    with pytest.raises(DataError, match="cannot be read"):
        store.read(path)


def test_image_is_located_where_it_opens(store: LocalStore) -> None:
    with fsspec.open(store.locate("ROD/1.png")) as file:
        assert file.read() == b"content"


def test_image_in_an_archive_is_located_where_it_opens(store: LocalStore) -> None:
    with zipfile.ZipFile(store.folder / "a b.zip", "w") as archive:
        archive.writestr("VSOD/1.png", b"other content")
    with fsspec.open(store.locate("VSOD/1.png")) as file:
        assert file.read() == b"other content"


@pytest.mark.parametrize("path", ["ROD/2.png", "ROD", "ROD/" + "a" * 300, "ROD/a\0b"])
def test_image_that_cannot_be_found_is_located_nowhere(store: LocalStore, path: str) -> None:
    assert store.locate(path) == path


@pytest.mark.parametrize(("read", "is_much"), [(0, False), (50, False), (51, True)])
def test_more_than_a_twentieth_of_an_archive_is_much(read: int, is_much: bool) -> None:
    assert NetworkRead("a.zip", read, size=1000).is_much is is_much


def test_network_read_says_how_much_of_what() -> None:
    said = str(NetworkRead("a.zip", 1_500_000, 3_000_000_000))
    assert said == "1.5 MB of the 3.00 GB of a.zip image by image"
