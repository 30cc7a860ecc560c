"""Lets lmms-eval's power analysis take our groups.

lmms-eval says nothing of a group that it is asked about: it knows sizes of single tasks alone. Of
our groups each task is told. Needed since lmms-eval 0.7.1. A release without the module, such as
0.7.0, takes single tasks alone; no run is wrong for that, so it is no error. This can go once
groups are looked into.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from proactivebench_tasks.model_patches import evaluation, place

_MODULE, _NAME = "lmms_eval.cli.power_utils", "collect_task_sizes"


def apply(folder: Path) -> None:
    """Look into the groups whose YAML is below ``folder``."""
    if importlib.util.find_spec(_MODULE) is None:
        return
    original = place.find(_MODULE, _NAME)
    if getattr(original, "looks_into", None) == folder:
        return

    @functools.wraps(original)
    def collect_task_sizes(
        tasks_arg: str | None, *, verbosity: str = "WARNING", include_path: Any = None
    ) -> dict[str, int]:
        sizes: dict[str, int] = original(tasks_arg, verbosity=verbosity, include_path=include_path)
        return sizes | _sizes_in_groups(tasks_arg or "", folder, verbosity, include_path)

    collect_task_sizes.looks_into = folder  # type: ignore[attr-defined]
    for module in list(sys.modules.values()):  # the command has imported the function by its name
        if isinstance(module, ModuleType) and vars(module).get(_NAME) is original:
            setattr(module, _NAME, collect_task_sizes)


def _sizes_in_groups(names: str, folder: Path, verbosity: str, include: Any) -> dict[str, int]:
    from lmms_eval.tasks import TaskManager, get_task_dict

    manager = TaskManager(verbosity, include_path=include)
    found = manager.match_tasks([name.strip() for name in names.split(",")])
    ours = [name for name in found if _is_group_below(manager.task_index[name], folder)]
    return {
        name: len(task.eval_docs)
        for group in ours
        for name, task in evaluation.leaves(get_task_dict([group], manager))
    }


def _is_group_below(entry: Any, folder: Path) -> bool:
    return entry["type"] == "group" and Path(entry["yaml_path"]).is_relative_to(folder)
