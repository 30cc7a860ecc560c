"""Data: where rows and pictures are read from. A folder is one such place, the hub another."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Protocol

from proactivebench_tasks.data.zip_archive import Archives, LocalArchive
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Dataset


class Data(Protocol):
    """Rows and pictures of the seven datasets. Safe in any number of threads and after a fork."""

    def rows(self, dataset: Dataset) -> Path:
        """The dataset's ``*_preprocessed.jsonl``; in a folder it need not exist."""

    def read(self, path: str) -> bytes | None:
        """The content of a picture file, ``None`` if there is none at this path.

        Raises ``DataError`` when it is there and cannot be read.
        """

    def __contains__(self, path: str) -> bool:
        """Whether there is a picture file at this path; it may still be damaged."""

    def missing(self, path: str) -> str:
        """What to tell a user who needs the picture at this path, which is not there."""


class DataFolder:
    """A folder in the official layout: jsonl files, and pictures in folders, in zips, or in both.

    Extracted pictures come first; archives are looked through in the order of their names.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._folders: dict[str, bool] = {}

    def __str__(self) -> str:
        return str(self.folder)

    @cached_property
    def archives(self) -> Archives:
        """The zip archives in the folder or one level below."""
        found = [*self.folder.glob("*.zip"), *self.folder.glob("*/*.zip")]
        return Archives([LocalArchive(path) for path in sorted(found)])

    def rows(self, dataset: Dataset) -> Path:
        return self.folder / dataset.jsonl

    def read(self, path: str) -> bytes | None:
        file = self.folder / path
        try:
            if self._has_folder(path.partition("/")[0]):
                return file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as error:
            raise DataError(f"picture {file} cannot be read: {error}") from error
        return self.archives.read(path)

    def _has_folder(self, name: str) -> bool:
        """Whether a dataset was extracted at all: to look for each picture in vain takes longer
        than to find it in an archive."""
        if name not in self._folders:
            self._folders[name] = (self.folder / name).exists()
        return self._folders[name]

    def __contains__(self, path: str) -> bool:
        return (self.folder / path).is_file() or self.archives.find(path) is not None

    def missing(self, path: str) -> str:
        names = ", ".join(archive.name for archive in self.archives.all) or "none"
        return (
            f"picture {path} is neither in {self.folder} nor in its zip archives ({names}). "
            f"`proactivebench verify --quick --data-dir {self.folder}` lists all that is missing, "
            f"`proactivebench download --data-dir {self.folder}` fetches it"
        )
