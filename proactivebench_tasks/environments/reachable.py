"""Reach: everything an episode can ever show, whatever is answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.environments.environment import Action, Box, Environment, Mode, State
from proactivebench_tasks.protocol.samples import Dataset, Sample


def pictures(dataset: Dataset, sample: Sample) -> set[str]:
    """Paths of the pictures that a sample's episodes can show, in all modes."""
    return {path for path, _ in views(dataset, sample)}


def views(dataset: Dataset, sample: Sample) -> set[tuple[str, Box | None]]:
    """The pictures, and windows on them, that a sample's episodes can show, in all modes.

    Random mode's windows are left out: it moves them on the same picture, and they are many. Raises
    ``DataError`` where a suggestion of the sample leads nowhere.
    """
    found: set[tuple[str, Box | None]] = set()
    for mode in Mode:
        environment = ENVIRONMENTS[dataset](sample, mode)
        if mode is Mode.RANDOM and environment.crop(environment.start()) is not None:
            continue
        found |= {(environment.image(s), environment.crop(s)) for s in states(environment)}
    return found


def states(environment: Environment[Any]) -> Iterator[State]:
    """The states in which a model is asked, the earliest turn of each."""
    frontier = [environment.start()]
    seen = {_lasting(environment, state) for state in frontier}
    while frontier:
        yield from frontier
        following = []
        for state in frontier:
            for action in _actions(environment, state):
                after = environment.move(state, action)
                key = _lasting(environment, after)
                if key not in seen and environment.in_range(after):
                    seen.add(key)
                    following.append(after)
        frontier = following


def _actions(environment: Environment[Any], state: State) -> set[Action]:
    if environment.mode is Mode.REFERENCE or state.turn + 1 >= environment.max_turns:
        return set()
    suggestions = environment.correct_suggestions(state)
    if environment.mode is Mode.RANDOM:
        return set(environment.actions.values()) if suggestions else set()
    return {environment.action(suggestion) for suggestion in suggestions}


def _lasting(environment: Environment[Any], state: State) -> State:
    """The part of a state that decides what may follow. Only where suggestions run out is the turn
    one of it; elsewhere a state that is reached again, later, leads to nothing new."""
    return state if environment.runs_out else replace(state, turn=0)
