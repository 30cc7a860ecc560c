"""Studies: the comparisons that the paper makes between the studies of one model, such as with a
hint against without one. They are made from the results file that lmms-eval writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol import task_names
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.results.summary import figures

#: Task or group name -> metric (``acc``, ``acc_stderr``) -> value.
Scores = Mapping[str, Mapping[str, float]]

MEAN = "mean"


@dataclass(frozen=True)
class Comparison:
    """What a study changes, compared with the normal task (``mcqa``) of the same dataset.

    A gain is the study's value minus the normal one, in the unit of the metric, or ``None`` if one
    of the two was not run.
    """

    #: Accuracy (%) when the reference image is shown, in which nothing is hidden.
    reference_gain: float | None
    #: Accuracy (%) with a hint.
    hint_gain: float | None
    #: Suggestions a sample with a hint.
    hint_ps_gain: float | None
    #: Share of samples with a suggestion (%) when suggestions are drawn at random and mean nothing.
    random_asked_gain: float | None
    #: Not a gain: the share of samples of the normal task (%) that used every turn.
    at_limit: float | None


def read(path: Path) -> Scores:
    """The scores in a ``*_results.json`` of lmms-eval; ``DataError`` if the file has none."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        return {name: figures(results, name) for name in results["results"]}
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError(f"{path}: no results of lmms-eval: {error!r}") from error


def compare(scores: Scores, family: str = task_names.OFFICIAL) -> dict[str, Comparison]:
    """A comparison for each dataset, by its short name (``rod``), and one, ``mean``, over them all.

    ``family`` is what the tasks' names begin with: ``proactivebench`` or ``proactivedemo``.
    """
    by_dataset = {
        dataset.task: _comparison(scores, partial(task_names.task, family, dataset=dataset))
        for dataset in Dataset
    }
    return by_dataset | {MEAN: _comparison(scores, partial(task_names.group, family))}


def _comparison(scores: Scores, name: Callable[[str], str]) -> Comparison:
    """The comparison of those tasks or groups that ``name`` makes of a study's name."""

    def value(study: str, metric: str) -> float | None:
        return scores.get(name(study), {}).get(metric)

    def gain(study: str, metric: str) -> float | None:
        with_it, without = value(study, metric), value("mcqa", metric)
        return None if with_it is None or without is None else with_it - without

    return Comparison(
        reference_gain=gain("reference", "acc"),
        hint_gain=gain("hint", "acc"),
        hint_ps_gain=gain("hint", "ps"),
        random_asked_gain=gain("random", "asked"),
        at_limit=value("mcqa", "max_steps"),
    )
