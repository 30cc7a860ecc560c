"""Hub: the official data set on the Hugging Face hub, and what may go wrong in asking for it.

All of a process reads one commit. Without an answer from the hub it is the one last seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.hf_api import RepoFile
from loguru import logger
from tenacity import retry, retry_if_exception, stop_after_attempt, wait_exponential

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import written_whole

REPO = "tdemin16/ProactiveBench"
FOLDER = "test"
LICENCE = "CC BY-NC 4.0"

#: What huggingface_hub raises: OSError, and the base of its HTTP client's errors (requests, httpx
#: and httpx2, depending on its version).
_FAILURES: tuple[type[BaseException], ...] = (OSError, *HfHubHTTPError.__bases__)


@dataclass(frozen=True)
class HubFile:
    """A file of the hub's test folder. ``etag``: SHA-256 of a large file, git's hash of others."""

    path: str  # below the test folder
    size: int
    etag: str

    @property
    def sha256(self) -> str | None:
        return self.etag if len(self.etag) == 64 else None


@dataclass(frozen=True)
class HubListing:
    """The files of the test folder at a commit."""

    commit: str
    files: tuple[HubFile, ...]

    @property
    def archives(self) -> tuple[HubFile, ...]:
        return tuple(file for file in self.files if file.path.endswith(".zip"))

    @classmethod
    def saved(cls) -> HubListing | None:
        """The one last seen."""
        try:
            value = json.loads(_saved_listing().read_text(encoding="utf-8"))
            return cls(value["commit"], tuple(HubFile(**file) for file in value["files"]))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def save(self) -> None:
        with written_whole(_saved_listing()) as draft:
            draft.write_text(json.dumps(asdict(self)), encoding="utf-8")


def _saved_listing() -> Path:
    return cache_dir() / "hub.json"


def _may_pass(error: BaseException | None) -> bool:
    """Whether asking again may help: the hub is overloaded or out of order."""
    while error is not None:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status is not None:
            return status in (408, 429) or status >= 500
        error = error.__cause__
    return False


#: For calls that huggingface_hub does not repeat by itself, as it does range requests.
_patient = retry(
    retry=retry_if_exception(_may_pass),
    stop=stop_after_attempt(5),
    wait=wait_exponential(max=8),
    reraise=True,
)


class Hub:
    """The client. Its errors are ``DataError``s that say what to do."""

    @cached_property
    def listing(self) -> HubListing:
        """The files of the present commit; of the last one seen, if the hub does not answer."""
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
        """A small file of the test folder, in the Hugging Face cache."""
        if not offline():
            revision = self.listing.commit
        else:  # a cache that was filled by other means has no listing; its "main" will do
            revision = saved.commit if (saved := HubListing.saved()) else "main"
        with hub_errors(f"{FOLDER}/{name}"):
            return Path(self._download(name, revision))

    def open(self, file: HubFile) -> IO[bytes]:
        """A file to seek and read in; each read is a request."""
        return self._system.open(  # type: ignore[no-any-return]
            f"{self._root}/{file.path}", "rb", size=file.size, cache_type="none"
        )

    def bytes_at(self, file: HubFile, start: int, end: int) -> bytes:
        """The bytes of a file from ``start`` up to ``end``, or its end, in one request."""
        with (
            hub_errors(f"bytes {start:,} to {end:,} of {FOLDER}/{file.path}"),
            self.open(file) as it,
        ):
            it.seek(start)
            block = it.read(end - start)
            if len(block) != max(0, min(end, file.size) - start):
                raise OSError(
                    f"{len(block):,} bytes came. Is there a proxy that drops range requests?"
                )
            return block

    @cached_property
    def _system(self) -> huggingface_hub.HfFileSystem:
        system = huggingface_hub.HfFileSystem(skip_instance_cache=True)
        _patient(system.resolve_path)(self._root)  # which the file system remembers
        return system

    @property
    def _root(self) -> str:
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
    """Whether ``HF_HUB_OFFLINE`` forbids to ask the hub."""
    return bool(constants.HF_HUB_OFFLINE)


@contextmanager
def hub_errors(what: str) -> Iterator[None]:
    """Turns what the hub's client raises into a ``DataError`` that says what to do."""
    try:
        yield
    except _FAILURES as error:
        raise DataError(f"cannot get {what} of {REPO} from the hub: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    elsewhere = (
        "Where there is network, run `proactivebench download --data-dir DIR`; then set "
        "PROACTIVEBENCH_DATA_DIR=DIR here"
    )
    if offline():
        return f"HF_HUB_OFFLINE is set, and it is not in the cache. {elsewhere}."
    cause: BaseException | None = error
    while cause is not None:
        status = getattr(getattr(cause, "response", None), "status_code", None)
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
        if status is not None:
            break
        cause = cause.__cause__
    said = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {said.rstrip('.')}. Try again, or elsewhere: {elsewhere}."
