"""Summary: what a run comes to, task by task and group by group.

It is made from the rows' values alone, so it is the same whoever made these: the harness, or
``proactivebench judge`` and ``rescore`` afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from proactivebench_tasks.errors import ProtocolError
from proactivebench_tasks.protocol import published, versions
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.results import metrics
from proactivebench_tasks.results.metrics import MANY_MISMATCHES
from proactivebench_tasks.results.statistics import Errors
from proactivebench_tasks.transcripts.record import RecordKind

#: Part of the results that the summary is kept under.
PART = "proactivebench"

#: What a metric is set beside: the level of a uniform guesser, or the best that there can be.
BOUNDS = {"chance_acc": "acc", "chance_ps": "ps", "best_acc": "acc"}


@dataclass(frozen=True)
class TaskValues:
    """The values of a task's samples. ``listed`` by metric; ``details`` one mapping a sample."""

    listed: Mapping[str, Sequence[float]]
    details: Sequence[Mapping[str, Any]]

    def of(self, name: str) -> Sequence[float]:
        """The values of any metric."""
        return self.listed[name] if name in self.listed else [d[name] for d in self.details]

    def errors(self, name: str) -> Errors:
        """The errors of a metric's mean."""
        return Errors.of(self.of(name), self.clusters)

    @property
    def clusters(self) -> list[str]:
        return [each["cluster"] for each in self.details]

    @property
    def about(self) -> Mapping[str, Any]:
        """What all samples of the task have in common; empty if not one has a record."""
        return next((each["about"] for each in self.details if "about" in each), {})

    @property
    def kind(self) -> RecordKind:
        """The kind of the samples' records. If none is whole, the metrics that are listed tell."""
        if "kind" in self.about:
            return RecordKind(self.about["kind"])
        fits = self.listed.keys() <= metrics.of_kind(RecordKind.MULTIPLE_CHOICE).keys()
        return RecordKind.MULTIPLE_CHOICE if fits else RecordKind.OPEN_ENDED


def task_summary(values: TaskValues, offered: int | None = None) -> dict[str, Any]:
    """What a task comes to. ``offered`` is the number of samples that it has in all."""
    about = values.about
    kind = values.kind
    names = metrics.of_kind(kind)
    count = len(values.details)
    clusters = values.clusters
    summary: dict[str, Any] = {
        **about,
        "kind": kind.value,
        "samples": count,
        "clusters": len(set(clusters)),
        "cluster_key": "image_template",
        "metrics": {name: _metric(fmean(values.of(name)), values.errors(name)) for name in names},
    }
    if offered is not None:
        summary["offered"] = offered
    for bound in BOUNDS:
        if known := [each[bound] for each in values.details if bound in each]:
            summary[bound] = fmean(known)
    if any("repeats" in each for each in values.details):
        summary["repeats"] = _repeats(values)
    costs: Counter[str] = Counter()
    for each in values.details:
        costs.update(each["costs"])
    summary["costs"] = dict(costs)
    summary["warnings"] = _warnings(summary)
    return summary


