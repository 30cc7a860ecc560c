"""Suite: the official benchmark or the bundled demo, each with its data and its wording."""

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
    """One of the two suites, by the name that prepared rows give it in their column ``suite``."""

    OFFICIAL = "official"
    DEMO = "demo"

    @property
    def store(self) -> Store:
        """Where the suite's rows and images are read from.

        The demo's come with the package. The official ones are in the folder that
        ``PROACTIVEBENCH_DATA_DIR`` names, or on the hub if the variable is not set. Raises
        ``DataError`` if the variable names something that is no folder.
        """
        if self is Suite.DEMO:
            return _folder(DEMO_DATA / "test", "the demo data's place in this package")
        configured = config.get()
        if configured.data_dir is None:
            return _hub(configured.cache_folder)
        return _folder(configured.data_dir, config.DATA_DIR)

    @property
    def protocol(self) -> Protocol:
        """The suite's wording and sample ids.

        Raises ``ProtocolError`` if the official protocol cannot be had.
        """
        return BUILTIN if self is Suite.DEMO else published.load()


@cache  # `Suite.store` is looked up for every image; the disk is asked for the folder only once
def _folder(folder: Path, what: str) -> LocalStore:
    """``what`` names the folder in a message."""
    if not folder.is_dir():
        raise DataError(f"{what} is {str(folder)!r}, which is no folder")
    return LocalStore(folder)


@cache
def _hub(cache_folder: Path) -> HubStore:
    """The hub's data. The cache folder, in which it keeps what it reads, is given only so that
    another folder makes another store."""
    return HubStore(Hub())
