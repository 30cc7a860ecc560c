"""ScoredFile: what the rows of a samples file come to, scored again from the texts in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loguru import logger

from proactivebench_tasks.errors import DataError, LineError, RecordError
from proactivebench_tasks.results import metrics, scoring
from proactivebench_tasks.results.lookup import Lookup
from proactivebench_tasks.results.run_files import SamplesFile, StoredRow
from proactivebench_tasks.results.scoring import DETAILS
from proactivebench_tasks.results.statistics import is_same
from proactivebench_tasks.results.summary import BOUNDS, TaskValues, task_summary
from proactivebench_tasks.transcripts import reader
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.record import RecordKind
from proactivebench_tasks.transcripts.transcript import Transcript

#: The texts that a row is to have in the copy.
Texts = Callable[[StoredRow], Sequence[Any]]

#: What ``lmms-eval --predict_only`` has in the place of metrics: all texts once more.
_BYPASS = "bypass"


@dataclass
class ScoredFile:
    """What the rows of a file come to."""

    file: SamplesFile
    listed: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    details: list[Mapping[str, Any]] = field(default_factory=list)
    left_out: int = 0
    changed: int = 0  # samples whose values are not those in their rows

    def add(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        names = [name for name in metrics.LISTED if name in now]
        for name in names:
            self.listed[name].append(now[name])
        self.details.append(now[DETAILS])
        numbers = [name for name in names if isinstance(before.get(name), (int, float))]
        self.changed += any(not is_same(before[name], now[name]) for name in numbers)

    def summary(self, offered: int | None) -> dict[str, Any]:
        found = task_summary(TaskValues(self.listed, self.details), offered)
        if self.left_out:
            count = self.left_out + len(self.details)
            found["left_out"] = self.left_out
            found["warnings"].append(
                f"{self.left_out} of {count} stored samples cannot be scored and are left out"
            )
        return found


class _Faults:
    """What is wrong with the rows of a file, told once for each reason."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], str] = {}

    def add(self, place: str, outcome: str, reason: object) -> None:
        key = outcome, str(reason)
        self._counts[key] += 1
        self._first.setdefault(key, place)

    def report(self) -> None:
        for (outcome, reason), count in self._counts.items():
            place = self._first[outcome, reason]
            more = f" (and {count - 1} more rows)" if count > 1 else ""
            logger.error(f"{place}{more} {outcome}: {reason}")


def score(file: SamplesFile, ending: str, texts: Texts, lookup: Lookup) -> ScoredFile:
    """Score a file's rows and write them to the file's copy. What cannot be scored is not in it."""
    task, faults, kind = ScoredFile(file), _Faults(), file.kind
    assert kind is not None  # `rescore.runs` finds no other files

    def leave_out(place: str, reason: object) -> None:
        task.left_out += 1
        faults.add(place, "is left out", reason)

    def damaged(fault: DataError) -> None:
        if isinstance(fault, LineError):
            leave_out(f"{fault.path}, line {fault.line}", fault.reason)
        else:
            leave_out(str(file.path), fault)

    with file.copy(ending) as write:
        for row in file.rows(damaged):
            stored = texts(row)
            try:
                scored = _scored(row, stored, kind, lookup, faults)
            except RecordError as error:
                leave_out(row.place, error)
            else:
                task.add(row.fields, scored)
                write(_copied(row, stored, kind) | scored)
    faults.report()
    return task


def _scored(
    row: StoredRow, texts: Sequence[Any], kind: RecordKind, lookup: Lookup, faults: _Faults
) -> dict[str, Any]:
    """The fields of a row, as an evaluation makes them."""

    def complain(text: str, error: RecordError) -> None:
        faults.add(row.place, "holds no record and counts as failed", f"{error}: {text!r:.80}")

    read = [_read(text, kind) for text in texts]
    record = next((each for each in read if not isinstance(each, RecordError)), None)
    if record is None:
        for text, error in zip(texts, read, strict=True):
            if isinstance(error, RecordError):
                complain(text, error)
        return _unreadable(row, len(texts), kind)
    if isinstance(record, Transcript):
        sample, protocol = lookup.sample(record), lookup.protocol(record.protocol)
        return scoring.multiple_choice(texts, sample, protocol, complain)
    try:
        return scoring.open_ended(texts, lookup.sample(record), complain)
    except RecordError as error:
        faults.add(row.place, "is scored without its sample, as a cluster of its own", error)
        return scoring.open_ended(texts, None, complain)


def _read(text: Any, kind: RecordKind) -> Transcript | OpenEnded | RecordError:
    try:
        record = reader.read(text)
    except RecordError as error:
        return error
    return record if record.kind == kind else RecordError(f"a record of kind {record.kind.value!r}")


def _unreadable(row: StoredRow, count: int, kind: RecordKind) -> dict[str, Any]:
    """The fields of a row without a record. Whose it is, only the run may have noted."""
    noted = row.fields.get(DETAILS)
    noted = noted if isinstance(noted, dict) else {}
    bounds = {bound: noted[bound] for bound in BOUNDS if bound in noted}
    known = tuple(metrics.of_kind(kind).values())
    return scoring.unreadable(known, count, noted.get("cluster", row.place), bounds)


def _copied(row: StoredRow, texts: Sequence[Any], kind: RecordKind) -> dict[str, Any]:
    """What the copy of a row takes over: all but its numbers."""
    stale = {_BYPASS, *metrics.of_kind(kind)}
    kept = {name: value for name, value in row.fields.items() if name not in stale}
    is_list = isinstance(row.fields.get("filtered_resps"), list)
    return kept | {"filtered_resps": list(texts) if is_list else texts[0]}
