"""Where this package keeps files that it can fetch or make again."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """``$PROACTIVEBENCH_CACHE`` if set, else the user's cache folder. It may not exist yet."""
    override = os.environ.get("PROACTIVEBENCH_CACHE")
    if override:
        return Path(override).expanduser()
    return platformdirs.user_cache_path("proactivebench", appauthor=False)
