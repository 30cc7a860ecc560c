"""Chance: what a guesser reaches that picks any option of the list, all equally likely.

Exact: the whole tree of an episode is weighed, nothing is sampled.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.environments.base import Stop, move
from proactivebench_tasks.environments.environment import Mode, State
from proactivebench_tasks.environments.meaningless import as_played
from proactivebench_tasks.samples import Dataset, Sample


@dataclass(frozen=True)
class Chance:
    """``acc``: probability of being solved, in %. ``ps``: expected proactive suggestions."""

    acc: float
    ps: float


def of_sample(dataset: Dataset, sample: Sample, mode: Mode = Mode.NORMAL) -> Chance:
    """Chance level of one sample. In random mode the drawn actions are weighed, too."""
    environment = ENVIRONMENTS[dataset](as_played(dataset, sample, mode, seed=0), mode)
    draws = environment.all_actions if mode is Mode.RANDOM else [None]

    @functools.cache
    def from_here(state: State) -> tuple[float, float]:
        """Probability of being solved and expected number of turns, from a state on."""
        options = environment.suggestions(state) + environment.sample.categories
        solved, turns = 0.0, 1.0
        weight = 1 / (len(options) * len(draws))
        for option in options:
            for drawn in draws:
                made = move(environment, state, option, drawn)
                if made.stop is Stop.SOLVED:
                    solved += weight
                elif made.stop is None:
                    later = from_here(made.after)
                    solved += weight * later[0]
                    turns += weight * later[1]
        return solved, turns

    solved, turns = from_here(environment.start())
    return Chance(acc=100 * solved, ps=turns - 1)


def mean(chances: Iterable[Chance]) -> Chance:
    """The plain mean; ``ValueError`` for none."""
    values = list(chances)
    if not values:
        raise ValueError("no samples")
    acc = sum(c.acc for c in values) / len(values)
    return Chance(acc, ps=sum(c.ps for c in values) / len(values))
