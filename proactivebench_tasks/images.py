"""Pictures: the pixels of an observation, read from the data folder."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from proactivebench_tasks.environments.environment import Box
from proactivebench_tasks.errors import DataError


def picture(folder: Path, image: str, crop: Box | None) -> Image.Image:
    """The picture at ``folder / image`` as RGB, cut to ``crop`` (pixels; parts outside are black).

    Raises ``DataError`` with the path when the file is missing, truncated or no picture.
    """
    path = folder / image
    try:
        with Image.open(path) as file:
            pixels = file.convert("RGB")
    except FileNotFoundError:
        raise DataError(f"picture {path} does not exist") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"picture {path} cannot be read: {error}") from error
    if crop is None:
        return pixels
    # PIL takes floats here and rounds them, as the published package relies on.
    return pixels.crop((crop.left, crop.top, crop.right, crop.bottom))  # type: ignore[arg-type]
