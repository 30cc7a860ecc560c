"""Hub: the client for the official data set on the Hugging Face hub, and its errors.

A process reads everything from one commit, the newest one when it first asks. When the hub does not
answer, the commit that was seen last is used, whose list of files is kept in the cache folder.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.hf_api import RepoFile
from loguru import logger
from pydantic import TypeAdapter
from tenacity import (
    retry,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
)

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import NO_LOCKS, written_whole

REPO = "tdemin16/ProactiveBench"
FOLDER = "test"
LICENCE = "CC BY-NC 4.0"

#: What huggingface_hub raises: OSError, and the base of its HTTP client's errors (requests, httpx
#: and httpx2, depending on its version).
_FAILURES: tuple[type[BaseException], ...] = (OSError, *HfHubHTTPError.__bases__)


#: Numbers of an OSError that come from the disk and not from the network.
_OF_THE_DISK = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.ENOSPC}


@dataclass(frozen=True)
class HubFile:
    """A file of the hub's test folder. ``size`` is in bytes."""

    path: str  # below the test folder
    size: int
    etag: str  # changes with the content: the SHA-256 of a large file, git's hash of a small one

    @property
    def sha256(self) -> str | None:
        """The SHA-256 of the content, ``None`` for a small file, of which the hub does not tell."""
        return self.etag if len(self.etag) == 64 else None


@dataclass(frozen=True)
class HubListing:
    """The files of the hub's test folder at one commit, in the order of their paths."""

    commit: str
    files: tuple[HubFile, ...]

    @property
    def archives(self) -> tuple[HubFile, ...]:
        """The zip archives among the files."""
        return tuple(file for file in self.files if file.path.endswith(".zip"))

    @classmethod
    def saved(cls) -> HubListing | None:
        """The listing that the cache folder holds; ``None`` if there is none, or it is damaged."""
        try:
            return _AS_JSON.validate_json(_saved_listing().read_bytes())
        except (OSError, ValueError):
            return None

    def save(self) -> None:
        """Keep this listing in the cache folder, in place of an older one."""
        with written_whole(_saved_listing()) as draft:
            draft.write_bytes(_AS_JSON.dump_json(self))


_AS_JSON = TypeAdapter(HubListing)


def _saved_listing() -> Path:
    return cache_dir() / "hub.json"


def _status(error: BaseException | None) -> int | None:
    """The HTTP status in an error, or else in its cause; ``None`` if neither has one."""
    while error is not None:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status is not None:
            return int(status)
        error = error.__cause__
    return None


def _may_pass(error: BaseException) -> bool:
    """Whether asking again may help, because the hub is overloaded or out of order."""
    status = _status(error)
    return status is not None and (status in (408, 429) or status >= 500)


#: Repeats a call that fails for a reason that may pass. Some versions of huggingface_hub repeat
#: these calls by themselves, for about 23 seconds; what has taken that long is not repeated here.
_patient = retry(
    retry=retry_if_exception(_may_pass),
    stop=stop_after_attempt(5) | stop_after_delay(20),
    wait=wait_exponential(max=8),
    reraise=True,
)


