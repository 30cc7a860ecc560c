"""Scores a samples file of lmms-eval anew, from its transcripts, and prints the metrics.

    lmms-eval --model proactivebench_baseline --tasks proactivedemo_mcqa_rod \
        --log_samples --output_path results
    python examples/score_a_transcript.py results/*_samples_proactivedemo_mcqa_rod.jsonl

Prints a line for each metric: its name, and its mean over the samples (of `reused` the sum). The
multiple-choice answers are played once more through the engine; an open-ended sample has the marks
that its judge gave.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean

from proactivebench_tasks.data.rows import read
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.protocol import versions
from proactivebench_tasks.results import metrics
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.transcript import Transcript


def score(records: list[str]) -> list[dict[str, float]]:
    """The metrics of each sample of one task, from the texts of their records."""
    if "turns" not in json.loads(records[0]):
        return [metrics.open_ended(OpenEnded.from_json(record)) for record in records]
    transcripts = [Transcript.from_json(record) for record in records]
    dataset, version = transcripts[0].dataset, transcripts[0].protocol
    suite = Suite.DEMO if version.startswith("builtin") else Suite.OFFICIAL
    samples = {row.sample.id: row.sample for row in read(suite.store.rows(dataset), dataset)}
    protocol = versions.of(version)
    return [
        metrics.multiple_choice(each.score(samples[each.id], protocol), each.reused)
        for each in transcripts
    ]


def main(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    scored = score([json.loads(line)["filtered_resps"] for line in lines])
    for name in scored[0]:
        values = [each[name] for each in scored]
        print(f"{name:<10}{sum(values) if name == 'reused' else fmean(values):9.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
