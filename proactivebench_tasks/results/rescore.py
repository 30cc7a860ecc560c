"""Rescore: the numbers of a finished run, made again from the answers that it stored.

No model is needed, and of most runs no data: records hold their samples. The run's own files stay
as they are; what is made is written beside them, in copies (see ``run_files``). ``judged`` writes
its copies by ``write_copies``, too.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loguru import logger

from proactivebench_tasks.errors import DataError, LineError, RecordError
from proactivebench_tasks.results import metrics, scoring
from proactivebench_tasks.results.lookup import Lookup
from proactivebench_tasks.results.run_files import RESCORED, RunFiles, SamplesFile, StoredRow, find
from proactivebench_tasks.results.scoring import DETAILS
from proactivebench_tasks.results.summary import (
    BOUNDS,
    PART,
    TaskValues,
    figures,
    group_summaries,
    task_summary,
)
from proactivebench_tasks.transcripts import reader
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.transcript import Transcript

#: The texts that a row is to have in the copy.
Texts = Callable[[StoredRow], Sequence[Any]]

#: What ``lmms-eval --predict_only`` has in the place of metrics: all texts once more.
_BYPASS = "bypass"


@dataclass(frozen=True)
class Change:
    """A figure of a task or group (``acc``, ``acc_stderr``) that is not what the run had."""

    name: str
    figure: str
    before: float
    now: float

    def __str__(self) -> str:
        return f"{self.name}, {self.figure}: {self.before:.6g} before, {self.now:.6g} now"


@dataclass(frozen=True)
class Outcome:
    """What came of a run. ``results`` are those that were written, to ``path``."""

    path: Path
    results: Mapping[str, Any]
    names: tuple[str, ...]  # the tasks that were scored, and the groups that hold them
    new: tuple[str, ...]  # those of which the run had no numbers
    changes: tuple[Change, ...]
    changed_samples: Mapping[str, int]  # by task, where there are any
    left_out: int  # samples of which there are no numbers

    def differences(self) -> Iterator[str]:
        """What is not as in the run's own files, a line each."""
        yield from map(str, self.changes)
        for task, count in self.changed_samples.items():
            yield f"{task}: the values of {count} samples are not those in their rows"
        if self.left_out:
            yield f"{self.left_out} samples cannot be scored and are left out; the log says why"
        if self.new:
            whose = "" if self.new == self.names else f" for {', '.join(self.new)}"
            yield f"the run had no numbers of its own{whose}"
        if not (self.changes or self.changed_samples or self.left_out or self.new):
            yield f"nothing changed in {len(self.names)} tasks and groups"


def runs(paths: Iterable[Path], *kinds: str) -> list[RunFiles]:
    """The runs below folders, or of files, that hold records of these kinds; of each run the files
    that do. ``DataError`` if there are none."""
    paths = list(paths)
    faults: list[DataError] = []
    found = []
    for run in find(paths):
        known = [replace(file, kind=_kind(file, faults)) for file in run.samples]
        if ours := tuple(file for file in known if file.kind in kinds):
            found.append(replace(run, samples=ours))
    for fault in faults:
        logger.error(f"left out: {fault}")
    if not found:
        raise next(iter(faults), None) or DataError(
            f"{', '.join(map(str, paths))}: no *_samples_*.jsonl with {' or '.join(kinds)} answers "
            "in it; they are written by `lmms-eval --log_samples` or `--predict_only` with "
            "--output_path"
        )
    return found


def rescore(run: RunFiles) -> Outcome:
    """Make the numbers of a run again, from all of its files or some of them."""
    return write_copies(run, RESCORED, lambda row: row.texts)


def write_copies(
    run: RunFiles, ending: str, texts: Texts, about: Mapping[str, Any] | None = None
) -> Outcome:
    """Score the texts of a run's rows and write copies of its files. ``about`` is added to the
    results."""
    lookup = Lookup()
    tasks = [_score(file, ending, texts, lookup) for file in run.samples]
    before = run.results()
    after = _results(before, tasks) | dict(about or {})
    scored = {task.file.task for task in tasks if task.details}
    groups = after[PART]["groups"].items()
    names = (*sorted(scored), *(name for name, each in groups if scored & {*each["tasks"]}))
    new, changes = _compare(before, after, names)
    return Outcome(
        run.write_results(ending, after),
        after,
        names,
        new,
        changes,
        {task.file.task: task.changed for task in tasks if task.changed},
        sum(task.left_out for task in tasks),
    )


# A task: its rows, one at a time.


@dataclass
class _Task:
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
        self.changed += any(not _equal(before[name], now[name]) for name in numbers)

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


def _score(file: SamplesFile, ending: str, texts: Texts, lookup: Lookup) -> _Task:
    """Score a file's rows and write them to the file's copy. What cannot be scored is not in it."""
    task, faults = _Task(file), _Faults()

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
                scored = _scored(row, stored, file.kind, lookup, faults)
            except RecordError as error:
                leave_out(row.place, error)
            else:
                task.add(row.fields, scored)
                write(_copied(row, stored, file.kind) | scored)
    faults.report()
    return task


