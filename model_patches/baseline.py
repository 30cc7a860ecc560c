"""Makes ``--baseline`` compare our tasks with the same tasks of the baseline run.

lmms-eval reads the one samples file that is named, whatever task it is evaluating, and pairs
samples by position. So a file of one task would be compared with all tasks of a group; and if
samples are not logged nothing happens, without a word. Needed since lmms-eval 0.7.0. This can go
once ``load_baseline`` looks for the task's own file.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.model_patches import place
from proactivebench_tasks.model_patches.evaluation import last


def apply() -> None:
    from lmms_eval import evaluator

    original = place.find(evaluator, "load_baseline")
    if getattr(original, "by_task", False):
        return

    @functools.wraps(original)
    def load_baseline(baseline_arg: str, task_name: str) -> Any:
        if task_name in last().tasks and (path := Path(baseline_arg)).is_file():
            if not last().logs_samples:
                raise DataError("--baseline needs --log_samples, or there is nothing to compare")
            baseline_arg = str(_file_of(path, task_name))
        return original(baseline_arg, task_name)

    load_baseline.by_task = True  # type: ignore[attr-defined]
    evaluator.load_baseline = load_baseline


def _file_of(path: Path, task: str) -> Path:
    """The samples file of a task in the run that a samples file is of."""
    run, is_samples, _ = path.name.partition("_samples_")
    own = path.with_name(f"{run}_samples_{task}.jsonl")
    if not is_samples:
        raise DataError(f"{path} is no samples file (<run>_samples_<task>.jsonl) of lmms-eval")
    if not own.is_file():
        raise DataError(f"the baseline run has no samples of {task}: {own} does not exist")
    return own
