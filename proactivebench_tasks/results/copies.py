"""Copies: a run's files written once more, beside its own, with the numbers made again.

What they are made of is the texts that are given for the rows: those that the run stored
(``rescore``), or those with other verdicts in them (``judged``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proactivebench_tasks.results import metrics
from proactivebench_tasks.results.lookup import Lookup
from proactivebench_tasks.results.run_files import RunFiles
from proactivebench_tasks.results.scored_file import ScoredFile, Texts, score
from proactivebench_tasks.results.statistics import is_same
from proactivebench_tasks.results.summary import (
    PART,
    errors_in,
    figures,
    group_summaries,
    harness_errors,
)
from proactivebench_tasks.transcripts.record import RecordKind


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
class RescoreOutcome:
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


def write_copies(
    run: RunFiles, ending: str, texts: Texts, about: Mapping[str, Any] | None = None
) -> RescoreOutcome:
    """Score the texts of a run's rows and write copies of its files. ``about`` is added to the
    results."""
    lookup = Lookup()
    tasks = [score(file, ending, texts, lookup) for file in run.samples]
    before = run.results()
    after = _results(before, tasks) | dict(about or {})
    scored = {task.file.task for task in tasks if task.details}
    groups = after[PART]["groups"].items()
    names = (*sorted(scored), *(name for name, each in groups if scored & {*each["tasks"]}))
    new, changes = _compare(before, after, names)
    return RescoreOutcome(
        run.write_results(ending, after),
        after,
        names,
        new,
        changes,
        {task.file.task: task.changed for task in tasks if task.changed},
        sum(task.left_out for task in tasks),
    )


def _results(before: Mapping[str, Any], scored: Sequence[ScoredFile]) -> dict[str, Any]:
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
    listed = metrics.listed(RecordKind(summary["kind"]))
    results["higher_is_better"][name] = {each.name: each.higher_is_better for each in listed}
    for each in listed:
        found[f"{each.name},none"] = summary["metrics"][each.name]["mean"]
        found |= harness_errors(each.name, errors_in(summary, each.name), "none")


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
            if not is_same(old[figure], now[figure])
        ]
    return tuple(new), tuple(changes)
