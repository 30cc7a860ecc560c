"""Studies: the comparisons that the paper makes between the studies of one model, such as with a
hint against without one. They are made from the results file that lmms-eval writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Dataset

#: Task or group name -> metric -> value.
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
        results = json.loads(path.read_text(encoding="utf-8"))["results"]
        return {
            name: {
                key.partition(",")[0]: float(value)
                for key, value in entry.items()
                if "_stderr" not in key and isinstance(value, (int, float))
            }
            for name, entry in results.items()
        }
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError(f"{path}: no results of lmms-eval: {error!r}") from error


def compare(scores: Scores, family: str = "proactivebench") -> dict[str, Comparison]:
    """A comparison for each dataset, by its short name (``rod``), and one, ``mean``, over them all.

    ``family`` is what the tasks' names begin with: ``proactivebench`` or ``proactivedemo``.
    """
    return {name: _comparison(scores, family, name) for name in [d.task for d in Dataset] + [MEAN]}


def _comparison(scores: Scores, family: str, dataset: str) -> Comparison:
    def value(study: str, metric: str) -> float | None:
        return scores.get(_task(family, study, dataset), {}).get(metric)

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


def _task(family: str, study: str, dataset: str) -> str:
    """The name of a study's task for a dataset, or, for the mean, of the study's group."""
    if dataset == MEAN:
        # The demo's multiple-choice group is the family itself.
        return family if (family, study) == ("proactivedemo", "mcqa") else f"{family}-{study}"
    return f"{family}{'_' if study == 'mcqa' else '-'}{study}_{dataset}"