def _scored(
    row: StoredRow, texts: Sequence[Any], kind: str, lookup: Lookup, faults: _Faults
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


def _read(text: Any, kind: str) -> Transcript | OpenEnded | RecordError:
    try:
        record = reader.read(text)
    except RecordError as error:
        return error
    return record if record.kind == kind else RecordError(f"a record of kind {record.kind!r}")


def _unreadable(row: StoredRow, count: int, kind: str) -> dict[str, Any]:
    """The fields of a row without a record. Whose it is, only the run may have noted."""
    noted = row.fields.get(DETAILS)
    noted = noted if isinstance(noted, dict) else {}
    bounds = {bound: noted[bound] for bound in BOUNDS if bound in noted}
    known = tuple(metrics.of_kind(kind).values())
    return scoring.unreadable(known, count, noted.get("cluster", row.place), bounds)


def _copied(row: StoredRow, texts: Sequence[Any], kind: str) -> dict[str, Any]:
    """What the copy of a row takes over: all but its numbers."""
    stale = {_BYPASS, *metrics.of_kind(kind)}
    kept = {name: value for name, value in row.fields.items() if name not in stale}
    is_list = isinstance(row.fields.get("filtered_resps"), list)
    return kept | {"filtered_resps": list(texts) if is_list else texts[0]}


def _kind(file: SamplesFile, faults: list[DataError]) -> str:
    """The kind of the first record in a file. Empty if there is none; then ``faults`` are added."""
    damaged: list[DataError] = []
    for row in file.rows(damaged.append):
        for text in row.texts:
            with suppress(RecordError):
                return reader.read(text).kind
    faults += damaged
    return ""


# The results: those of the run, with our part made anew.


def _results(before: Mapping[str, Any], scored: Sequence[_Task]) -> dict[str, Any]:
    """A run's results with the numbers of its tasks, and of the groups that hold them, made anew.

    A group one of whose tasks is not known, or is not ours, has no numbers any more.
    """
    after = dict(before)
    after.pop("efficiency", None)  # what a correct answer cost, by the numbers that were
    for part in ("results", "groups", "higher_is_better"):
        after[part] = dict(before.get(part, {}))
    tasks = dict(before.get(PART, {}).get("tasks", {}))
    sizes = before.get("n-samples", {})
    for task in scored:
        name = task.file.task
        offered = tasks.pop(name, {}).get("offered") or sizes.get(name, {}).get("original")
        if task.details:
            tasks[name] = task.summary(offered)
        _put(after, name, tasks.get(name))
    members = before.get("group_subtasks", {})
    groups = group_summaries(tasks, members)
    for name, inside in members.items():
        if any(task.file.task in inside for task in scored):
            _put(after, name, groups.get(name))
            after["groups"][name] = after["results"][name]
    if not after["groups"]:
        del after["groups"]  # as of a run without groups
    after[PART] = {"tasks": tasks, "groups": groups}
    return after


def _put(results: dict[str, Any], name: str, summary: Mapping[str, Any] | None) -> None:
    """Put what users compare of a task or group into the harness's parts, by its names."""
    found: dict[str, Any] = {"alias": results["results"].get(name, {}).get("alias", name)}
    results["results"][name] = found
    if summary is None:
        return
    listed = [each for each in metrics.of_kind(summary["kind"]).values() if each.is_listed]
    results["higher_is_better"][name] = {each.name: each.higher_is_better for each in listed}
    is_clustered = summary["clusters"] < summary["samples"]
    for each in listed:
        values = summary["metrics"][each.name]
        error = values["stderr"]
        clustered = values["stderr_clustered"] if is_clustered else None
        found |= {
            f"{each.name},none": values["mean"],
            f"{each.name}_stderr,none": "N/A" if error is None else error,
            f"{each.name}_stderr_clt,none": "N/A" if error is None else error,
            f"{each.name}_stderr_clustered,none": "N/A" if clustered is None else clustered,
        }


def _compare(
    before: Mapping[str, Any], after: Mapping[str, Any], names: Iterable[str]
) -> tuple[tuple[str, ...], tuple[Change, ...]]:
    """The tasks and groups of which only ``after`` has numbers, and what has changed in others."""
    new, changes = [], []
    for name in names:
        old, now = figures(before, name), figures(after, name)
        common = [figure for figure in now if figure in old]
        if not common:
            new.append(name)
        changes += [
            Change(name, figure, old[figure], now[figure])
            for figure in common
            if not _equal(old[figure], now[figure])
        ]
    return tuple(new), tuple(changes)


def _equal(before: float, now: float) -> bool:
    return math.isclose(before, now, rel_tol=1e-9, abs_tol=1e-9)
