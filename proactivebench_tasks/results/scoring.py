"""Scoring: from the texts that a run stored of a sample to its row in the samples file.

One way for all who ask: the harness while it evaluates, ``proactivebench judge`` and ``rescore``
afterwards. Where a sample was played several times (``--repeats``), its metrics are the means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from proactivebench_tasks.environments import ENVIRONMENTS, chance
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.errors import DataError, RecordError
from proactivebench_tasks.protocol.protocol import Protocol, num_answers
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.results import metrics
from proactivebench_tasks.results.metrics import Metric
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.record import Record
from proactivebench_tasks.transcripts.transcript import Transcript

#: What is to be done with a text that is no record of its sample.
OnFault = Callable[[str, RecordError], object]

#: The field of a row that holds what users do not compare.
DETAILS = "proactivebench"


def multiple_choice(
    texts: Sequence[str], sample: Sample, protocol: Protocol, on_fault: OnFault
) -> dict[str, Any]:
    """A row's fields, from a sample's records. A text that is none of them counts as failed."""
    records: list[Transcript | None] = []
    values = []
    for text in texts:
        record = episode = None
        try:
            record = Transcript.from_json(text, sample)
            episode = record.replay(sample, protocol)
        except RecordError as error:
            on_fault(text, error)
        records.append(record)
        values.append(metrics.multiple_choice(record, episode))
    mode = next((record.variant.mode for record in records if record), Mode.NORMAL)
    bounds = _chance(sample, mode)
    return _row(metrics.MULTIPLE_CHOICE, records, values, sample.image_template, bounds)


def open_ended(texts: Sequence[str], sample: Sample | None, on_fault: OnFault) -> dict[str, Any]:
    """A row's fields, from a sample's judged records. A text that is none counts as failed.

    ``sample`` is ``None`` if it cannot be had. Its first record tells then what is needed, but not
    which other samples share its image source, so it is taken as a cluster of its own.
    """
    records: list[OpenEnded | None] = []
    for text in texts:
        try:
            records.append(OpenEnded.from_json(text, sample))
        except RecordError as error:
            on_fault(text, error)
            records.append(None)
    values = [metrics.open_ended(record) for record in records]
    if sample is not None:
        cluster, best = sample.image_template, best_accuracy(sample)
    else:
        first = next(record for record in records if record)
        cluster = f"{first.dataset.value} {first.id}"
        best = _best_accuracy(first.dataset, first.valid_answers)
    return _row(metrics.OPEN_ENDED, records, values, cluster, {"best_acc": best})


def unreadable(
    kind: Sequence[Metric], count: int, cluster: str, bounds: Mapping[str, float]
) -> dict[str, Any]:
    """A row's fields, where none of a sample's ``count`` texts is a record of any sample."""
    return _row(kind, [None] * count, [metrics.failed(kind)] * count, cluster, bounds)


def _chance(sample: Sample, mode: Mode) -> dict[str, float]:
    """What a uniform guesser reaches. A row that cannot be played is not solved by it either."""
    try:
        level = chance.of_sample(sample, mode)
    except DataError:
        level = chance.Chance(acc=0.0, ps=0.0)
    return {"chance_acc": level.acc, "chance_ps": level.ps}


def best_accuracy(sample: Sample) -> float:
    """What ``acc`` an open-ended answer to a sample can have at best: 0 where no valid answer names
    the category, as in ROD and MVP-N, else 100."""
    environment = ENVIRONMENTS[sample.dataset](sample)
    return _best_accuracy(sample.dataset, environment.open_ended_answers())


def _best_accuracy(dataset: Dataset, valid_answers: str) -> float:
    suggestions = ENVIRONMENTS[dataset].num_open_ended_suggestions()
    return 100.0 * (num_answers(valid_answers) > suggestions)


def _row(
    kind: Sequence[Metric],
    records: Sequence[Record | None],
    values: Sequence[Mapping[str, float]],
    cluster: str,
    bounds: Mapping[str, float],
) -> dict[str, Any]:
    mean = {metric.name: fmean(each[metric.name] for each in values) for metric in kind}
    listed = [metric.name for metric in kind if metric.is_listed]
    known = [record for record in records if record is not None]
    rows = [record.to_row() for record in known]
    details: dict[str, Any] = {name: mean[name] for name in mean if name not in listed}
    details |= bounds
    # What samples share that are not independent of each other: video, series, object, photo.
    details["cluster"] = cluster
    details["costs"] = _costs(rows)
    if len(values) > 1:
        details["repeats"] = {name: [each[name] for each in values] for name in listed}
    if known:
        details["about"] = {
            "kind": known[0].kind.value,
            "dataset": known[0].dataset.task,
            "protocol": known[0].protocol,
            "suite": known[0].suite,
            "variant": known[0].variant.asked_for(),
            "reasoning_tags": [list(pair) for pair in known[0].reasoning_tags],
        }
    return {
        **{name: mean[name] for name in listed},
        "score": mean["acc"] / 100,  # what the harness compares and counts, from 0 to 1
        "transcript": rows[0] if len(rows) == 1 else rows,
        DETAILS: details,
    }


def texts_of(response: Any) -> list[Any]:
    """The texts of one sample: one, or a list of them where it was played several times."""
    return list(response) if isinstance(response, list) else [response]


def _costs(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Calls, seconds and tokens of a sample, all repeats together."""
    total: Counter[str] = Counter()
    for record in records:
        for cost in record["costs"]:
            total["calls"] += cost["calls"]
            total["seconds"] += cost["seconds"]
            total.update(cost["tokens"])
    return dict(total)
