"""Prepared rows: the rows of a dataset that are evaluated, as a jsonl that the harness loads.

A task's YAML names ``proactivebench_tasks.data.prepared.rod`` (or ``demo_rod``) as its data file.
Looking this attribute up validates the dataset's rows, writes those that are evaluated to a jsonl
in the cache folder, and returns its path. The jsonl is used again for as long as the original rows
and the protocol are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from loguru import logger

from proactivebench_tasks import config
from proactivebench_tasks.data import rows
from proactivebench_tasks.data.store import Store
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import digest, written_whole
from proactivebench_tasks.protocol.samples import Dataset, Sample

#: Raised by one when the prepared rows change shape, so that older ones are not used again.
_LAYOUT = 2


def folder() -> Path:
    """Where all prepared rows are kept."""
    return config.cache_dir() / "rows"


def prepared(suite: Suite, dataset: Dataset) -> Path:
    """The path of a dataset's prepared rows; the file is made if it is not there.

    Its columns are the sample's fields and where the row is from: ``dataset``, ``suite``, ``line``
    (of the original jsonl, from 1) and ``row``, a key that two rows share only if they are the same
    line of a jsonl with the same content.

    Raises ``DataError`` if the rows cannot be had, are not valid, or none is evaluated;
    ``ProtocolError`` if the official protocol cannot be had. The harness asks for the path before
    it calls a model, so both come early.
    """
    store, protocol = suite.store, suite.protocol
    path = store.rows(dataset)
    try:
        content = path.read_bytes()
    except OSError:
        content = b""  # `rows.read` says what is wrong with the file
    version = digest(str(_LAYOUT), protocol.version, hashlib.sha256(content).hexdigest())[:16]
    target = folder() / f"{suite.value}-{dataset.task}-{version}.jsonl"
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
            "row": f"{version}-{row.line}",
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
        raise DataError(f"{target} cannot be written: {config.unwritable(error)}") from error
    return target


def _announce_network_reads(store: Store, dataset: Dataset, samples: Iterable[Sample]) -> None:
    """Log it if playing all these samples can read much of an archive over the network."""
    for need in store.network_reads(rows.image_paths(samples)):
        if need.is_much:
            logger.info(
                f"{dataset.task}: a run without --limit can read {need}. It is faster to run "
                f"`proactivebench download --datasets {dataset.task}` before"
            )


def __getattr__(name: str) -> str:
    """The path of a dataset's prepared rows: ``rod``, ``vsod``, ..., and the demo's ``demo_rod``,
    ``demo_vsod``, .... These are the names that the tasks' YAMLs have in ``data_files``."""
    if name.startswith("_"):
        raise AttributeError(name)
    demo = name.startswith("demo_")
    task = name.removeprefix("demo_")
    if task not in {dataset.task for dataset in Dataset}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return str(prepared(Suite.DEMO if demo else Suite.OFFICIAL, Dataset.of_task(task)))
