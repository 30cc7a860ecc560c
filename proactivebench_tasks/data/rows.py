"""Rows: the lines of a dataset's jsonl, validated, and which of them are evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from proactivebench_tasks import file_kinds
from proactivebench_tasks.environments import parse_sample, reachable
from proactivebench_tasks.errors import DataError, LineError
from proactivebench_tasks.files import read_jsonl
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset, Sample

_SHOWN = 10  # ids that a message names


@dataclass(frozen=True)
class Row:
    """A valid row of a jsonl."""

    line: int  # in the file, from 1
    sample: Sample


def read(
    path: Path, dataset: Dataset, on_fault: Callable[[DataError], None] | None = None
) -> Iterator[Row]:
    """The rows of a jsonl, validated. Blank lines are skipped.

    A row at fault raises ``DataError``, which names file, line, field and what was expected. With
    ``on_fault`` the row is skipped instead, and ``on_fault`` is called with the error. A file that
    is missing, cannot be read or is something else raises ``DataError`` in any case.
    """
    command = f"proactivebench download --datasets {dataset.task} --data-dir {path.parent}"
    gets_it = f"`{command}` gets it"
    try:
        for line, columns in read_jsonl(path, on_fault, f"{gets_it} anew"):
            try:
                sample = parse_sample(dataset, columns)
            except DataError as error:
                if line == 1 and (kind := file_kinds.error_message(columns)) is not None:
                    what = kind.explained(path, f"{gets_it} anew")
                    raise DataError(f"{path}: cannot be read: {what}") from error
                fault = LineError(path, line, str(error))
                if on_fault is None:
                    raise fault from error
                on_fault(fault)
            else:
                yield Row(line, sample)
    except FileNotFoundError:
        raise DataError(
            f"{path} does not exist; the data folder must hold one jsonl per dataset. {gets_it}"
        ) from None


def is_evaluated(protocol: Protocol, row: Row) -> bool:
    """Whether a row is part of the evaluation.

    The protocol must list the row's id, and something must hide its answer.
    """
    sample = row.sample
    return sample.strong_occlusions is not False and protocol.accepts(sample.dataset, sample.id)


def id_faults(protocol: Protocol, dataset: Dataset, ids: Sequence[int]) -> list[str]:
    """What is wrong with a jsonl whose rows have these ``ids``, in sentences: ids that occur more
    than once, and ids that the protocol lists and no row has."""
    faults = []
    found = Counter(each for each in ids if protocol.accepts(dataset, each))
    if repeated := sorted(each for each, count in found.items() if count > 1):
        faults.append(f"{len(repeated)} ids occur more than once: {_listed(repeated)}")
    wanted = protocol.listed(dataset) or frozenset()
    if lacking := sorted(wanted - found.keys()):
        faults.append(f"{len(lacking)} of {len(wanted)} samples lack: {_listed(lacking)}")
    return faults


def image_paths(samples: Iterable[Sample]) -> set[str]:
    """Paths below the data folder of all images that episodes of these samples can show.

    A sample with a suggestion that leads nowhere is left out: it is an error when it is played.
    """
    paths: set[str] = set()
    for sample in samples:
        with suppress(DataError):
            paths |= reachable.image_paths(sample)
    return paths


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids[:_SHOWN])) + (", ..." if len(ids) > _SHOWN else "")
