"""Rescore: the numbers of a finished run, made again from the answers that it stored.

No model is needed, and of most runs no data: records hold their samples. The run's own files stay
as they are; what is made is written beside them, in copies (see ``copies``).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from loguru import logger

from proactivebench_tasks.errors import DataError, RecordError
from proactivebench_tasks.results.copies import RescoreOutcome, write_copies
from proactivebench_tasks.results.run_files import RESCORED, RunFiles, SamplesFile, find
from proactivebench_tasks.transcripts import reader
from proactivebench_tasks.transcripts.record import RecordKind


def runs(paths: Iterable[Path], *kinds: RecordKind) -> list[RunFiles]:
    """The runs below folders, or of files, that hold records of these kinds; of each run the files
    that do. ``DataError`` if there are none."""
    paths = list(paths)
    faults: list[DataError] = []
    found = []
    for run in find(paths):
        known = [replace(file, kind=_kind(file, faults)) for file in run.samples]
        if ours := tuple(file for file in known if file.kind in kinds):
            found.append(replace(run, samples=ours))
    for fault in faults:
        logger.error(f"left out: {fault}")
    if not found:
        raise next(iter(faults), None) or DataError(
            f"{', '.join(map(str, paths))}: no *_samples_*.jsonl with {' or '.join(kinds)} answers "
            "in it; they are written by `lmms-eval --log_samples` or `--predict_only` with "
            "--output_path"
        )
    return found


def rescore(run: RunFiles) -> RescoreOutcome:
    """Make the numbers of a run again, from all of its files or some of them."""
    return write_copies(run, RESCORED, lambda row: row.texts)


def _kind(file: SamplesFile, faults: list[DataError]) -> RecordKind | None:
    """The kind of the first record in a file; ``None`` if there is none; then ``faults`` grow."""
    damaged: list[DataError] = []
    for row in file.rows(damaged.append):
        for text in row.texts:
            with suppress(RecordError):
                return reader.read(text).kind
    faults += damaged
    return None