def group_summary(tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The plain mean over tasks of one kind, from their summaries."""
    first = tasks[0]
    summary: dict[str, Any] = {
        "kind": first["kind"],
        "samples": sum(task["samples"] for task in tasks),
        "clusters": sum(task["clusters"] for task in tasks),
        "metrics": {
            name: _metric(
                fmean(task["metrics"][name]["mean"] for task in tasks),
                Errors.of_mean([errors_in(task, name) for task in tasks]),
            )
            for name in first["metrics"]
        },
    }
    for bound in BOUNDS:
        if all(bound in task for task in tasks):
            summary[bound] = fmean(task[bound] for task in tasks)
    return summary


def group_summaries(
    tasks: Mapping[str, Mapping[str, Any]], members: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The summaries of the groups whose members are tasks of ours, and of one kind."""
    found = {}
    for group, names in members.items():
        inside = [tasks[name] for name in names if name in tasks]
        kinds = {task["kind"] for task in inside}
        if inside and len(inside) == len(names) and len(kinds) == 1:
            found[group] = {"tasks": list(names), **group_summary(inside)}
    return found


def _metric(mean: float, errors: Errors) -> dict[str, float | None]:
    return {"mean": mean, "stderr": errors.plain, "stderr_clustered": errors.clustered}


def errors_in(summary: Mapping[str, Any], metric: str) -> Errors:
    """The errors that a task's or group's summary has of a metric."""
    found = summary["metrics"][metric]
    has_clusters = summary["clusters"] < summary["samples"]
    return Errors(found["stderr"], found["stderr_clustered"], has_clusters)


def harness_errors(metric: str, errors: Errors, filter_name: str) -> dict[str, float | str]:
    """The errors of a metric as lmms-eval's part of the results has them, by its names."""
    clustered = errors.clustered if errors.has_clusters else None
    named = {"stderr": errors.plain, "stderr_clt": errors.plain, "stderr_clustered": clustered}
    return {
        f"{metric}_{name},{filter_name}": "N/A" if error is None else error
        for name, error in named.items()
    }


def figures(results: Mapping[str, Any], name: str) -> dict[str, float]:
    """The means (``acc``) and their errors (``acc_stderr``) of a task or group in a run's results.

    Results of older versions have them in the harness's part alone.
    """
    part = results.get(PART, {})
    ours = {**part.get("tasks", {}), **part.get("groups", {})}.get(name)
    if ours is None:
        found = results.get("results", {}).get(name, {})
        values = {key.partition(",")[0]: value for key, value in found.items() if "," in key}
    else:
        values = {
            metric + ("" if figure == "mean" else f"_{figure}"): value
            for metric, each in ours["metrics"].items()
            for figure, value in each.items()
        }
    return {key: float(v) for key, v in values.items() if isinstance(v, (int, float))}


def _repeats(values: TaskValues) -> dict[str, Any]:
    """The means of each repeat over all samples, and their spread."""
    repeats = [each["repeats"] for each in values.details if "repeats" in each]
    count = min(len(column) for each in repeats for column in each.values())
    spread: dict[str, Any] = {"count": count}
    for name in values.listed:
        means = [fmean(each[name][i] for each in repeats) for i in range(count)]
        spread[name] = {"means": means, "stdev": stdev(means)}
    return spread


def _warnings(task: Mapping[str, Any]) -> list[str]:
    """What keeps a task's numbers from being what they look like, in words."""
    count = task["samples"]
    found = []
    if count < task.get("offered", count):
        found.append(f"limited to {count} of {task['offered']} samples")
    if (expected := _expected(task)) is not None and task.get("offered", count) != expected:
        offered = task.get("offered", count)
        found.append(f"the data has {offered} samples, the official evaluation {expected}")
    for name, what in (
        ("failed", "failed and count as 0"),
        ("unscored", "have no verdict and count as 0"),
        ("cut", "were cut off while thinking; --gen_kwargs max_new_tokens= gives more room"),
    ):
        if share := task["metrics"].get(name, {}).get("mean", 0):
            found.append(f"{round(share * count / 100)} of {count} samples {what}")
    if (share := task["metrics"].get("mismatch", {}).get("mean", 0)) > MANY_MISMATCHES:
        found.append(f"{share:.0f} % of the last answers are no option of the list")
    return found


def _expected(task: Mapping[str, Any]) -> int | None:
    """How many samples the official evaluation has; ``None`` if the task is none of it."""
    try:
        listed = versions.of(task["protocol"]).listed(Dataset.of_task(task["dataset"]))
    except (KeyError, ProtocolError):
        return None
    if listed is None:
        return None
    is_open_ended = RecordKind(task["kind"]) is RecordKind.OPEN_ENDED
    return len(published.open_ended_subset(len(listed)) if is_open_ended else listed)
