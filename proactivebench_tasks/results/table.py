"""Table: a summary as text, the last thing that a run prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.results import metrics
from proactivebench_tasks.results.summary import BOUNDS, PART
from proactivebench_tasks.transcripts.record import RecordKind


def render(results: Mapping[str, Any]) -> str:
    """A table for each kind and variant of our tasks in a run's results, warnings above it, and
    below it how the run compares with a ``--baseline``."""
    part = results[PART]
    tables: dict[str, list[str]] = {}
    for name, task in sorted(part["tasks"].items(), key=lambda item: _order(item[1])):
        tables.setdefault(_title(task), []).append(name)
    texts = [_table(title, names, part) for title, names in tables.items()]
    if lines := _comparison(results["results"], part["tasks"]):
        texts.append("\n".join(lines))
    return "\n\n".join(texts)


def without_comparison(results: Mapping[str, Any], column: str) -> dict[str, Any]:
    """The results as the harness's table takes them, which would set the one score of a paired
    comparison beside each of a task's metrics."""
    ours = results[PART]["tasks"]
    kept = {
        name: {k: v for k, v in figures.items() if not k.startswith("paired_")}
        if name in ours
        else figures
        for name, figures in results[column].items()
    }
    return {**results, column: kept}


def _comparison(results: Mapping[str, Any], tasks: Iterable[str]) -> list[str]:
    lines = []
    for name in tasks:
        figures = results.get(name, {})
        if "paired_baseline" in figures:
            before, now = figures["paired_baseline_score"], figures["acc,none"]
            lower, upper = figures["paired_ci_lower"], figures["paired_ci_upper"]
            lines.append(
                f"  {name}: acc {now:.1f}, {before:.1f} in {figures['paired_baseline']}; "
                f"difference {now - before:+.1f}, 95 % interval {lower:+.1f} to {upper:+.1f}, "
                f"p = {figures['paired_pvalue']:.3f}"
            )
    return ["Paired with the baseline, sample by sample", *lines] if lines else []


def _order(task: Mapping[str, Any]) -> tuple[bool, list[str], int]:
    """Multiple choice first, the plain variant first, datasets in their usual order."""
    datasets = [dataset.task for dataset in Dataset]
    dataset = task.get("dataset")
    position = datasets.index(dataset) if dataset in datasets else len(datasets)
    return _is_open_ended(task), sorted(map(str, task.get("variant", {}).items())), position


def _is_open_ended(task: Mapping[str, Any]) -> bool:
    return RecordKind(task["kind"]) is RecordKind.OPEN_ENDED


def _title(task: Mapping[str, Any]) -> str:
    kind = "open-ended" if _is_open_ended(task) else "multiple choice"
    asked = {k: v for k, v in task.get("variant", {}).items() if k not in ("open_ended", "judge")}
    variant = ", ".join(
        k if v is True else f"{k} {getattr(v, 'value', v)}" for k, v in asked.items()
    )
    parts = [kind, variant, task.get("protocol", "")]
    return ", ".join(filter(None, parts))


def _table(title: str, names: Sequence[str], part: Mapping[str, Any]) -> str:
    tasks = {name: part["tasks"][name] for name in names}
    rows = [(task.get("dataset", name), task) for name, task in tasks.items()]
    rows += [
        ("mean", group) for group in part["groups"].values() if set(group["tasks"]) == set(names)
    ][:1]
    head, *body = _cells(rows)
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = ["ProactiveBench, " + title]
    lines += [
        f"  ! {task.get('dataset', name)}: {warning}"
        for name, task in tasks.items()
        for warning in task["warnings"]
    ]
    lines += [
        "  "
        + "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *body)
    ]
    lines += _notes(list(tasks.values()))
    return "\n".join(lines)


def _cells(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[list[str]]:
    rows = list(rows)
    first = rows[0][1]
    listed = [metric.name for metric in metrics.listed(RecordKind(first["kind"]))]
    bounds = [bound for bound in BOUNDS if bound in first]
    more = [name for name in ("acc_lenient",) if name in first["metrics"]]
    table = [["", "samples", *listed, *(b.replace("_", " ") for b in bounds), *more]]
    for name, each in rows:
        values = each["metrics"]
        table.append(
            [
                name,
                f"{each['samples']}",
                *(_with_error(values[m], 2 if _is_count(m, first) else 1) for m in listed),
                *(
                    f"{each[bound]:.{2 if _is_count(BOUNDS[bound], first) else 1}f}"
                    for bound in bounds
                ),
                *(f"{values[m]['mean']:.1f}" for m in more),
            ]
        )
    return table


def _is_count(metric: str, task: Mapping[str, Any]) -> bool:
    """Whether a metric is a number a sample, not a share in %."""
    return metric == "ps" and not _is_open_ended(task)


def _with_error(value: Mapping[str, Any], digits: int) -> str:
    error = value["stderr_clustered"]
    shown = "?" if error is None else f"{error:.{digits}f}"
    return f"{value['mean']:.{digits}f} ± {shown}"


def _notes(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    notes = []
    if any(task["clusters"] < task["samples"] for task in tasks):
        notes.append(
            "± standard error; samples that share an image source are taken as one cluster"
        )
    else:
        notes.append("± standard error")
    if repeats := [task["repeats"] for task in tasks if "repeats" in task]:
        spread = fmean(each["acc"]["stdev"] for each in repeats)
        notes.append(
            f"means of {repeats[0]['count']} repeats; acc differs between them by a standard "
            f"deviation of {spread:.1f}"
        )
    if pairs := tasks[0].get("reasoning_tags"):
        shown = ", ".join(f"{start}...{end}" for start, end in pairs)
        notes.append(f"thinking is taken out of answers before they are graded: {shown}")
    else:
        notes.append("answers are graded with any thinking in them, as the published script does")
    if _is_open_ended(tasks[0]):
        notes.append("ps is a share here; best acc: some datasets accept no category as an answer")
    if any(str(task.get("protocol", "")).startswith("builtin") for task in tasks):
        notes.append("demo data and wording: these numbers compare to no others")
    return [f"  {note}" for note in notes]
