"""Chance: what a guesser reaches that picks any option of the list, all equally likely.

Exact, to the digits that a float holds: all ways that an episode can go are weighed, turn by turn,
and nothing is sampled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.environments.environment import Mode, State
from proactivebench_tasks.environments.episode import Stop, advance
from proactivebench_tasks.environments.grading import TurnGrade, grade_turn
from proactivebench_tasks.environments.random_mode import as_played
from proactivebench_tasks.protocol.samples import Sample

_NEGLIGIBLE = 1e-18  # a probability that adds nothing to a float near 1


@dataclass(frozen=True)
class Chance:
    """``acc``: probability of being solved, in %. ``ps``: expected proactive suggestions."""

    acc: float
    ps: float


def of_sample(sample: Sample, mode: Mode = Mode.NORMAL) -> Chance:
    """Chance level of one sample. In random mode the drawn actions are weighed, too.

    Raises ``DataError`` if a suggestion of the sample names no action or leads to no image.
    """
    environment = ENVIRONMENTS[sample.dataset](as_played(sample, mode, seed=0), mode)
    draws = environment.all_actions if mode is Mode.RANDOM else [None]
    known: dict[object, list[TurnGrade]] = {}

    def grades(state: State) -> list[TurnGrade]:
        """One for each option; few states of a sample differ in what is listed and right."""
        options = environment.options(state)
        key = (
            options,
            environment.correct_suggestions(state),
            environment.correct_categories(state),
        )
        if key not in known:
            known[key] = [grade_turn(environment, state, option) for option in options]
        return known[key]

    solved = turns = 0.0
    # The states of a turn, and how likely an episode is to get there.
    here = {environment.start(): 1.0}
    while here:
        turns += sum(here.values())
        following: dict[State, float] = defaultdict(float)
        for state, likely in here.items():
            environment.require_image(state)
            graded = grades(state)
            for one in graded:
                # What is drawn matters only to an accepted suggestion.
                actions = draws if one.accepted else draws[:1]
                weight = likely / (len(graded) * len(actions))
                for drawn in actions:
                    after, stop = advance(environment, state, one, drawn)
                    if stop is Stop.SOLVED:
                        solved += weight
                    elif stop is None:
                        following[after] += weight
        here = {state: likely for state, likely in following.items() if likely > _NEGLIGIBLE}
    return Chance(acc=100 * solved, ps=turns - 1)


def mean(chances: Iterable[Chance]) -> Chance:
    """The plain mean; ``ValueError`` for none."""
    values = list(chances)
    if not values:
        raise ValueError("no samples")
    acc = sum(c.acc for c in values) / len(values)
    return Chance(acc, ps=sum(c.ps for c in values) / len(values))
