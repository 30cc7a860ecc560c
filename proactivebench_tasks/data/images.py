"""Images: an image's file in a store, decoded."""

from __future__ import annotations

import io
import os
import threading

from PIL import Image, ImageFile

from proactivebench_tasks.data.store import Store
from proactivebench_tasks.environments.environment import Box
from proactivebench_tasks.errors import DataError

#: Pixels that one image may have. A file of a few kilobytes can claim to have billions.
MAX_PIXELS = 64_000_000


def load_image(store: Store, image_path: str, crop: Box | None) -> Image.Image:
    """The image at a path, as RGB, cut to ``crop``.

    ``crop`` is in pixels of the whole image, and may reach beyond it: the result is black there.
    Raises ``DataError``, which names the path, when the file is missing, truncated, too large or no
    image.
    """
    content = store.read(image_path)
    if content is None:
        raise DataError(store.missing(image_path))
    name = f"image {image_path} in {store}"
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
    """Makes Pillow refuse truncated images while at least one thread is in the ``with`` block.

    Importing lmms-eval sets a global of Pillow so that truncated images are shown, partly black.
    Other tasks may count on this, so the global is put back. Here a model must see what the
    benchmark has, or nothing.
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
if hasattr(os, "register_at_fork"):  # at a fork, another thread may hold the lock for ever
    os.register_at_fork(after_in_child=_strict.reset)


def _limit(width: float, height: float, name: str) -> None:
    """Raise ``DataError`` if this is more than ``MAX_PIXELS``."""
    if width * height > MAX_PIXELS:
        raise DataError(
            f"{name} has {width:,.0f} x {height:,.0f} pixels; {MAX_PIXELS:,} in all are allowed"
        )
