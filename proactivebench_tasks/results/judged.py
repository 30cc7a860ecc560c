"""JudgedRun: the open-ended answers of a finished run, judged afterwards.

The run's own files stay as they are. Judged copies are written beside them, as by ``rescore``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proactivebench_tasks.errors import ProtocolError, RecordError
from proactivebench_tasks.judge import stage
from proactivebench_tasks.judge.base import Judge
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.judge.reply_cache import ReplyCache
from proactivebench_tasks.results import rescore
from proactivebench_tasks.results.copies import RescoreOutcome, write_copies
from proactivebench_tasks.results.run_files import JUDGED, RunFiles, SamplesFile, StoredRow
from proactivebench_tasks.transcripts.open_ended import OpenEnded

#: Where a text stands in its file: the line, and its position among the line's texts.
Place = tuple[int, int]


@dataclass
class JudgedRun:
    """The open-ended samples files of one run, and the answers in them. A sample that failed has no
    answer, and neither has a damaged row."""

    files: RunFiles
    records: dict[Path, dict[Place, OpenEnded]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind of judge that the run was made with; ``later`` if it left judging for later."""
        return next((r.judge.kind for each in self.records.values() for r in each.values()), "")

    @property
    def missing(self) -> int:
        """The number of answers that the last ``judge`` got no reply to."""
        judged = (record for each in self.records.values() for record in each.values())
        return sum(record.judge.raw is None for record in judged)

    def judge(
        self, judge: Judge, cache: ReplyCache, again: bool = False, official: bool = False
    ) -> RescoreOutcome:
        """Judge the answers that this judge has not judged yet, or all of them if ``again`` is set,
        and write the judged copies."""
        for path, records in self.records.items():
            for known in records.values():
                _keep(known, judge, cache)
            judged = stage.run(list(records.values()), judge, cache, again, official)
            self.records[path] = dict(zip(records, judged, strict=True))
        about = {**judge.identity.to_dict(), "comparable": judge.comparable}
        if official:
            about["official_parsing"] = True
        return write_copies(self.files, JUDGED, self._texts, {"judge": about})

    def _texts(self, row: StoredRow) -> list[Any]:
        judged = self.records[row.path]
        return [
            judged[row.line, i].to_json() if (row.line, i) in judged else text
            for i, text in enumerate(row.texts)
        ]


def open_ended_runs(folder: Path) -> list[JudgedRun]:
    """The runs below a folder that have open-ended samples; ``DataError`` if there are none."""
    return [
        JudgedRun(files, {file.path: dict(_answers(file)) for file in files.samples})
        for files in rescore.runs([folder], OpenEnded.KIND)
    ]


def _answers(file: SamplesFile) -> Iterator[tuple[Place, OpenEnded]]:
    for row in file.rows(on_fault=lambda fault: None):  # `write_copies` tells of faults
        for i, text in enumerate(row.texts):
            with suppress(RecordError):
                record = OpenEnded.from_json(text)
                if record.error is None:
                    yield (row.line, i), record


def _keep(record: OpenEnded, judge: Judge, cache: ReplyCache) -> None:
    """Put a reply of this judge that is in the file into the cache, if the cache has none.

    The file may come from another machine, whose cache held the reply.
    """
    if record.judge.raw is not None and record.judge.identity == judge.identity:
        with suppress(ProtocolError):  # of which `stage.run` tells
            key = Question.of(record).key(judge.identity)
            cache.put(key, record.judge.raw, record.judge.finish)