class Hub:
    """The client. Whatever cannot be had raises ``DataError``, which says what to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connected: huggingface_hub.HfFileSystem | None = None

    @cached_property
    def listing(self) -> HubListing:
        """The files of the newest commit; of the commit seen last, if the hub does not answer."""
        saved = HubListing.saved()
        try:
            with hub_errors("the list of files"):
                commit = self._commit()
                if saved is not None and saved.commit == commit:
                    return saved
                listing = HubListing(commit, self._files(commit))
        except DataError as error:
            if saved is None:
                raise
            if not offline():
                logger.warning(f"{error} Going on with commit {saved.commit[:8]}, seen before")
            return saved
        with suppress(OSError):  # a cache that cannot be written: the next run asks again
            listing.save()
        return listing

    def rows(self, name: str) -> Path:
        """The jsonl of this name in the test folder, downloaded into the Hugging Face cache."""
        if not offline():
            revision = self.listing.commit
        else:  # a cache that was filled by other means has no listing; its "main" will do
            revision = saved.commit if (saved := HubListing.saved()) else "main"
        with hub_errors(f"{FOLDER}/{name}"):
            return Path(self._download(name, revision))

    def open(self, file: HubFile) -> IO[bytes]:
        """A file on the hub to seek and read in. Each read is a request to the hub.

        To be used inside ``hub_errors``: opening and reading raise what huggingface_hub raises.
        """
        return self._system.open(  # type: ignore[no-any-return]
            self.address(file), "rb", size=file.size, cache_type="none"
        )

    def address(self, file: HubFile) -> str:
        """A file's address in the hub's file system, at the commit that is read."""
        return f"{self._root}/{file.path}"

    def bytes_at(self, file: HubFile, start: int, end: int) -> bytes:
        """The bytes of a file from ``start`` up to ``end``, or up to its end, in one request."""
        with (
            hub_errors(f"bytes {start:,} to {end:,} of {FOLDER}/{file.path}"),
            self.open(file) as stream,
        ):
            stream.seek(start)
            block = stream.read(end - start)
            if len(block) != max(0, min(end, file.size) - start):
                raise OSError(
                    f"{len(block):,} bytes came. Is there a proxy that drops range requests?"
                )
            return block

    @property
    def _system(self) -> huggingface_hub.HfFileSystem:
        """The hub as a file system, which knows the commit and the test folder's files already: it
        would ask for them when the first file is read, and not repeat what fails."""
        if self._connected is None:
            with self._lock:  # of the threads that read at once, one asks for all
                if self._connected is None:
                    system = huggingface_hub.HfFileSystem(skip_instance_cache=True)
                    _patient(system.ls)(self._root)
                    self._connected = system
        return self._connected

    @property
    def _root(self) -> str:
        """The test folder's address in the file system."""
        return f"datasets/{REPO}@{self.listing.commit}/{FOLDER}"

    @_patient
    def _commit(self) -> str:
        commit = huggingface_hub.HfApi().dataset_info(REPO).sha
        assert commit is not None
        return commit

    @_patient
    def _files(self, commit: str) -> tuple[HubFile, ...]:
        tree = huggingface_hub.HfApi().list_repo_tree(
            REPO, FOLDER, recursive=True, revision=commit, repo_type="dataset"
        )
        return tuple(
            HubFile(
                path=entry.path.removeprefix(f"{FOLDER}/"),
                size=entry.size,
                etag=entry.lfs.sha256 if entry.lfs else entry.blob_id,
            )
            for entry in sorted(tree, key=lambda entry: entry.path)
            if isinstance(entry, RepoFile)
        )

    @_patient
    def _download(self, name: str, revision: str) -> str:
        return huggingface_hub.hf_hub_download(
            REPO, f"{FOLDER}/{name}", repo_type="dataset", revision=revision
        )


def offline() -> bool:
    """Whether ``HF_HUB_OFFLINE`` forbids asking the hub."""
    return bool(constants.HF_HUB_OFFLINE)


#: What to do about the test data on a machine without network.
_ELSEWHERE = (
    "Where there is network, run `proactivebench download --data-dir DIR`; then set "
    "PROACTIVEBENCH_DATA_DIR=DIR here"
)


@contextmanager
def hub_errors(what: str, elsewhere: str = _ELSEWHERE) -> Iterator[None]:
    """Turns an error of the hub's client into a ``DataError`` that says what to do.

    ``what`` names the thing that could not be had: "cannot get WHAT of REPO from the hub".
    ``elsewhere`` says what to do on a machine without network.
    """
    try:
        yield
    except _FAILURES as error:
        reason = _reason(error, elsewhere)
        raise DataError(f"cannot get {what} of {REPO} from the hub: {reason}") from error


def _reason(error: BaseException, elsewhere: str) -> str:
    """Why the hub's client failed, and what to do about it, in sentences."""
    if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
        return (
            f"what comes is kept in {constants.HF_HUB_CACHE}, which cannot be written: {error}. "
            "Set HF_HOME to a folder that can be written to."
        )
    if isinstance(error, OSError) and error.errno in NO_LOCKS:
        return (
            f"what comes is kept in {constants.HF_HUB_CACHE}, on a disk without locks: {error}. "
            "Set HF_HOME to a folder on another disk."
        )
    if offline():
        return f"HF_HUB_OFFLINE is set, and it is not in the cache. {elsewhere}."
    status = _status(error)
    if status in (401, 403):
        return (
            f"it answers {status}. Log in with `hf auth login`, and accept the conditions on "
            f"{constants.ENDPOINT}/datasets/{REPO} if there are any."
        )
    if status == 429:
        return (
            "too many requests (429). Log in with `hf auth login` to be allowed more, or run "
            "`proactivebench download`, which needs few."
        )
    first_line = next(iter(str(error).strip().splitlines()), "").rstrip(".")
    return f"{type(error).__name__}: {first_line}. Try again, or elsewhere: {elsewhere}."
