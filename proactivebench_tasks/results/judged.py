"""JudgedRun: the open-ended answers of a finished run, judged afterwards.

The run's own files stay as they are. Judged copies are written beside them:
``<run>_samples_<task>_judged.jsonl`` for each task, and ``<run>_results_judged.json``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from lmms_eval.api.metrics import mean_stderr, pooled_sample_stderr

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.judge import stage
from proactivebench_tasks.judge.base import Judge
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.judge.reply_cache import ReplyCache
from proactivebench_tasks.results import metrics
from proactivebench_tasks.results.run_files import RunFiles, SamplesFile, find
from proactivebench_tasks.transcripts.open_ended import OpenEnded

_HIGHER_IS_BETTER = {name: name not in ("unscored", "failed") for name in metrics.open_ended(None)}


@dataclass
class JudgedSamples:
    """The samples of one open-ended task: the file, and the record that each of its rows holds.

    A row whose text is empty or damaged holds no record. Its sample counts as failed.
    """

    file: SamplesFile
    records: list[OpenEnded | None]
    missing: int = 0  # answers that the last `judge` got no reply to

    def judge(self, judge: Judge, cache: ReplyCache, again: bool) -> None:
        """Judge the answers that this judge has not judged yet, or all of them if ``again`` is set.

        The file's rows get the judged records and the metrics; nothing is written.
        """
        due = {
            i: record
            for i, record in enumerate(self.records)
            if record is not None and record.error is None
        }
        for known in due.values():
            _keep(known, judge, cache)
        judged = stage.run(list(due.values()), judge, cache, again)
        self.missing = sum(record.judge.raw is None for record in judged)
        for i, record in zip(due, judged, strict=True):
            self.records[i] = record
            self.file.rows[i]["filtered_resps"] = record.to_json()
        for row, each in zip(self.file.rows, self.records, strict=True):
            row.update(metrics.open_ended(each))

    def results(self) -> dict[str, Any]:
        """The task's metrics and their standard errors, under the harness's names."""
        found: dict[str, Any] = {}
        for name in metrics.open_ended(None):
            values = [row[name] for row in self.file.rows]
            error = mean_stderr(values) if len(values) > 1 else "N/A"
            found |= {
                f"{name},none": fmean(values),
                f"{name}_stderr,none": error,
                f"{name}_stderr_clt,none": error,
            }
        return found


@dataclass
class JudgedRun:
    """The open-ended tasks among the files of one run."""

    files: RunFiles
    samples: list[JudgedSamples] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The kind of judge that the run was made with; ``later`` if it left judging for later."""
        records = (record for samples in self.samples for record in samples.records if record)
        return next(records).judge.kind

    @property
    def missing(self) -> int:
        """The number of answers that the last ``judge`` got no reply to."""
        return sum(samples.missing for samples in self.samples)

    @property
    def path(self) -> Path:
        """Where the judged results are written."""
        return self.files.beside("_results_judged.json")

    def judge(self, judge: Judge, cache: ReplyCache, again: bool = False) -> dict[str, Any]:
        """Judge every task and write the judged files; returns the results as written."""
        for samples in self.samples:
            samples.judge(judge, cache, again)
            samples.file.write(
                samples.file.path.with_name(f"{samples.file.path.stem}_judged.jsonl")
            )
        results = self._results()
        results["judge"] = {**judge.identity.to_dict(), "comparable": judge.comparable}
        self.files.write_results(self.path, results)
        return results

    def _results(self) -> dict[str, Any]:
        """The results that the harness wrote, with the metrics of the judged tasks put in.

        A group gets its mean, too, if all of its tasks were judged.
        """
        whole = self.files.results()
        for part in ("results", "higher_is_better", "n-shot"):
            whole.setdefault(part, {})
        found = {samples.file.task: samples.results() for samples in self.samples}
        sizes = {samples.file.task: len(samples.file.rows) for samples in self.samples}
        for group, tasks in whole.get("group_subtasks", {}).items():
            if tasks and all(task in sizes for task in tasks):
                found[group] = _mean([found[task] for task in tasks], [sizes[t] for t in tasks])
                whole.setdefault("groups", {})[group] = {"alias": group, **found[group]}
        for name, figures in found.items():
            alias = whole["results"].get(name, {}).get("alias", name)
            whole["results"][name] = {"alias": alias, **figures}
            whole["higher_is_better"][name] = _HIGHER_IS_BETTER
        return whole


def open_ended_runs(folder: Path) -> list[JudgedRun]:
    """The runs below a folder that have open-ended samples; ``DataError`` if there are none."""
    runs = []
    found, faults = find(folder)
    for files in found:
        run = JudgedRun(files)
        for file in files.samples:
            records = [_record(response) for response in file.responses()]
            if any(record is not None for record in records):
                run.samples.append(JudgedSamples(file, records))
        if run.samples:
            runs.append(run)
    if not runs:
        raise next(iter(faults), None) or DataError(
            f"{folder}: no *_samples_*.jsonl with open-ended answers in it; they are written by "
            "`lmms-eval --log_samples` or `--predict_only` with --output_path"
        )
    return runs


def _record(response: str) -> OpenEnded | None:
    """The record in a response; ``None`` if the response is of another kind of task, or damaged."""
    try:
        return OpenEnded.from_json(response)
    except ValueError:
        return None


def _keep(record: OpenEnded, judge: Judge, cache: ReplyCache) -> None:
    """Put a reply of this judge that is in the file into the cache, if the cache has none.

    The file may come from another machine, whose cache held the reply.
    """
    if record.judge.raw is not None and record.judge.identity == judge.identity:
        cache.put(Question.of(record).key(judge.identity), record.judge.raw)


def _mean(results: list[dict[str, Any]], sizes: list[int]) -> dict[str, Any]:
    """The metrics of a group: the plain mean over its tasks. ``sizes`` are their sample counts."""
    mean: dict[str, Any] = {}
    for name in metrics.open_ended(None):
        errors = [found[f"{name}_stderr,none"] for found in results]
        known = "N/A" not in errors
        mean[f"{name},none"] = fmean(found[f"{name},none"] for found in results)
        mean[f"{name}_stderr,none"] = pooled_sample_stderr(errors, sizes) if known else "N/A"
    return mean
