"""RunFiles: the files that one run of the harness left in a folder.

They are ``<run>_results.json`` and, with ``--log_samples``, ``<run>_samples_<task>.jsonl`` for each
task. ``<run>`` is a date and time. What ``proactivebench judge`` and ``rescore`` make of them they
write beside them, with ``_judged`` or ``_rescored`` at the end of the names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loguru import logger

from proactivebench_tasks.errors import DataError, LineError
from proactivebench_tasks.files import read_jsonl, written_whole
from proactivebench_tasks.results.scoring import texts_of
from proactivebench_tasks.results.summary import PART
from proactivebench_tasks.transcripts.record import RecordKind

_SAMPLES = "_samples_"
_RESULTS = "_results.json"

#: What the names of copies end with.
JUDGED, RESCORED = "_judged", "_rescored"

#: Parts of the results that are read here. Each is an object.
_PARTS = ("results", "groups", "group_subtasks", "higher_is_better", "n-samples", PART)


@dataclass(frozen=True)
class StoredRow:
    """A line of a samples file: one sample, as the harness wrote it."""

    path: Path
    line: int  # from 1
    fields: Mapping[str, Any]

    @property
    def place(self) -> str:
        return f"{self.path}, line {self.line}"

    @property
    def texts(self) -> list[Any]:
        """What is stored of the sample: the text of a record, or, with ``--repeats``, several. A
        damaged row may hold something else in their place."""
        return texts_of(self.fields.get("filtered_resps", "")) or [""]


@dataclass(frozen=True)
class SamplesFile:
    """The samples of one task, a row each. Rows are read one at a time: a file may be large.

    ``kind`` is that of its records, if somebody has looked.
    """

    task: str
    path: Path
    kind: RecordKind | None = None

    def rows(self, on_fault: Callable[[DataError], None]) -> Iterator[StoredRow]:
        """The rows. Of a line that is none, ``on_fault`` is told, and the others still come."""
        try:
            for line, fields in read_jsonl(self.path, on_fault):
                if isinstance(fields, dict):
                    yield StoredRow(self.path, line, fields)
                else:
                    reason = f"expected an object, found {fields!r:.80}"
                    on_fault(LineError(self.path, line, reason))
        except FileNotFoundError as error:
            on_fault(DataError(f"{self.path}: cannot be read: {error}"))
        except DataError as fault:  # of the whole file
            on_fault(fault)

    @contextmanager
    def copy(self, ending: str) -> Iterator[Callable[[Mapping[str, Any]], object]]:
        """Write a copy beside the file: what is yielded takes its rows, one at a time."""
        target = self.path.with_name(f"{self.path.stem}{ending}.jsonl")
        # Half a surrogate pair, as a cut answer may hold, is written as JSON's escape of it.
        with (
            written_whole(target) as draft,
            draft.open("w", encoding="utf-8", errors="backslashreplace") as lines,
        ):
            yield lambda row: lines.write(json.dumps(row, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class RunFiles:
    """The files of one run: they are in one folder, and their names begin alike."""

    folder: Path
    name: str  # what the names begin with
    samples: tuple[SamplesFile, ...] = ()

    def results_path(self, ending: str = "") -> Path:
        """Where the run's results are, or a copy of them with this ending. It may not exist."""
        return self.folder / f"{self.name}_results{ending}.json"

    def results(self) -> dict[str, Any]:
        """The results as the harness wrote them. Empty if there is no such file, and also, with a
        warning, if the file is damaged."""
        path = self.results_path()
        if not path.is_file():
            return {}
        try:
            found = json.loads(path.read_text("utf-8"))
            for part in _PARTS:
                if not isinstance(found.get(part, {}), dict):
                    raise TypeError(f"{part} is {found[part]!r:.60}")
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            logger.warning(f"{path} is damaged ({error}); the results are made without it")
            return {}
        return dict(found)

    def write_results(self, ending: str, results: Mapping[str, Any]) -> Path:
        """Write results in the harness's format; returns their path."""
        path = self.results_path(ending)
        with written_whole(path) as draft:
            draft.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", "utf-8")
        return path


def find(paths: Iterable[Path]) -> list[RunFiles]:
    """The runs that have samples, below folders and of single files. Copies are left out.

    ``DataError`` for a path that is none of these.
    """
    runs: dict[tuple[Path, str], dict[Path, SamplesFile]] = {}
    for given in paths:
        for path in _samples_files(given):
            name, _, task = path.stem.partition(_SAMPLES)
            runs.setdefault((path.parent, name), {})[path] = SamplesFile(task, path)
    return [RunFiles(folder, name, tuple(files.values())) for (folder, name), files in runs.items()]


def _samples_files(path: Path) -> Sequence[Path]:
    if path.is_dir():
        return sorted(filter(_is_samples, path.rglob("*.jsonl")))
    if not path.is_file():
        raise DataError(f"{path} does not exist; expected a folder that lmms-eval wrote results to")
    if _is_samples(path):
        return [path]
    run = path.name.removesuffix(_RESULTS)
    if run != path.name:
        beside = path.parent.glob("*.jsonl")
        return sorted(p for p in beside if p.name.startswith(f"{run}{_SAMPLES}") and _is_samples(p))
    raise DataError(
        f"{path} is no file that lmms-eval writes of a run; expected <run>_samples_<task>.jsonl, "
        "<run>_results.json, or a folder with such files"
    )


def _is_samples(path: Path) -> bool:
    return (
        _SAMPLES in path.stem
        and path.suffix == ".jsonl"
        and not path.stem.endswith((JUDGED, RESCORED))
    )
