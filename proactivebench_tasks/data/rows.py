"""Rows: the lines of a dataset's jsonl, validated, and which of them are evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import read_jsonl
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset, Sample

_SHOWN = 10  # ids named in a message


@dataclass(frozen=True)
class Row:
    """A valid row: its line number from 1, its columns as they stand, and the sample in them."""

    line: int
    columns: Mapping[str, Any]
    sample: Sample


def read(
    path: Path, dataset: Dataset, on_fault: Callable[[DataError], None] | None = None
) -> Iterator[Row]:
    """The rows of a jsonl, validated.

    Blank lines are passed over. A row at fault is passed over, too, if there is an ``on_fault`` to
    tell it to; else it raises ``DataError`` that names file, line, field and what was expected.
    """
    try:
        for line, columns in read_jsonl(path, on_fault):
            try:
                sample = parse_sample(dataset, columns)
            except DataError as error:
                fault = DataError(f"{path}, line {line}: {error}")
                if on_fault is None:
                    raise fault from error
                on_fault(fault)
            else:
                yield Row(line, columns, sample)
    except FileNotFoundError:
        raise DataError(
            f"{path} does not exist; the data folder must hold one jsonl per dataset. "
            f"`proactivebench download --datasets {dataset.task} --data-dir {path.parent}` gets it"
        ) from None


def is_evaluated(protocol: Protocol, row: Row) -> bool:
    """Whether a row is part of the evaluation: the protocol lists its id, and it is none of the
    easy ones that the benchmark leaves out (``strong_occlusions`` is false)."""
    if row.columns.get("strong_occlusions") is False:
        return False
    return protocol.accepts(row.sample.dataset, row.sample.id)


def id_faults(protocol: Protocol, dataset: Dataset, ids: Sequence[int]) -> list[str]:
    """What a jsonl with rows of these ids lacks, or has too much of, in words."""
    faults = []
    found = Counter(each for each in ids if protocol.accepts(dataset, each))
    if repeated := sorted(each for each, count in found.items() if count > 1):
        faults.append(f"{len(repeated)} ids occur more than once: {_listed(repeated)}")
    if protocol.sample_ids is not None:
        wanted = protocol.sample_ids[dataset]
        if lacking := sorted(wanted - found.keys()):
            faults.append(f"{len(lacking)} of {len(wanted)} samples lack: {_listed(lacking)}")
    return faults


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids[:_SHOWN])) + (", ..." if len(ids) > _SHOWN else "")
