"""Oddities: what keeps an image from being shown as it was meant, though it can be read.

The published evaluation opens images with Pillow and turns them to RGB, and so does this package:
the pixels are its pixels, even where a viewer would show others. What is told here is for those who
make data, or wonder about an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from enum import Enum

from PIL.Image import Image

#: How many times as long as wide an image may be before it is odd. Some models refuse 200.
EXTREME = 20

_ORIENTATION = 0x0112  # EXIF's number of the tag; 1 is upright
_ALPHA = ("RGBA", "RGBa", "LA", "La", "PA")


class Oddity(Enum):
    """What is odd, and what becomes of it."""

    WIDE_GREY = "16-bit grey, or wider (all above 255 turns white)"
    ROTATED = "EXIF rotation (ignored: shown as stored)"
    ALPHA = "transparent parts (shown with the colours beneath, often black)"
    PALETTE_TRANSPARENCY = "transparent palette colours (shown with these colours)"
    ANIMATED = "animated, or several images in a file (the first is shown)"
    CMYK = "printing colours, CMYK (turned to RGB without a colour profile)"
    ONE_PIXEL = "one pixel wide or high"
    ELONGATED = f"extreme aspect, more than {EXTREME} to 1 (some models refuse it)"


def oddities(image: Image) -> frozenset[Oddity]:
    """What is odd about an opened image, whose first image can be decoded."""
    return frozenset(_found(image))


def _found(image: Image) -> Iterator[Oddity]:
    if image.mode.startswith(("I", "F")):
        yield Oddity.WIDE_GREY
    if image.mode == "CMYK":
        yield Oddity.CMYK
    if image.getexif().get(_ORIENTATION, 1) not in (0, 1):
        yield Oddity.ROTATED
    if (image.mode in _ALPHA or "transparency" in image.info) and _is_transparent(image):
        has_palette = image.mode in ("P", "PA")
        yield Oddity.PALETTE_TRANSPARENCY if has_palette else Oddity.ALPHA
    short, long = sorted(image.size)
    if short == 1:
        yield Oddity.ONE_PIXEL
    if long > EXTREME * short:
        yield Oddity.ELONGATED
    # Last, because it moves to the other images; they are not shown, and may be damaged.
    with suppress(OSError, EOFError, ValueError, SyntaxError):
        if getattr(image, "n_frames", 1) > 1:
            yield Oddity.ANIMATED


def _is_transparent(image: Image) -> bool:
    """Whether any pixel is not opaque."""
    low, _ = image.convert("RGBA").getchannel("A").getextrema()
    return isinstance(low, int) and low < 255
