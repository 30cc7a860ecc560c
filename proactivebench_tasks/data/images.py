"""Images: files of a store as decoded pixels."""

from __future__ import annotations

import io
import os
import threading

from PIL import Image, ImageFile

from proactivebench_tasks.data.store import Store
from proactivebench_tasks.environments.environment import Box
from proactivebench_tasks.errors import DataError

#: Pixels of one image, decoded. A few kilobytes can claim billions of them.
MAX_PIXELS = 64_000_000


def load_image(store: Store, image_path: str, crop: Box | None) -> Image.Image:
    """The image at a path as RGB, cut to ``crop`` (in its pixels; parts outside it are black).

    Raises ``DataError`` with the path when it is missing, truncated, too large or no image.
    """
    return decode(read_image(store, image_path), f"image {image_path} in {store}", crop)


def read_image(store: Store, image_path: str) -> bytes:
    """The file of an image, as it stands; ``DataError`` if there is none or it cannot be read."""
    content = store.read(image_path)
    if content is None:
        raise DataError(store.missing(image_path))
    return content


def decode(content: bytes, name: str, crop: Box | None) -> Image.Image:
    """A file's content as RGB, cut to ``crop``; ``name`` is what messages call it."""
    try:
        with _strict, Image.open(io.BytesIO(content)) as file:
            _limit(file.width, file.height, name)
            whole = file.convert("RGB")
        if crop is None:
            return whole
        name = f"{crop} of {name}"
        _limit(crop.right - crop.left, crop.bottom - crop.top, name)
        # PIL takes floats here and rounds them, as the published package relies on.
        return whole.crop((crop.left, crop.top, crop.right, crop.bottom))  # type: ignore[arg-type]
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{name} cannot be read: {error}") from error


class _Strict:
    """While any thread is in it, Pillow refuses truncated images.

    lmms-eval switches a global of Pillow so that they are shown, partly black. That stays so for
    its other tasks; what a model sees here must be what the benchmark has.
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
