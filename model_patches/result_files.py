"""Gives every run files of its own.

lmms-eval names a run's files by the second in which it started, and models without a name share a
folder. So two runs that start together overwrite each other's results, and append their samples to
one file. Needed since lmms-eval 0.7.0. This can go once its file names tell runs apart.
"""

from __future__ import annotations

import functools
import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any

from proactivebench_tasks.model_patches import place
from proactivebench_tasks.model_patches.evaluation import last


def apply() -> None:
    """Let a run with our tasks take the next free name, by making its results file first."""
    tracker = place.find("lmms_eval.loggers.evaluation_tracker", "EvaluationTracker")
    original = place.find(tracker, "save_results_aggregated")
    if getattr(original, "takes_free_name", False):
        return

    @functools.wraps(original)
    def save_results_aggregated(self: Any, results: Any, samples: Any, datetime_str: str) -> Any:
        if not (self.output_path and last().tasks):
            return original(self, results=results, samples=samples, datetime_str=datetime_str)
        folder = Path(self.output_path, self.general_config_tracker.model_name_sanitized)
        with suppress(OSError):  # a folder that cannot be written to: the original says so
            datetime_str = _take_free_name(folder, datetime_str)
        try:
            return original(self, results=results, samples=samples, datetime_str=datetime_str)
        finally:
            _drop_if_empty(_results_file(folder, datetime_str))

    save_results_aggregated.takes_free_name = True  # type: ignore[attr-defined]
    tracker.save_results_aggregated = save_results_aggregated


def _take_free_name(folder: Path, name: str) -> str:
    """The name, or the name with the first number that no other run has taken."""
    folder.mkdir(parents=True, exist_ok=True)
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    for each in itertools.chain([name], numbered):
        with suppress(FileExistsError):
            _results_file(folder, each).touch(exist_ok=False)
            break
    return each


def _results_file(folder: Path, name: str) -> Path:
    return folder / f"{name.replace(':', '-')}_results.json"


def _drop_if_empty(file: Path) -> None:
    """Leave no empty results file where lmms-eval could not write its own."""
    with suppress(OSError):
        if file.stat().st_size == 0:
            file.unlink()
