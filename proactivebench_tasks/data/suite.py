"""Suite: the official benchmark or the bundled demo; its rows and images, and its wording."""

from __future__ import annotations

from enum import Enum
from functools import cache
from pathlib import Path

from proactivebench_tasks import config
from proactivebench_tasks.data.hub import Hub
from proactivebench_tasks.data.hub_store import HubStore
from proactivebench_tasks.data.store import LocalStore, Store
from proactivebench_tasks.demo import DATA as DEMO_DATA
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.protocol import Protocol


class Suite(str, Enum):
    """Data and the wording that belongs to it."""

    OFFICIAL = "official"
    DEMO = "demo"

    @property
    def store(self) -> Store:
        """Its rows and images: the demo's own, those of a folder that the user names, or the hub's.

        Raises ``DataError`` if ``PROACTIVEBENCH_DATA_DIR`` names no folder.
        """
        if self is Suite.DEMO:
            return _folder(DEMO_DATA / "test")
        configured = config.get()
        if (folder := configured.data_folder) is None:
            return _hub(configured.cache_folder)
        return _folder(folder)

    @property
    def protocol(self) -> Protocol:
        """Its wording; ``ProtocolError`` if the official one cannot be had."""
        return BUILTIN if self is Suite.DEMO else published.load()


@cache  # so the disk is not asked for each image whether the folder is there
def _folder(folder: Path) -> LocalStore:
    if not folder.is_dir():
        raise DataError(f"{config.DATA_DIR} is {str(folder)!r}, which is no folder")
    return LocalStore(folder)


@cache
def _hub(cache_folder: Path) -> HubStore:
    """The hub's data as this cache folder knows it."""
    return HubStore(Hub())
