"""Knows what lmms-eval is evaluating, for the other patches, and adds our summary to its results.

lmms-eval hands our runner requests alone, and its results have means alone. What else is needed is
noted while its ``evaluate`` runs: the command line and the tasks, and the values of the single
samples, which ``sample_values`` puts here. The other patches read it by ``current`` and ``last``.
Needed since lmms-eval 0.7.0. This can go once the loop of multi-turn tasks is given the task, and
results have a place for a summary of a task's own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from proactivebench_tasks.model_patches import place, quiet
from proactivebench_tasks.results.summary import PART, TaskValues, group_summaries, task_summary


@dataclass
class Evaluation:
    """``tasks`` are the harness's task objects, ours alone, by name."""

    cli_args: Any = None
    logs_samples: bool = True
    tasks: Mapping[str, Any] = field(default_factory=dict)
    values: dict[str, TaskValues] = field(default_factory=dict)


_current: ContextVar[Evaluation] = ContextVar("evaluation")
_last = Evaluation()


def current() -> Evaluation:
    """What is being evaluated; nothing if the harness's loop is called on its own."""
    return _current.get(Evaluation())


def last() -> Evaluation:
    """What was evaluated last in this process."""
    return _last


def apply(ours: Callable[..., str]) -> None:
    """Note what is evaluated, and summarise the tasks whose ``doc_to_text`` is ``ours``."""
    from lmms_eval import evaluator

    original = place.find(evaluator, "evaluate")
    if getattr(original, "notes", None) is ours:
        return
    signature = inspect.signature(original)

    @functools.wraps(original)
    def evaluate(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        tasks = dict(leaves(given["task_dict"]))
        our_tasks = {name: task for name, task in tasks.items() if _is(task, ours)}
        noted = Evaluation(given.get("cli_args"), given.get("log_samples", True), our_tasks)
        with _noting(noted) as evaluation, _quiet(len(our_tasks) == len(tasks)):
            results = original(*args, **kwargs)
        if results is not None and evaluation.values:
            results[PART] = _summary(evaluation, results)
        return results

    evaluate.notes = ours  # type: ignore[attr-defined]
    evaluator.evaluate = evaluate


@contextmanager
def _noting(evaluation: Evaluation) -> Iterator[Evaluation]:
    global _last
    _last = evaluation
    token = _current.set(evaluation)
    try:
        yield evaluation
    finally:
        _current.reset(token)


def _quiet(all_are_ours: bool) -> AbstractContextManager[None]:
    return quiet.only_ours(quiet.TASKS) if all_are_ours else nullcontext()


def leaves(found: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """The tasks in the harness's tree of groups, with their names."""
    for name, each in found.items():
        if isinstance(each, Mapping):
            yield from leaves(each)
        elif isinstance(each, tuple):  # of a group's name and a task
            yield str(name), each[1]
        else:
            yield str(name), each


def _is(task: Any, ours: Callable[..., str]) -> bool:
    return getattr(getattr(task, "config", None), "doc_to_text", None) is ours


def _summary(evaluation: Evaluation, results: Mapping[str, Any]) -> dict[str, Any]:
    tasks = {
        name: task_summary(values, len(evaluation.tasks[name].eval_docs))
        for name, values in evaluation.values.items()
        if values.details
    }
    return {"tasks": tasks, "groups": group_summaries(tasks, results.get("group_subtasks", {}))}
