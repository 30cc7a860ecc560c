"""FinishedRun: the files that the harness left of a run, judged after the fact.

The harness writes ``<run>_samples_<task>.jsonl`` and ``<run>_results.json``. They stay as they are;
judged copies are put beside them, ``..._judged.jsonl`` and ``<run>_results_judged.json``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, TypeGuard

from lmms_eval.api.metrics import mean_stderr, pooled_sample_stderr
from loguru import logger

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.judge import stage
from proactivebench_tasks.judge.base import Judge
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.judge.reply_cache import VerdictCache
from proactivebench_tasks.judge.stage import Record
from proactivebench_tasks.results import metrics
from proactivebench_tasks.transcripts.transcript import dumps

_HIGHER_IS_BETTER = {name: name not in ("unscored", "failed") for name in metrics.open_ended(None)}


@dataclass
class Samples:
    """The open-ended samples of one task: the file's rows, and the record in each, if any."""

    task: str
    path: Path
    rows: list[dict[str, Any]]
    records: list[Record | None]
    missing: int = 0  # answers that got no reply

    def judge(self, judge: Judge, cache: VerdictCache, again: bool) -> None:
        """Judge what this judge has not judged yet, or, ``again``, everything."""
        due = {i: record for i, record in enumerate(self.records) if _answered(record)}
        for known in due.values():
            _keep(known, judge, cache)
        judged = stage.run(list(due.values()), judge, cache, again)
        self.missing = sum(record["judge"]["raw"] is None for record in judged)
        for i, said in zip(due, judged, strict=True):
            self.records[i] = said
            self.rows[i]["filtered_resps"] = dumps(said)
        for row, record in zip(self.rows, self.records, strict=True):
            row.update(metrics.open_ended(record))

    def results(self) -> dict[str, Any]:
        """The task's metrics and their standard errors, under the harness's names."""
        found: dict[str, Any] = {}
        for name in metrics.open_ended(None):
            values = [row[name] for row in self.rows]
            error = mean_stderr(values) if len(values) > 1 else "N/A"
            found |= {
                f"{name},none": fmean(values),
                f"{name}_stderr,none": error,
                f"{name}_stderr_clt,none": error,
            }
        return found

    def write(self) -> Path:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)
        return _write(self.path.with_name(f"{self.path.stem}_judged.jsonl"), lines)


@dataclass
class FinishedRun:
    """What one run left in a folder. ``name`` is what its files' names begin with."""

    folder: Path
    name: str
    samples: list[Samples] = field(default_factory=list)

    def judge(self, judge: Judge, cache: VerdictCache, again: bool = False) -> dict[str, Any]:
        """Judge every task and write the judged files; returns the results as written."""
        for samples in self.samples:
            samples.judge(judge, cache, again)
            samples.write()
        results = self._results()
        results["judge"] = {**judge.identity, "comparable": judge.comparable}
        text = json.dumps(results, indent=2, ensure_ascii=False) + "\n"
        _write(self.folder / f"{self.name}_results_judged.json", text)
        return results

    @property
    def kind(self) -> str:
        """The kind of judge that the run asked for."""
        records = (record for samples in self.samples for record in samples.records if record)
        return str(next(records)["judge"]["kind"])

    @property
    def missing(self) -> int:
        """Answers that got no reply."""
        return sum(samples.missing for samples in self.samples)

    def _results(self) -> dict[str, Any]:
        """The run's results with the metrics of the judged tasks, and of groups of these alone."""
        path = self.folder / f"{self.name}_results.json"
        whole: dict[str, Any] = {}
        try:
            whole = dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}
        except (ValueError, TypeError) as error:
            logger.warning(f"{path} is damaged ({error}); the judged results are made without it")
        for part in ("results", "higher_is_better", "n-shot"):
            whole.setdefault(part, {})
        found = {samples.task: samples.results() for samples in self.samples}
        sizes = {samples.task: len(samples.rows) for samples in self.samples}
        for group, tasks in whole.get("group_subtasks", {}).items():
            if tasks and all(task in sizes for task in tasks):
                found[group] = _mean([found[task] for task in tasks], [sizes[t] for t in tasks])
                whole.setdefault("groups", {})[group] = {"alias": group, **found[group]}
        for name, figures in found.items():
            alias = whole["results"].get(name, {}).get("alias", name)
            whole["results"][name] = {"alias": alias, **figures}
            whole["higher_is_better"][name] = _HIGHER_IS_BETTER
        return whole


def find(folder: Path) -> list[FinishedRun]:
    """The runs below a folder that have open-ended samples; ``DataError`` if there are none."""
    runs: dict[tuple[Path, str], FinishedRun] = {}
    broken: DataError | None = None
    for path in sorted(folder.rglob("*_samples_*.jsonl")):
        name, _, task = path.stem.partition("_samples_")
        if task.endswith("_judged"):
            continue
        try:
            rows = list(_rows(path))
        except DataError as error:
            logger.error(f"left out: {error}")
            broken = broken or error
            continue
        records = [stage.open_ended(_response(row)) for row in rows]
        if any(records):
            run = runs.setdefault((path.parent, name), FinishedRun(path.parent, name))
            run.samples.append(Samples(task, path, rows, records))
    if not runs:
        raise broken or DataError(
            f"{folder}: no *_samples_*.jsonl with open-ended answers in it; they are written by "
            "`lmms-eval --log_samples` or `--predict_only` with --output_path"
        )
    return list(runs.values())


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, text in enumerate(lines, start=1):
            try:
                row = json.loads(text)
            except ValueError as error:
                raise DataError(f"{path}, line {number}: not JSON: {error}") from error
            if not isinstance(row, dict):
                raise DataError(f"{path}, line {number}: expected an object, found {text!r:.80}")
            yield row


def _response(row: Mapping[str, Any]) -> str:
    """The response that counts; of repeats it is the first."""
    found = row.get("filtered_resps", "")
    return str(found[0] if isinstance(found, list) and found else found)


def _answered(record: Record | None) -> TypeGuard[Record]:
    return record is not None and record["error"] is None


def _keep(record: Record, judge: Judge, cache: VerdictCache) -> None:
    """Let the cache know what the file knows already: it may come from another machine."""
    said = stage.said_by(record)
    if said == judge.identity and record["judge"]["raw"] is not None:
        cache.put(Question.of(record).key(judge.identity), record["judge"]["raw"])


def _mean(results: list[dict[str, Any]], sizes: list[int]) -> dict[str, Any]:
    """The plain mean over tasks."""
    mean: dict[str, Any] = {}
    for name in metrics.open_ended(None):
        errors = [found[f"{name}_stderr,none"] for found in results]
        known = "N/A" not in errors
        mean[f"{name},none"] = fmean(found[f"{name},none"] for found in results)
        mean[f"{name}_stderr,none"] = pooled_sample_stderr(errors, sizes) if known else "N/A"
    return mean


def _write(path: Path, text: str) -> Path:
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)  # whole or not at all
    return path
