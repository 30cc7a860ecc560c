"""Scores a samples file of lmms-eval anew, from its transcripts, and prints the metrics.

    lmms-eval --model proactivebench_baseline --tasks proactivedemo_mcqa_rod \
        --log_samples --output_path results
    python examples/score_a_transcript.py results/*_samples_proactivedemo_mcqa_rod.jsonl

Prints a line for each metric: its name, and its mean over the samples. The multiple-choice answers
are played once more through the engine; an open-ended sample has the marks that its judge gave.
This shows how it is done. `proactivebench rescore` does it for all tasks of a run, with errors and
groups, and for runs of older versions, whose transcripts do not hold their samples.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean

from proactivebench_tasks.protocol import versions
from proactivebench_tasks.results import metrics
from proactivebench_tasks.results.scoring import texts_of
from proactivebench_tasks.transcripts import reader
from proactivebench_tasks.transcripts.open_ended import OpenEnded


def score(text: str) -> dict[str, float]:
    """The metrics of one transcript."""
    record = reader.read(text)
    if isinstance(record, OpenEnded):
        return metrics.open_ended(record)
    episode = record.replay(record.own_sample(), versions.of(record.protocol))
    return metrics.multiple_choice(record, episode)


def main(path: Path) -> None:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    # With --repeats a row has several texts.
    scored = [score(text) for row in rows for text in texts_of(row["filtered_resps"])]
    for name in scored[0]:
        print(f"{name:<12}{fmean(each[name] for each in scored):9.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
