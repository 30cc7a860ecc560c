"""Oddities: which images are perhaps not shown as they were meant, and which are."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from proactivebench_tasks.data.images import load_image, opened
from proactivebench_tasks.data.oddities import Oddity, oddities
from proactivebench_tasks.data.store import LocalStore


def plain(mode: str = "RGB", size: tuple[int, int] = (8, 8)) -> Image.Image:
    return Image.linear_gradient("L").resize(size).convert(mode)


def saved(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def see_through(mode: str, alpha: int = 90) -> Image.Image:
    image = plain(mode)
    image.putalpha(Image.new("L", image.size, alpha))
    return image


def frames(count: int) -> list[Image.Image]:
    return [Image.new("RGB", (8, 8), (40 * number, 0, 0)) for number in range(count)]


ODD: dict[str, tuple[Callable[[], bytes], set[Oddity]]] = {
    "16-bit PNG": (lambda: saved(Image.new("I;16", (4, 4), 30_000)), {Oddity.WIDE_GREY}),
    "16-bit PNG, dark": (lambda: saved(Image.new("I;16", (4, 4), 90)), {Oddity.WIDE_GREY}),
    "16-bit TIFF": (lambda: saved(Image.new("I;16", (4, 4), 700), "TIFF"), {Oddity.WIDE_GREY}),
    "32-bit TIFF": (lambda: saved(Image.new("I", (4, 4), 70_000), "TIFF"), {Oddity.WIDE_GREY}),
    "float TIFF": (lambda: saved(Image.new("F", (4, 4), 0.5), "TIFF"), {Oddity.WIDE_GREY}),
    "JPEG, turned": (lambda: saved(plain(), "JPEG", exif=turned(6)), {Oddity.ROTATED}),
    "JPEG, mirrored": (lambda: saved(plain(), "JPEG", exif=turned(2)), {Oddity.ROTATED}),
    "PNG, turned": (lambda: saved(plain(), exif=turned(3)), {Oddity.ROTATED}),
    "WebP, turned": (lambda: saved(plain(), "WEBP", exif=turned(8)), {Oddity.ROTATED}),
    "PNG with alpha": (lambda: saved(see_through("RGB")), {Oddity.ALPHA}),
    "grey with alpha": (lambda: saved(see_through("L", 0)), {Oddity.ALPHA}),
    "WebP with alpha": (lambda: saved(see_through("RGB"), "WEBP"), {Oddity.ALPHA}),
    "one colour is transparent": (
        lambda: saved(Image.new("RGB", (4, 4), (1, 2, 3)), transparency=(1, 2, 3)),
        {Oddity.ALPHA},
    ),
    "palette PNG": (
        lambda: saved(Image.new("P", (4, 4), 0), transparency=0),
        {Oddity.PALETTE_TRANSPARENCY},
    ),
    "GIF": (
        lambda: saved(Image.new("P", (4, 4), 0), "GIF", transparency=0),
        {Oddity.PALETTE_TRANSPARENCY},
    ),
    "animated GIF": (
        lambda: saved(frames(3)[0], "GIF", save_all=True, append_images=frames(3)[1:]),
        {Oddity.ANIMATED},
    ),
    "animated PNG": (
        lambda: saved(frames(2)[0], save_all=True, append_images=frames(2)[1:]),
        {Oddity.ANIMATED},
    ),
    "animated WebP": (
        lambda: saved(frames(2)[0], "WEBP", save_all=True, append_images=frames(2)[1:]),
        {Oddity.ANIMATED},
    ),
    "TIFF of pages": (
        lambda: saved(frames(2)[0], "TIFF", save_all=True, append_images=frames(2)[1:]),
        {Oddity.ANIMATED},
    ),
    "CMYK JPEG": (lambda: saved(plain("CMYK"), "JPEG"), {Oddity.CMYK}),
    "CMYK TIFF": (lambda: saved(plain("CMYK"), "TIFF"), {Oddity.CMYK}),
    "one pixel": (lambda: saved(plain(size=(1, 1))), {Oddity.ONE_PIXEL}),
    "one pixel wide": (lambda: saved(plain(size=(1, 9))), {Oddity.ONE_PIXEL}),
    "a line": (lambda: saved(plain(size=(300, 1))), {Oddity.ONE_PIXEL, Oddity.ELONGATED}),
    "long": (lambda: saved(plain(size=(820, 40))), {Oddity.ELONGATED}),
    "high": (lambda: saved(plain(size=(4, 1000)), "JPEG"), {Oddity.ELONGATED}),
    "much at once": (
        lambda: saved(plain("CMYK", (100, 3)), "JPEG", exif=turned(5)),
        {Oddity.CMYK, Oddity.ROTATED, Oddity.ELONGATED},
    ),
}

AS_MEANT: dict[str, Callable[[], bytes]] = {
    "RGB": lambda: saved(plain()),
    "JPEG": lambda: saved(plain(), "JPEG"),
    "grey": lambda: saved(plain("L")),
    "black and white": lambda: saved(plain("1")),
    "palette": lambda: saved(plain("P")),
    "GIF of one": lambda: saved(plain("P"), "GIF"),
    "opaque alpha": lambda: saved(see_through("RGB", 255)),
    "transparent colour that no pixel has": lambda: saved(plain(), transparency=(250, 3, 3)),
    "upright": lambda: saved(plain(), "JPEG", exif=turned(1)),
    "long, but not very": lambda: saved(plain(size=(400, 20))),
    "two pixels": lambda: saved(plain(size=(2, 2))),
}


def found(folder: Path, content: bytes) -> frozenset[Oddity]:
    (folder / "a").write_bytes(content)
    image, _ = opened(LocalStore(folder), "a")
    return oddities(image)


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_told(tmp_path: Path, name: str) -> None:
    make, expected = ODD[name]
    assert found(tmp_path, make()) == expected


@pytest.mark.parametrize("name", AS_MEANT)
def test_nothing_is_told_of_what_is_shown_as_meant(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, AS_MEANT[name]()) == frozenset()


def test_images_that_follow_and_are_damaged_are_no_fault(tmp_path: Path) -> None:
    content, _ = ODD["TIFF of pages"]
    whole = content()
    (tmp_path / "a").write_bytes(whole[:-20])
    image, _ = opened(LocalStore(tmp_path), "a")
    oddities(image)


@pytest.mark.parametrize("name", ODD)
def test_pixels_are_those_of_pillow(tmp_path: Path, name: str) -> None:
    """As the published evaluation has them: opened, and turned to RGB."""
    content = ODD[name][0]()
    (tmp_path / "a").write_bytes(content)
    expected = Image.open(io.BytesIO(content)).convert("RGB")
    shown = load_image(LocalStore(tmp_path), "a", None)
    assert (shown.size, shown.tobytes()) == (expected.size, expected.tobytes())
