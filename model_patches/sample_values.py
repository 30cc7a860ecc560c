"""Keeps the values of single samples, and mends the errors that lmms-eval makes of them.

lmms-eval gives every group the pooled error of a mean over samples, though a plain mean over tasks
(``weight_by_size: false``) has another; it clusters only metrics of a form of its own; and it shows
fields that are no metrics as empty ones. All of this for our tasks and groups alone. Needed since
lmms-eval 0.7.0. The first can go once ``consolidate_group_results`` heeds ``weight_by_size`` for
errors, the others once a task can say which of its samples belong together and which of its fields
are metrics.
"""

from __future__ import annotations

import functools
from typing import Any

from proactivebench_tasks.model_patches import place
from proactivebench_tasks.model_patches.evaluation import current
from proactivebench_tasks.results.scoring import DETAILS
from proactivebench_tasks.results.statistics import Errors
from proactivebench_tasks.results.summary import TaskValues, harness_errors


def apply() -> None:
    from lmms_eval import evaluator

    tasks = place.find(evaluator, "consolidate_results")
    groups = place.find(evaluator, "consolidate_group_results")
    if getattr(tasks, "keeps_values", False):
        return

    @functools.wraps(tasks)
    def consolidate_results(eval_tasks: Any) -> Any:
        consolidated = tasks(eval_tasks)
        for output in eval_tasks:
            if output.task_name in current().tasks:
                _amend(output, consolidated[0][output.task_name])
        return consolidated

    @functools.wraps(groups)
    def consolidate_group_results(*args: Any, **kwargs: Any) -> Any:
        consolidated = groups(*args, **kwargs)
        results, _, _, members = consolidated
        values = current().values
        for group, names in members.items():
            if names and set(names) <= values.keys():
                _amend_group(results[group], [values[name] for name in names])
        return consolidated

    consolidate_results.keeps_values = True  # type: ignore[attr-defined]
    evaluator.consolidate_results = consolidate_results
    evaluator.consolidate_group_results = consolidate_group_results


def _amend(output: Any, results: dict[str, Any]) -> None:
    """Keep a task's values; give its metrics their errors; drop what is no metric."""
    listed = set(output.task.aggregation())
    found: dict[str, dict[str, Any]] = {}  # by filter, of which our tasks have one
    for (name, filter_name), values in output.sample_metrics.items():
        found.setdefault(filter_name, {})[name] = values
    for filter_name, columns in found.items():
        if DETAILS not in columns:  # with --predict_only nothing is scored
            continue
        values = TaskValues(
            {name: columns[name] for name in columns if name in listed}, columns[DETAILS]
        )
        current().values[output.task_name] = values
        for name in columns:
            if name not in listed:
                for key in (name, f"{name}_stderr"):
                    results.pop(f"{key},{filter_name}", None)
                continue
            results |= harness_errors(name, values.errors(name), filter_name)


def _amend_group(group: dict[str, Any], tasks: list[TaskValues]) -> None:
    """Give a group's metrics the errors of a plain mean over its tasks."""
    for key in [key for key in group if "," in key and "_stderr" not in key]:
        metric, _, filter_name = key.partition(",")
        if all(metric in task.listed for task in tasks):
            errors = Errors.of_mean([task.errors(metric) for task in tasks])
            group |= harness_errors(metric, errors, filter_name)
