"""RunFiles: the files that one run of the harness left in a folder.

They are ``<run>_results.json`` and, with ``--log_samples``, ``<run>_samples_<task>.jsonl`` for each
task. ``<run>`` is a date and time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loguru import logger

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import read_jsonl, written_whole


@dataclass
class SamplesFile:
    """The samples of one task, a row each."""

    task: str
    path: Path
    rows: list[dict[str, Any]]  # as the harness wrote them

    def responses(self) -> Iterator[str]:
        """The response in each row. Of a task with repeats a row holds several; the metrics are
        those of the first, so the first it is."""
        for row in self.rows:
            found = row.get("filtered_resps", "")
            yield str(found[0] if isinstance(found, list) and found else found)

    def write(self, path: Path) -> None:
        """Write the rows, as they are now, to another file."""
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)
        with written_whole(path) as draft:
            draft.write_text(lines, encoding="utf-8")


@dataclass
class RunFiles:
    """The files of one run: they are in one folder, and their names begin alike."""

    folder: Path
    name: str  # what the names begin with
    samples: list[SamplesFile] = field(default_factory=list)

    def beside(self, ending: str) -> Path:
        """The path of the run's file with this ending; the file may not exist."""
        return self.folder / f"{self.name}{ending}"

    def results(self) -> dict[str, Any]:
        """The results as the harness wrote them. Empty if there is no such file, and also, with a
        warning, if the file is damaged."""
        path = self.beside("_results.json")
        try:
            return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}
        except (ValueError, TypeError) as error:
            logger.warning(f"{path} is damaged ({error}); the results are made without it")
            return {}

    def write_results(self, path: Path, results: dict[str, Any]) -> None:
        """Write results in the harness's format."""
        with written_whole(path) as draft:
            draft.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", "utf-8")


def find(folder: Path) -> tuple[list[RunFiles], list[DataError]]:
    """The runs below a folder that have samples, and what is wrong with files that cannot be read.

    Such files are left out, and logged. So are the copies that ``proactivebench judge`` wrote.
    """
    runs: dict[tuple[Path, str], RunFiles] = {}
    faults: list[DataError] = []
    for path in sorted(folder.rglob("*_samples_*.jsonl")):
        name, _, task = path.stem.partition("_samples_")
        if task.endswith("_judged"):
            continue
        try:
            rows = list(_rows(path))
        except DataError as error:
            logger.error(f"left out: {error}")
            faults.append(error)
            continue
        run = runs.setdefault((path.parent, name), RunFiles(path.parent, name))
        run.samples.append(SamplesFile(task, path, rows))
    return list(runs.values()), faults


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line, row in read_jsonl(path):
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {line}: expected an object, found {row!r:.80}")
        yield row
