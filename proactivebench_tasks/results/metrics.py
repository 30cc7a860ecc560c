"""Metrics: what a sample is worth, in the numbers that are averaged over a task.

This is the one place that names them. The task YAMLs list those that users compare, so that the
harness shows them in its table; all others are in the results file, and in our own table where
they matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proactivebench_tasks.environments import lenient
from proactivebench_tasks.environments.episode import Episode, Stop
from proactivebench_tasks.judge import verdict
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.record import RecordKind
from proactivebench_tasks.transcripts.transcript import Transcript


@dataclass(frozen=True)
class Metric:
    """``is_listed``: users compare it. ``higher_is_better`` is ``None`` where neither is better."""

    name: str
    what: str
    higher_is_better: bool | None = None
    is_listed: bool = False


MULTIPLE_CHOICE = (
    Metric("acc", "% of samples solved", True, is_listed=True),
    Metric("ps", "proactive suggestions a sample: turns minus one", is_listed=True),
    Metric("acc_lenient", "acc, if last answers in another form counted", True),
    Metric("asked", "% of samples with at least one suggestion"),
    Metric("max_steps", "% that used every turn"),
    Metric("mismatch", "% whose last answer was no option of the list", False),
    Metric("cut", "% with an answer that was cut off while the model was thinking", False),
    Metric("failed", "% without a result, which count as 0 in all others", False),
    Metric("reused", "turns a sample that were answered without a call"),
)
OPEN_ENDED = (
    Metric("acc", "% of answers that name the category", True, is_listed=True),
    Metric("ps", "% of answers that make a valid suggestion", is_listed=True),
    Metric("agg", "% of answers that do either", True, is_listed=True),
    Metric("unscored", "% of answers without a usable verdict, which count as 0", False),
    Metric("cut", "% of answers that were cut off while the model was thinking", False),
    Metric("failed", "% without an answer, which count as 0 in all others", False),
)

#: The names of those that users compare, of both kinds.
LISTED = tuple(dict.fromkeys(m.name for m in MULTIPLE_CHOICE + OPEN_ENDED if m.is_listed))

#: A ``mismatch``, in %, above which something is probably wrong with how a model is asked.
MANY_MISMATCHES = 50.0


def multiple_choice(transcript: Transcript | None, episode: Episode | None) -> dict[str, float]:
    """One sample's metrics, from its record and the episode that the record's answers make.

    ``None`` is for a sample that failed, of which there may not even be a record. It counts as 0 in
    all but ``failed``, as the paper's protocol knows none.
    """
    if transcript is None or episode is None:
        return failed(MULTIPLE_CHOICE)
    summary = episode.summary()
    return {
        "acc": 100.0 * summary.correct_prediction,
        "ps": float(summary.num_suggestions),
        "acc_lenient": 100.0 * is_solved_leniently(episode),
        "asked": 100.0 * (summary.num_suggestions > 0),
        "max_steps": 100.0 * summary.reached_max_turns,
        "mismatch": 100.0 * summary.mismatch,
        "cut": 100.0 * any(turn.cut for turn in transcript.turns),
        "failed": 0.0,
        "reused": float(sum(turn.reused for turn in transcript.turns)),
    }


def is_solved_leniently(episode: Episode) -> bool:
    """Whether a finished episode is solved, or ends with the right category in another form."""
    last = episode.turns[-1]
    if last.stop is not Stop.MISMATCH:
        return last.stop is Stop.SOLVED
    choice = lenient.read(last.answer, last.options).choice
    # The last answer changed nothing, so what is right now was right when it was given.
    return choice is not None and last.options[choice] in episode.correct_categories


def open_ended(record: OpenEnded | None) -> dict[str, float]:
    """One sample's metrics; ``None``, or a record with an error, is for a sample that failed.

    An answer without a usable verdict is ``unscored``. The official protocol counts it as 0 in
    ``acc``, ``ps`` and ``agg``, and so do these.
    """
    if record is None or record.error is not None:
        return failed(OPEN_ENDED)
    marks = record.judge.verdict
    score = verdict.score(marks, record.dataset)
    return {
        "acc": 100.0 * score.category,
        "ps": 100.0 * score.suggestion,
        "agg": 100.0 * score.aggregate,
        "unscored": 100.0 * (marks is None),
        "cut": 100.0 * record.cut,
        "failed": 0.0,
    }


def of_kind(kind: RecordKind) -> Mapping[str, Metric]:
    """The metrics of a kind of record, by name."""
    metrics = OPEN_ENDED if kind is RecordKind.OPEN_ENDED else MULTIPLE_CHOICE
    return {metric.name: metric for metric in metrics}


def listed(kind: RecordKind) -> list[Metric]:
    """The metrics of a kind of record that users compare."""
    return [metric for metric in of_kind(kind).values() if metric.is_listed]


def failed(metrics: Sequence[Metric]) -> dict[str, float]:
    """The metrics of a sample without a result."""
    return {metric.name: 100.0 if metric.name == "failed" else 0.0 for metric in metrics}
