"""Finished runs to test with: what the harness leaves in a folder, of tasks on the demo data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
from lmms_eval import evaluator
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker

from fakes.probe import task_manager
from proactivebench_tasks.baselines.model import Baseline

#: What the names of all files of a run begin with.
RUN = "20260101_120000"

_PLAIN = ("proactivedemo", "proactivedemo_oeg_vsod")
_SINGLE = ("proactivedemo_mcqa_rod", "proactivedemo_mcqa_vsod", "proactivedemo_oeg_vsod")


class _Varied(Baseline):
    """Answers otherwise each time that it is asked the same."""

    def generate_until(self, requests: list[Any]) -> list[str]:
        self.seed += 1
        return super().generate_until(requests)


class _Failing(Baseline):
    """Cannot answer about one sample in five."""

    def generate_until(self, requests: list[Any]) -> list[str]:
        if any(request.args[3] % 5 == 2 for request in requests):
            raise ValueError("no answer")
        return super().generate_until(requests)


def play(folder: Path) -> Mapping[str, Path]:
    """Play each kind of run; returns their folders."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PROACTIVEBENCH_CACHE", str(folder / "cache"))
        patched.setattr(datasets.config, "HF_DATASETS_CACHE", str(folder / "hf"))
        return {
            "plain": _run(folder / "plain", Baseline("random", seed=2), *_PLAIN),
            "predict_only": _run(
                folder / "predict_only", Baseline("random", seed=2), *_PLAIN, predict_only=True
            ),
            "repeats": _run(
                folder / "repeats",
                _Varied("random"),
                *_SINGLE,
                repeats=3,
                gen_kwargs="do_sample=True,temperature=1",
            ),
            "failed": _run(folder / "failed", _Failing("random"), *_SINGLE),
        }


def _run(folder: Path, model: Baseline, *tasks: str, **options: Any) -> Path:
    results = evaluator.simple_evaluate(
        model=model,
        tasks=list(tasks),
        task_manager=task_manager(),
        cli_args=SimpleNamespace(process_with_media=False, agentic_trace_mode="basic"),
        **options,
    )
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.log_experiment_args("", "", None, None, None)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples, datetime_str=RUN)
    for task, rows in samples.items():
        tracker.save_results_samples(task_name=task, samples=rows)
    return next(folder.rglob("*_results.json")).parent


def without_times(value: Any) -> Any:
    """A value of the results without what differs from one run to the next."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in ("seconds", "costs")}
    return value
