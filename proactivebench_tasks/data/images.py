"""Images: an image's file in a store, decoded."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

from PIL import Image, ImageFile

from proactivebench_tasks import file_kinds
from proactivebench_tasks.data.store import Store
from proactivebench_tasks.environments.environment import Box
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.file_kinds import Family, FileKind

#: Pixels that one image may have. A file of a few kilobytes can claim to have billions.
MAX_PIXELS = 64_000_000


def load_image(store: Store, image_path: str, crop: Box | None) -> Image.Image:
    """The image at a path, as RGB, cut to ``crop``.

    ``crop`` is in pixels of the whole image, and may reach beyond it: the result is black there.
    Raises ``DataError``, which names the path, when the file is missing, truncated, too large or no
    image.
    """
    _, whole = opened(store, image_path)
    if crop is None:
        return whole
    name = f"{crop} of {_name(store, image_path)}"
    _limit(crop.right - crop.left, crop.bottom - crop.top, name)
    try:
        # PIL takes floats here and rounds them, as the published package relies on.
        return whole.crop((crop.left, crop.top, crop.right, crop.bottom))  # type: ignore[arg-type]
    except ValueError as error:
        raise DataError(f"{name} cannot be shown: {error}") from error


def opened(store: Store, image_path: str) -> tuple[Image.Image, Image.Image]:
    """The image at a path as Pillow opens it, and as RGB. Raises as ``load_image`` does."""
    content = store.read(image_path)
    if content is None:
        raise DataError(store.missing(image_path))
    name = _name(store, image_path)
    try:
        with _strict:
            image = Image.open(io.BytesIO(content))
            _limit(image.width, image.height, name)
            return image, image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        what = _instead(store, image_path, content) or str(error)
        raise DataError(f"{name} cannot be read: {what}") from error


def _name(store: Store, image_path: str) -> str:
    return f"image {image_path} in {store}"


def _instead(store: Store, image_path: str, content: bytes) -> str | None:
    """What a file is that is no whole image, and what to do; ``None`` if that cannot be told."""
    kind = file_kinds.recognised(content[: file_kinds.HEAD])
    if file_kinds.is_cut(content):
        kind = FileKind("an image that is cut short, as after half a download")
    elif kind is None or kind.family is Family.IMAGE:
        return None
    place = store.locate(image_path)
    return kind.explained(Path(place) if os.path.isfile(place) else None, store.anew(image_path))


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
