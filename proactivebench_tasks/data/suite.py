"""Source: where a dataset's rows and pictures come from, and its rows made ready for the harness.

A task's YAML names ``proactivebench_tasks.data.suite.rod`` (or ``demo_rod``) as its data file. Looking
that attribute up validates the rows, keeps those that count, and returns the path of the result:
one jsonl per dataset in the cache folder, made once and reused while its inputs are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from loguru import logger

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.data.hub import Hub
from proactivebench_tasks.data.hub_store import RemoteData
from proactivebench_tasks.data.store import Data, DataFolder
from proactivebench_tasks.data.train_split import load as load_train
from proactivebench_tasks.demo import DATA as DEMO_DATA
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol import protocol as protocols
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset, Sample, parse

DATA_DIR = "PROACTIVEBENCH_DATA_DIR"

#: Raised by one when the prepared rows change shape, so that older ones are not reused.
_LAYOUT = 1


@cache
def _folder(folder: Path) -> DataFolder:
    return DataFolder(folder)


@cache
def _hub(cache: Path) -> RemoteData:
    """The hub's data as this cache folder knows it."""
    return RemoteData(Hub())


class Source(str, Enum):
    """Data and the wording that belongs to it."""

    OFFICIAL = "official"
    DEMO = "demo"

    @property
    def data(self) -> Data:
        """Its rows and pictures: the demo's own, a folder that the user names, or the hub."""
        if self is Source.DEMO:
            return _folder(DEMO_DATA / "test")
        if not (named := os.environ.get(DATA_DIR)):
            return _hub(cache_dir())
        folder = Path(named).expanduser()
        if not folder.is_dir():
            raise DataError(f"{DATA_DIR} is {named!r}, which is no folder")
        return _folder(folder)

    @property
    def protocol(self) -> Protocol:
        return protocols.get("builtin" if self is Source.DEMO else "official")


def read(
    path: Path, dataset: Dataset, on_fault: Callable[[DataError], None] | None = None
) -> Iterator[tuple[int, dict[str, Any], Sample]]:
    """The rows of a jsonl, validated: line number from 1, the row as it stands, the sample.

    Blank lines are passed over. A row at fault is passed over, too, if there is an ``on_fault`` to
    tell it to; else it raises ``DataError`` that names file, line, field and what was expected.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, text in enumerate(lines, start=1):
                if not text.strip():
                    continue
                try:
                    row = json.loads(text)
                    sample = parse(dataset, row)
                except (ValueError, RecursionError, DataError) as error:
                    what = error if isinstance(error, DataError) else f"not JSON: {error}"
                    fault = DataError(f"{path}, line {number}: {what}")
                    if on_fault is None:
                        raise fault from error
                    on_fault(fault)
                else:
                    yield number, row, sample
    except FileNotFoundError:
        raise DataError(
            f"{path} does not exist; the data folder must hold one jsonl per dataset. "
            f"`proactivebench download --datasets {dataset.task} --data-dir {path.parent}` gets it"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def counts(protocol: Protocol, dataset: Dataset, row: Mapping[str, Any]) -> bool:
    """Whether a valid row is part of the evaluation: the protocol lists its id, and it is none of
    the easy ones that the benchmark leaves out."""
    return row.get("strong_occlusions") is not False and protocol.accepts(dataset, row["id"])


def amiss(protocol: Protocol, dataset: Dataset, ids: Sequence[int]) -> list[str]:
    """What a jsonl with rows of these ids lacks, or has too much of, in words."""
    found = []
    rows = Counter(each for each in ids if protocol.accepts(dataset, each))
    if twice := sorted(each for each, count in rows.items() if count > 1):
        found.append(f"{len(twice)} ids occur more than once: {_some(twice)}")
    if protocol.sample_ids is not None and (lacking := protocol.sample_ids[dataset] - rows.keys()):
        listed = len(protocol.sample_ids[dataset])
        found.append(f"{len(lacking)} of {listed} samples lack: {_some(sorted(lacking))}")
    return found


def _some(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids[:10])) + (", ..." if len(ids) > 10 else "")


def prepared(source: Source, dataset: Dataset) -> Path:
    """Path of a dataset's rows as the harness loads them.

    Kept are the rows whose id the protocol lists, without those of ``strong_occlusions: false``.
    Columns: the sample's fields, ``dataset``, ``source`` and ``line`` (in the original jsonl, which
    tells rows apart). Raises ``DataError`` and ``ProtocolError`` before any model is called.
    """
    data, protocol = source.data, source.protocol
    path = data.rows(dataset)
    try:
        content = path.read_bytes()
    except OSError:
        content = b""  # `read` says what is wrong with it
    inputs = [str(_LAYOUT), protocol.version, hashlib.sha256(content).hexdigest()]
    digest = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:16]
    target = cache_dir() / "rows" / f"{source.value}-{dataset.task}-{digest}.jsonl"
    if target.is_file():
        return target

    ids, kept, samples = [], [], []
    for line, row, sample in read(path, dataset):
        ids.append(sample.id)
        if not counts(protocol, dataset, row):
            continue
        place = {"dataset": dataset.value, "source": source.value, "line": line}
        kept.append(json.dumps(place | sample.model_dump(mode="json"), ensure_ascii=False) + "\n")
        samples.append(sample)
    if not kept:
        raise DataError(
            f"{path}: none of its {len(ids)} rows is part of the evaluation: {protocol.version} "
            "lists other ids, or strong_occlusions is false; is this the official test split?"
        )
    if isinstance(data, RemoteData):
        data.announce(dataset, samples)
    if oddities := amiss(protocol, dataset, ids):
        logger.warning(f"{path}: {'; '.join(oddities)}: numbers compare with no others")
        # Under another name, so that the next run reads, and says, it again.
        target = target.with_suffix(".odd.jsonl")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text("".join(kept), encoding="utf-8")
        draft.replace(target)  # whole or not at all, also with several processes
    except OSError as error:
        raise DataError(
            f"{target} cannot be written: {error}. PROACTIVEBENCH_CACHE may name another folder"
        ) from error
    return target


def train(folder: Path | None = None) -> Any:
    """The train split as a ``datasets.Dataset``; see ``train.load``."""
    named = folder or os.environ.get(DATA_DIR)
    return load_train(Path(named).expanduser() if named else None, required=folder is not None)


def __getattr__(name: str) -> str:
    """``rod``, ``vsod``, ... and ``demo_rod``, ...: the prepared rows, for a YAML's data_files."""
    if name.startswith("_"):
        raise AttributeError(name)
    demo = name.startswith("demo_")
    task = name.removeprefix("demo_")
    if task not in {dataset.task for dataset in Dataset}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return str(prepared(Source.DEMO if demo else Source.OFFICIAL, Dataset.of_task(task)))
