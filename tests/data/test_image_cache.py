"""ImageCache: a cache that stays within its bounds and never returns what is damaged."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from proactivebench_tasks.data.image_cache import ImageCache
from proactivebench_tasks.errors import ConfigError, DataError

LIMIT = "PROACTIVEBENCH_FRAMES_GB"


def get(cache: ImageCache, key: str, content: bytes) -> list[int]:
    """Ask for a key; whether it had to be fetched."""
    fetched: list[int] = []

    def fetch() -> bytes:
        fetched.append(1)
        return content

    assert cache.get(key, content.__eq__, fetch) == content
    return fetched


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_what_was_fetched_is_kept(tmp_path: Path) -> None:
    assert get(ImageCache(tmp_path, 1000), "a", b"content")
    assert not get(ImageCache(tmp_path, 1000), "a", b"content")


def test_what_is_damaged_is_fetched_again(tmp_path: Path) -> None:
    get(ImageCache(tmp_path, 1000), "a", b"content")
    (file,) = [path for path in tmp_path.glob("??/*")]
    file.write_bytes(b"cont")
    assert get(ImageCache(tmp_path, 1000), "a", b"content")
    assert not get(ImageCache(tmp_path, 1000), "a", b"content")


def test_size_stays_within_the_limit(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path, 100_000)
    for number in range(500):
        get(cache, str(number), bytes(1000))
        if number % 20 == 0:
            assert size(tmp_path) <= 105_000
    assert size(tmp_path) > 80_000


def test_limit_holds_from_one_process_to_the_next(tmp_path: Path) -> None:
    for number in range(300):
        get(ImageCache(tmp_path, 100_000), str(number), bytes(1000))
    assert size(tmp_path) <= 100_000


def test_oldest_go_first_and_reading_makes_young(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path, 10_000)
    for name in "abc":
        get(cache, name, bytes(1000))
    for file in tmp_path.glob("??/*"):
        os.utime(file, (0, 0))
    get(cache, "a", bytes(1000))
    for number in range(8):  # one too many: of 11 there is room for 10, and 9 are left
        get(cache, str(number), bytes(1000))
    assert not get(cache, "a", bytes(1000))
    assert get(cache, "b", bytes(1000))


def test_limit_of_zero_keeps_nothing(tmp_path: Path) -> None:
    get(ImageCache(tmp_path, 0), "a", b"content")
    assert size(tmp_path) == 0


@pytest.mark.parametrize("obstacle", ["a file", "read-only"])
def test_folder_that_cannot_be_written_does_not_matter(tmp_path: Path, obstacle: str) -> None:
    folder = tmp_path / "frames"
    if obstacle == "a file":
        folder.write_text("in the way")
    else:
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        folder.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    assert get(ImageCache(folder, 1000), "a", b"content")


def test_failure_to_fetch_is_passed_on_and_keeps_nothing(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path, 1000)

    def fetch() -> bytes:
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        cache.get("a", lambda content: True, fetch)
    assert get(cache, "a", b"content")


@pytest.mark.parametrize("value", ["many", "-1", "nan", "inf"])
def test_limit_must_be_a_number(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(LIMIT, value)
    with pytest.raises(ConfigError, match=rf"{LIMIT} is '{value}'"):
        ImageCache.configured()
