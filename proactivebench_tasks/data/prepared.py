"""Prepared rows: a dataset's rows as the harness loads them, one jsonl each in the cache folder.

A task's YAML names ``proactivebench_tasks.data.prepared.rod`` (or ``demo_rod``) as its data file.
Looking that attribute up validates the rows, keeps those that are evaluated, and returns the path
of the result, which is made once and used again while its inputs are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from loguru import logger

from proactivebench_tasks import config
from proactivebench_tasks.data import rows
from proactivebench_tasks.data.hub_store import NETWORK_SHARE
from proactivebench_tasks.data.store import Store
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments import reachable
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import format_size, written_whole
from proactivebench_tasks.protocol.samples import Dataset, Sample

#: Raised by one when the prepared rows change shape, so that older ones are not used again.
_LAYOUT = 2


def prepared(suite: Suite, dataset: Dataset) -> Path:
    """Path of a dataset's prepared rows.

    Columns: the sample's fields, ``dataset``, ``suite``, ``line`` (in the original jsonl) and
    ``row``, which no other row has, of whatever data folder. Raises ``DataError`` and
    ``ProtocolError`` before any model is called.
    """
    store, protocol = suite.store, suite.protocol
    path = store.rows(dataset)
    try:
        content = path.read_bytes()
    except OSError:
        content = b""  # `rows.read` says what is wrong with it
    inputs = [str(_LAYOUT), protocol.version, hashlib.sha256(content).hexdigest()]
    digest = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:16]
    target = config.cache_dir() / "rows" / f"{suite.value}-{dataset.task}-{digest}.jsonl"
    if target.is_file():
        return target

    ids, lines, samples = [], [], []
    for row in rows.read(path, dataset):
        ids.append(row.sample.id)
        if not rows.is_evaluated(protocol, row):
            continue
        place = {
            "dataset": dataset.value,
            "suite": suite.value,
            "line": row.line,
            "row": f"{digest}-{row.line}",
        }
        columns = place | row.sample.model_dump(mode="json")
        lines.append(json.dumps(columns, ensure_ascii=False) + "\n")
        samples.append(row.sample)
    if not lines:
        raise DataError(
            f"{path}: none of its {len(ids)} rows is part of the evaluation: {protocol.version} "
            "lists other ids, or strong_occlusions is false; is this the official test split?"
        )
    _announce_network_reads(store, dataset, samples)
    if faults := rows.id_faults(protocol, dataset, ids):
        logger.warning(f"{path}: {'; '.join(faults)}: numbers compare with no others")
        # Under another name, so that the next run reads, and says, it again.
        target = target.with_suffix(".odd.jsonl")
    try:
        with written_whole(target) as draft:
            draft.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise DataError(
            f"{target} cannot be written: {error}. {config.CACHE} may name another folder"
        ) from error
    return target


def _announce_network_reads(store: Store, dataset: Dataset, samples: Iterable[Sample]) -> None:
    """Say so if playing all these samples can read much of an archive over the network."""
    paths: set[str] = set()
    for sample in samples:
        with suppress(DataError):  # malformed samples are an error when they are played
            paths |= reachable.image_paths(sample)
    for need in store.network_reads(paths):
        if need.read > NETWORK_SHARE * need.size:
            logger.info(
                f"{dataset.task}: a run without --limit can read {format_size(need.read)} of the "
                f"{format_size(need.size)} of {need.archive} image by image. It is faster to run "
                f"`proactivebench download --datasets {dataset.task}` before"
            )


def __getattr__(name: str) -> str:
    """``rod``, ``vsod``, ... and ``demo_rod``, ...: the prepared rows, for a YAML's data_files."""
    if name.startswith("_"):
        raise AttributeError(name)
    demo = name.startswith("demo_")
    task = name.removeprefix("demo_")
    if task not in {dataset.task for dataset in Dataset}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return str(prepared(Suite.DEMO if demo else Suite.OFFICIAL, Dataset.of_task(task)))
