"""Pictures: the pixels of an observation."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image, ImageFile

from proactivebench_tasks.data.store import Data
from proactivebench_tasks.environments.environment import Box
from proactivebench_tasks.errors import DataError

#: Pixels of one picture, decoded. A few kilobytes can claim billions of them.
MAX_PIXELS = 64_000_000


def picture(data: Data, image: str, crop: Box | None) -> Image.Image:
    """The picture at path ``image`` as RGB, cut to ``crop`` (pixels; parts outside are black).

    Raises ``DataError`` with the path when it is missing, truncated, too large or no picture.
    """
    content = data.read(image)
    if content is None:
        raise DataError(data.missing(image))
    name = f"picture {image} in {data}"
    try:
        with _strict, Image.open(io.BytesIO(content)) as file:
            _limit(file.width, file.height, name)
            pixels = file.convert("RGB")
        if crop is None:
            return pixels
        name = f"{crop} of {name}"
        _limit(crop.right - crop.left, crop.bottom - crop.top, name)
        # PIL takes floats here and rounds them, as the published package relies on.
        return pixels.crop((crop.left, crop.top, crop.right, crop.bottom))  # type: ignore[arg-type]
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{name} cannot be read: {error}") from error


class _Strict:
    """While any thread is in it, Pillow refuses truncated pictures.

    lmms-eval switches a global of Pillow so that they are shown, partly black. That stands for its
    other tasks; what a model sees here must be what the benchmark has.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = False

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = ImageFile.LOAD_TRUNCATED_IMAGES
                ImageFile.LOAD_TRUNCATED_IMAGES = False
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                ImageFile.LOAD_TRUNCATED_IMAGES = self._before


_strict = _Strict()
if hasattr(os, "register_at_fork"):  # another thread may hold the lock at that moment
    os.register_at_fork(after_in_child=_strict.reset)


def _limit(width: float, height: float, name: str) -> None:
    if width * height > MAX_PIXELS:
        raise DataError(
            f"{name} has {width:,.0f} x {height:,.0f} pixels; {MAX_PIXELS:,} in all are allowed"
        )


@contextmanager
def whole_pictures_only() -> Iterator[None]:
    """Let Pillow refuse truncated pictures. lmms-eval sets it the other way for the whole process,
    and a picture that ends in black would be graded like any other."""
    before = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before
