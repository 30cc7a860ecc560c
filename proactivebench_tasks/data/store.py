"""Store: where rows and images are read from. A folder is one such place, the hub another."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from proactivebench_tasks import file_kinds
from proactivebench_tasks.data.zip_archive import LocalArchive, ZipArchives
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import format_size
from proactivebench_tasks.protocol.samples import Dataset

#: Share of an archive's bytes beyond which it is faster to download the archive than to read it
#: image by image.
NETWORK_SHARE = 0.05


@dataclass(frozen=True)
class NetworkRead:
    """How much of an archive is read over the network, image by image. Sizes are in bytes."""

    archive: str
    read: int
    size: int  # of the whole archive

    @property
    def is_much(self) -> bool:
        """Whether it is faster to download the archive."""
        return self.read > NETWORK_SHARE * self.size

    def __str__(self) -> str:
        return (
            f"{format_size(self.read)} of the {format_size(self.size)} of {self.archive} "
            "image by image"
        )


class Store(ABC):
    """Rows and images of the seven datasets, to be read in any number of threads and processes.

    An image is named by its path below the data folder, which a row's ``image_template`` gives. A
    store that was made before a fork works in the child, too.
    """

    @abstractmethod
    def rows(self, dataset: Dataset) -> Path:
        """The path of the dataset's ``*_preprocessed.jsonl``.

        A folder's path is returned whether the file exists or not. From the hub the file is
        downloaded; ``DataError`` if it cannot be had.
        """

    @abstractmethod
    def read(self, image_path: str) -> bytes | None:
        """The content of an image's file, ``None`` if there is no file at this path.

        Raises ``DataError`` when the file is there and cannot be read.
        """

    @abstractmethod
    def __contains__(self, image_path: str) -> bool:
        """Whether there is a file at this path. Only ``read`` tells whether it is intact."""

    @abstractmethod
    def locate(self, image_path: str) -> str:
        """Where a file at this path opens: a path, or an address that ``fsspec.open`` takes, such
        as ``zip://MEMBER::/path/to/archive.zip``. The bare path where there is no such file."""

    @abstractmethod
    def missing(self, image_path: str) -> str:
        """The message for a user whose episode needs an image that the store lacks."""

    @abstractmethod
    def anew(self, image_path: str) -> str:
        """What gets a spoilt image anew, for a user, as a sentence without its full stop."""

    @property
    @abstractmethod
    def folders(self) -> tuple[LocalStore, ...]:
        """The folders on this disk in which the store's files, or some of them, are."""

    @property
    @abstractmethod
    def origin(self) -> list[str]:
        """Where the data come from if not from ``folders``, in lines for a user. No request is
        made to tell it."""

    @property
    @abstractmethod
    def fetches(self) -> bool:
        """Whether what is not on this disk is fetched when it is needed."""

    @abstractmethod
    def network_reads(self, image_paths: Collection[str]) -> list[NetworkRead]:
        """How much of each archive is read over the network to show these images."""

    @abstractmethod
    def on_disk(self) -> Store:
        """The part of the store that can be read without network.

        Raises ``DataError``, with what to do, if nothing is on this disk.
        """


