"""Chance: what a guesser reaches that picks any option of the list, all equally likely.

Exact: the whole tree of an episode is weighed, nothing is sampled.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.environments.environment import Mode, State
from proactivebench_tasks.environments.episode import Judgement, Stop, advance, judge
from proactivebench_tasks.environments.random_mode import as_played
from proactivebench_tasks.protocol.samples import Dataset, Sample


@dataclass(frozen=True)
class Chance:
    """``acc``: probability of being solved, in %. ``ps``: expected proactive suggestions."""

    acc: float
    ps: float


def of_sample(dataset: Dataset, sample: Sample, mode: Mode = Mode.NORMAL) -> Chance:
    """Chance level of one sample. In random mode the drawn actions are weighed, too."""
    environment = ENVIRONMENTS[dataset](as_played(dataset, sample, mode, seed=0), mode)
    draws = environment.all_actions if mode is Mode.RANDOM else [None]
    graded: dict[object, list[Judgement]] = {}

    def judgements(state: State) -> list[Judgement]:
        """One for each listed option; few states of a sample differ in what is listed and right."""
        listed = environment.suggestions(state)
        key = (
            listed,
            environment.correct_suggestions(state),
            environment.correct_categories(state),
        )
        if key not in graded:
            options = listed + sample.categories
            graded[key] = [judge(environment, state, option) for option in options]
        return graded[key]

    @functools.cache
    def from_here(state: State) -> tuple[float, float]:
        """Probability of being solved and expected number of turns, from a state on."""
        made = judgements(state)
        solved, turns = 0.0, 1.0
        for judged in made:
            # What is drawn matters only to an accepted suggestion.
            actions = draws if judged.accepted else draws[:1]
            weight = 1 / (len(made) * len(actions))
            for drawn in actions:
                after, stop = advance(environment, state, judged, drawn)
                if stop is Stop.SOLVED:
                    solved += weight
                elif stop is None:
                    later = from_here(after)
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
