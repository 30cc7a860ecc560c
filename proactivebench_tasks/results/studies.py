"""Studies: what the paper compares between the studies of one model, from lmms-eval's results."""

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
    """Differences in the metric's own unit; ``None`` where one of the two was not run.

    ``reference_gain``, ``hint_gain``: accuracy with nothing hidden, with a hint, minus normal (%).
    ``hint_ps_gain``, ``random_asked_gain``: suggestions a sample with a hint, and share of samples
    with a suggestion when suggestions are meaningless (%), minus normal. ``at_limit``: share of
    normal samples that used every turn (%).
    """

    reference_gain: float | None
    hint_gain: float | None
    hint_ps_gain: float | None
    random_asked_gain: float | None
    at_limit: float | None


def read(path: Path) -> Scores:
    """The scores in one of lmms-eval's ``*_results.json``; ``DataError`` if it is none."""
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
    """One comparison for each dataset (by its task name) and one for the ``mean``.

    ``family`` is ``proactivebench`` or ``proactivedemo``.
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
    """The task of a dataset, or the group that holds the mean."""
    if dataset == MEAN:
        # The demo's multiple-choice group is the family itself.
        return family if (family, study) == ("proactivedemo", "mcqa") else f"{family}-{study}"
    return f"{family}{'_' if study == 'mcqa' else '-'}{study}_{dataset}"