class LocalStore(Store):
    """A folder in the official layout: jsonl files, and images in folders, in zips, or in both.

    Images in folders come first. Archives are searched in the order of their names.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._extracted: dict[str, bool] = {}  # name of a dataset's image folder -> is it there

    def __str__(self) -> str:
        return str(self.folder)

    @cached_property
    def archives(self) -> ZipArchives:
        """The zip archives in the folder or one level below."""
        found = [*self.folder.glob("*.zip"), *self.folder.glob("*/*.zip")]
        return ZipArchives([LocalArchive(path) for path in sorted(found) if not path.is_dir()])

    def rows(self, dataset: Dataset) -> Path:
        return self.folder / dataset.jsonl

    def read(self, image_path: str) -> bytes | None:
        file = self.folder / image_path
        with _absence_is_no_error(file):
            if self._is_extracted(image_path.partition("/")[0]):
                return file.read_bytes()
        return self.archives.read(image_path)

    def _is_extracted(self, name: str) -> bool:
        """Whether there is a folder of this name, asked once for each name. Where there is none,
        looking for each image on the disk would take longer than finding it in an archive."""
        if name not in self._extracted:
            self._extracted[name] = (self.folder / name).exists()
        return self._extracted[name]

    def __contains__(self, image_path: str) -> bool:
        file = self.folder / image_path
        with _absence_is_no_error(file):
            if file.is_file():
                return True
        return self.archives.find(image_path) is not None

    def locate(self, image_path: str) -> str:
        file = self.folder / image_path
        if os.path.isfile(file):  # unlike Path.is_file, this raises nothing
            return str(file.absolute())
        return self.archives.locate(image_path) or image_path

    def missing(self, image_path: str) -> str:
        file = self.folder / image_path
        if (link := file_kinds.broken_link(file)) is not None:
            return f"image {image_path} in {self} cannot be read: " + link.explained(
                file, self.anew(image_path)
            )
        return (
            f"image {image_path} is neither in {self.folder} nor in its zip archives "
            f"({self.archives.names}). "
            f"`proactivebench verify --quick --data-dir {self.folder}` lists all that is missing, "
            f"`proactivebench download --data-dir {self.folder}` fetches it"
        )

    def anew(self, image_path: str) -> str:
        fetch = f"`proactivebench download --data-dir {self.folder}`"
        file = self.folder / image_path
        if os.path.lexists(file):
            return f"Delete {file}; then {fetch} fetches the archive that it is in"
        with suppress(DataError):
            if (found := self.archives.find(image_path)) is not None:
                return f"Delete {found[0]}; then {fetch} fetches it anew"
        return f"{fetch} fetches it"

    @property
    def folders(self) -> tuple[LocalStore, ...]:
        return (self,)

    @property
    def origin(self) -> list[str]:
        return []

    @property
    def fetches(self) -> bool:
        return False

    def network_reads(self, image_paths: Collection[str]) -> list[NetworkRead]:
        return []

    def on_disk(self) -> Store:
        return self


class Folders(Store):
    """Several folders. What is in more than one of them is read from the first of these."""

    def __init__(self, folders: Sequence[LocalStore]) -> None:
        self._folders = tuple(folders)

    def __str__(self) -> str:
        return " and ".join(map(str, self._folders))

    def rows(self, dataset: Dataset) -> Path:
        paths = [folder.rows(dataset) for folder in self._folders]
        return next(filter(os.path.lexists, paths), paths[0])

    def read(self, image_path: str) -> bytes | None:
        contents = (folder.read(image_path) for folder in self._folders)
        return next((content for content in contents if content is not None), None)

    def __contains__(self, image_path: str) -> bool:
        return any(image_path in folder for folder in self._folders)

    def locate(self, image_path: str) -> str:
        places = (folder.locate(image_path) for folder in self._folders)
        return next((place for place in places if place != image_path), image_path)

    def missing(self, image_path: str) -> str:
        return self._having(image_path).missing(image_path)

    def anew(self, image_path: str) -> str:
        return self._having(image_path).anew(image_path)

    def _having(self, image_path: str) -> LocalStore:
        """The folder that has something at this path, be it spoilt; the first if none has."""
        for folder in self._folders:
            with suppress(DataError):
                if os.path.lexists(folder.folder / image_path) or image_path in folder:
                    return folder
        return self._folders[0]

    @property
    def folders(self) -> tuple[LocalStore, ...]:
        return self._folders

    @property
    def origin(self) -> list[str]:
        return []

    @property
    def fetches(self) -> bool:
        return False

    def network_reads(self, image_paths: Collection[str]) -> list[NetworkRead]:
        return []

    def on_disk(self) -> Store:
        return self


@contextmanager
def _absence_is_no_error(file: Path) -> Iterator[None]:
    """Goes on after the block when there is no such file. Whatever else keeps the file from being
    read is a ``DataError``."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:
        raise DataError(f"image {file} cannot be read: {error}") from error
