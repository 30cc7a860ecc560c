"""Lookup: what stored records do not hold and scoring needs, their samples and their protocols."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

from loguru import logger

from proactivebench_tasks.data.prepared import prepared
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.errors import DataError, ProtocolError, RecordError
from proactivebench_tasks.files import read_jsonl
from proactivebench_tasks.protocol import versions
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.record import Record
from proactivebench_tasks.transcripts.transcript import Transcript


class Lookup:
    """Reads the rows of each dataset, and each protocol, once."""

    def __init__(self) -> None:
        self._samples = cache(_samples)
        self._protocol = cache(_protocol)

    def sample(self, record: Record) -> Sample:
        """The sample of a record: its own, or, of schema 1, the suite's of the same number.

        ``RecordError`` with the reason if there is none.
        """
        if record.sample is not None:
            return record.own_sample()
        found = self._samples(record.suite, record.dataset)
        if isinstance(found, str):
            raise RecordError(f"the samples of {record.dataset.value} cannot be had: {found}")
        where = f"the {record.suite} rows of {record.dataset.value}"
        same = found.get(record.id, [])
        if len(same) != 1:
            raise RecordError(f"{len(same) or 'no'} samples in {where} have the id {record.id}")
        if not _is_of(record, same[0]):
            raise RecordError(f"sample {record.id} in {where} is not the one that was played")
        return same[0]

    def protocol(self, version: str) -> Protocol:
        """The protocol that a sample was played by. If it is not installed, that is said, and any
        other serves: grades depend on the sample, not on the wording."""
        return self._protocol(version)


def _samples(suite: str, dataset: Dataset) -> Mapping[int, Sequence[Sample]] | str:
    """The evaluated samples of a dataset by id, or the reason why they cannot be had."""
    found: dict[int, list[Sample]] = defaultdict(list)
    try:
        for _, columns in read_jsonl(prepared(Suite(suite), dataset)):
            sample = parse_sample(dataset, columns)
            if sample not in found[sample.id]:
                found[sample.id].append(sample)
    except (DataError, ProtocolError, OSError, ValueError) as error:
        return str(error)
    return found


def _protocol(version: str) -> Protocol:
    try:
        return versions.of(version)
    except ProtocolError as error:
        logger.warning(f"{error}. Scored by the rules of this release; only the wording is missing")
        return BUILTIN


def _is_of(record: Record, sample: Sample) -> bool:
    """Whether what a record says was shown is what the sample shows."""
    try:
        episode = record.variant.episode(sample, BUILTIN)
        if isinstance(record, OpenEnded):
            return record.valid_answers == episode.environment.open_ended_answers()
        if isinstance(record, Transcript) and record.turns:
            return record.turns[0].options == episode.options
    except DataError:
        return False
    return True
