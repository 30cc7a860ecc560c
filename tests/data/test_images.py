"""Images: what is cut out of them, and that a bad one is a ``DataError`` that names it."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import pytest
from fakes import world
from PIL import Image, ImageFile

from proactivebench_tasks.data.images import load_image
from proactivebench_tasks.data.store import LocalStore
from proactivebench_tasks.environments.environment import Box
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Dataset

IMAGE = "coco2014/0.png"  # 128 x 128, (red, green) = (x, y)


@pytest.fixture(autouse=True)
def strict_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow as it comes. Importing lmms_eval makes it lenient for the whole process."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return world.make(tmp_path, {Dataset.COCO: [7]})


def load(folder: Path, image_path: str, crop: Box | None = None) -> Image.Image:
    return load_image(LocalStore(folder), image_path, crop)


def corners(image: Image.Image) -> list[object]:
    """The pixels at the upper left and at the lower right."""
    return [image.getpixel((0, 0)), image.getpixel((image.width - 1, image.height - 1))]


def test_whole_image_is_shown_without_a_window(folder: Path) -> None:
    image = load(folder, IMAGE)
    assert image.size == (128, 128)
    assert corners(image) == [(0, 0, 0), (127, 127, 0)]


def test_window_is_left_top_right_bottom(folder: Path) -> None:
    image = load(folder, IMAGE, Box(left=10, top=20, right=40, bottom=70))
    assert image.size == (30, 50)
    assert corners(image) == [(10, 20, 0), (39, 69, 0)]


@pytest.mark.parametrize(
    ("left", "first"), [(10.4, 10), (10.6, 11), (10.5, 10), (11.5, 12)], ids=repr
)
def test_window_between_pixels_is_rounded_to_even(folder: Path, left: float, first: int) -> None:
    image = load(folder, IMAGE, Box(left=left, top=0, right=100, bottom=100))
    assert image.getpixel((0, 0)) == (first, 0, 0)


def test_window_beyond_the_image_is_black_there(folder: Path) -> None:
    image = load(folder, IMAGE, Box(left=-2, top=5, right=130, bottom=6))
    row = [image.getpixel((x, 0)) for x in range(image.width)]
    assert row == [(0, 0, 0)] * 2 + [(x, 5, 0) for x in range(128)] + [(0, 0, 0)] * 2


@pytest.mark.parametrize(
    ("mode", "colour", "shown"),
    [
        ("L", 77, (77, 77, 77)),
        ("1", 1, (255, 255, 255)),
        ("RGBA", (1, 2, 3, 0), (1, 2, 3)),
        ("CMYK", (0, 0, 0, 255), (0, 0, 0)),
        ("P", 0, (0, 0, 0)),
        ("I;16", 0, (0, 0, 0)),
    ],
)
def test_any_kind_of_pixels_comes_out_as_rgb(
    tmp_path: Path, mode: str, colour: object, shown: tuple[int, int, int]
) -> None:
    Image.new(mode, (4, 4), colour).save(tmp_path / "a.tiff")  # type: ignore[arg-type]
    image = load(tmp_path, "a.tiff")
    assert (image.mode, image.getpixel((0, 0))) == ("RGB", shown)


def test_pixels_stay_when_the_file_goes(folder: Path) -> None:
    image = load(folder, IMAGE)
    (folder / IMAGE).unlink()
    assert image.getpixel((3, 4)) == (3, 4, 0)


def test_missing_image_is_named_with_its_folder(folder: Path) -> None:
    with pytest.raises(DataError) as error:
        load(folder, "coco2014/1.png")
    assert "coco2014/1.png" in str(error.value) and str(folder) in str(error.value)


@pytest.mark.parametrize("kept", [0, 1, 20, -60])
def test_truncated_image_is_named(folder: Path, kept: int) -> None:
    path = folder / IMAGE
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DataError, match=r"coco2014/0\.png .*cannot be read"):
        load(folder, IMAGE)


def test_truncated_image_is_refused_even_where_the_harness_made_pillow_lenient(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    (folder / IMAGE).write_bytes((folder / IMAGE).read_bytes()[:-60])
    with pytest.raises(DataError):
        load(folder, IMAGE)


@pytest.mark.parametrize(
    "content", [b"", b"GIF89a", b"<html>not found</html>", b"\x89PNG\r\n\x1a\n"]
)
def test_file_that_is_no_image_is_named(folder: Path, content: bytes) -> None:
    (folder / IMAGE).write_bytes(content)
    with pytest.raises(DataError, match=r"coco2014/0\.png .*cannot be read"):
        load(folder, IMAGE)


def test_image_that_claims_too_many_pixels_is_refused_undecoded(folder: Path) -> None:
    content = bytearray((folder / IMAGE).read_bytes())
    content[16:24] = (60_000).to_bytes(4, "big") * 2  # width and height in a PNG's header
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, "big")
    (folder / IMAGE).write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"coco2014/0\.png"):
        load(folder, IMAGE)


@pytest.mark.parametrize(
    "path",
    [
        "coco2014",
        "coco2014/0.png/1.png",
        "a" * 300,
        "a\0b",
    ],
    ids=repr,
)
def test_path_to_no_file_is_an_error_of_ours(folder: Path, path: str) -> None:
    with pytest.raises(DataError):
        load(folder, path)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_damage_anywhere_is_an_error_of_ours_or_none(tmp_path: Path, kind: str) -> None:
    rng = random.Random(kind)
    Image.effect_noise((24, 24), 50).convert("RGB").save(tmp_path / "a", kind)
    whole = (tmp_path / "a").read_bytes()
    failed = 0
    for _ in range(150):
        damaged = bytearray(whole[: rng.choice([len(whole), rng.randrange(1, len(whole))])])
        for _ in range(3):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        (tmp_path / "a").write_bytes(damaged)
        try:
            load(tmp_path, "a")
        except DataError:
            failed += 1
    assert failed > 30


@pytest.mark.parametrize(
    "crop", [Box(50, 0, 10, 10), Box(0, 50, 10, 10), Box(0, 0, 1e6, 1e6)], ids=repr
)
def test_window_that_makes_no_sense_is_an_error_of_ours(folder: Path, crop: Box) -> None:
    with pytest.raises(DataError, match=r"coco2014/0\.png"):
        load(folder, IMAGE, crop)
