"""Gives every run files of its own.

lmms-eval names a run's files by the second in which it started, and models without a name share a
folder. So two runs that start together overwrite each other's results, and append their samples to
one file. Needed by lmms-eval 0.7.0 to 0.7.3. This can go once its file names tell runs apart.
"""

from __future__ import annotations

import functools
import itertools
import os
from pathlib import Path
from typing import Any

from proactivebench_tasks.model_patches import place
from proactivebench_tasks.results.summary import PART


def apply() -> None:
    """Let a run with our tasks take the next free name, by making its results file first."""
    tracker = place.find("lmms_eval.loggers.evaluation_tracker", "EvaluationTracker")
    original = place.find(tracker, "save_results_aggregated")
    if getattr(original, "takes_free_name", False):
        return

    @functools.wraps(original)
    def save_results_aggregated(self: Any, results: Any, samples: Any, datetime_str: str) -> Any:
        if self.output_path and PART in results:
            folder = Path(self.output_path, self.general_config_tracker.model_name_sanitized)
            datetime_str = _free(folder, datetime_str)
        return original(self, results=results, samples=samples, datetime_str=datetime_str)

    save_results_aggregated.takes_free_name = True  # type: ignore[attr-defined]
    tracker.save_results_aggregated = save_results_aggregated


def _free(folder: Path, name: str) -> str:
    """The name, or the name with the first number that no other run has taken."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        taken = name if number == 1 else f"{name}-{number}"
        file = folder / f"{taken.replace(':', '-')}_results.json"
        try:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            continue
        return taken
    raise AssertionError("there is always a next number")
