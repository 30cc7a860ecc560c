"""Store: where rows and images are read from. A folder is one such place, the hub another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from proactivebench_tasks.data.zip_archive import LocalArchive, ZipArchives
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Dataset


@dataclass(frozen=True)
class NetworkRead:
    """What is to be read of an archive over the network, and what it has in all, in bytes."""

    archive: str
    read: int
    size: int


class Store(ABC):
    """Rows and images of the seven datasets. Safe in any number of threads and after a fork.

    Images are named by their paths below the data folder, as ``image_template`` gives them.
    """

    @abstractmethod
    def rows(self, dataset: Dataset) -> Path:
        """The dataset's ``*_preprocessed.jsonl``; in a folder it need not exist."""

    @abstractmethod
    def read(self, image_path: str) -> bytes | None:
        """The content of an image's file, ``None`` if there is none at this path.

        Raises ``DataError`` when it is there and cannot be read.
        """

    @abstractmethod
    def __contains__(self, image_path: str) -> bool:
        """Whether there is an image's file at this path; it may still be damaged."""

    @abstractmethod
    def missing(self, image_path: str) -> str:
        """What to tell a user who needs the image at this path, which is not there."""

    @property
    @abstractmethod
    def folders(self) -> tuple[LocalStore, ...]:
        """The folders on this disk that hold it, or some of it."""

    @property
    @abstractmethod
    def origin(self) -> list[str]:
        """Where it all comes from, in lines to show a user; nobody is asked."""

    @abstractmethod
    def network_reads(self, image_paths: Collection[str]) -> list[NetworkRead]:
        """What showing these images reads over the network, by archive."""

    @abstractmethod
    def on_disk(self) -> LocalStore:
        """The part of it to verify; ``DataError``, with what to do, if nothing is on disk."""


class LocalStore(Store):
    """A folder in the official layout: jsonl files, and images in folders, in zips, or in both.

    Extracted images come first; archives are looked through in the order of their names.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._extracted: dict[str, bool] = {}

    def __str__(self) -> str:
        return str(self.folder)

    @cached_property
    def archives(self) -> ZipArchives:
        """The zip archives in the folder or one level below."""
        found = [*self.folder.glob("*.zip"), *self.folder.glob("*/*.zip")]
        return ZipArchives([LocalArchive(path) for path in sorted(found)])

    def rows(self, dataset: Dataset) -> Path:
        return self.folder / dataset.jsonl

    def read(self, image_path: str) -> bytes | None:
        file = self.folder / image_path
        try:
            if self._is_extracted(image_path.partition("/")[0]):
                return file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as error:
            raise DataError(f"image {file} cannot be read: {error}") from error
        return self.archives.read(image_path)

    def _is_extracted(self, name: str) -> bool:
        """Whether a dataset was extracted at all: to look for each image in vain takes longer than
        to find it in an archive."""
        if name not in self._extracted:
            self._extracted[name] = (self.folder / name).exists()
        return self._extracted[name]

    def __contains__(self, image_path: str) -> bool:
        return (self.folder / image_path).is_file() or self.archives.find(image_path) is not None

    def missing(self, image_path: str) -> str:
        names = ", ".join(archive.name for archive in self.archives.all) or "none"
        return (
            f"image {image_path} is neither in {self.folder} nor in its zip archives ({names}). "
            f"`proactivebench verify --quick --data-dir {self.folder}` lists all that is missing, "
            f"`proactivebench download --data-dir {self.folder}` fetches it"
        )

    @property
    def folders(self) -> tuple[LocalStore, ...]:
        return (self,)

    @property
    def origin(self) -> list[str]:
        return []

    def network_reads(self, image_paths: Collection[str]) -> list[NetworkRead]:
        return []

    def on_disk(self) -> LocalStore:
        return self
