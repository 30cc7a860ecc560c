"""Reachable: everything that an episode can ever show, whatever is answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.environments.environment import Action, Box, Environment, Mode, State
from proactivebench_tasks.protocol.samples import Sample


def image_paths(sample: Sample) -> set[str]:
    """Paths below the data folder of the images that a sample can show, in all modes."""
    return {path for path, _ in views(sample)}


def views(sample: Sample) -> set[tuple[str, Box | None]]:
    """The images, and windows on them, that a sample's episodes can show, in all modes.

    Where the image is shown through a window (COCO), random mode is left out: it moves the window
    over the same image to very many places. Raises ``DataError`` where a suggestion of the sample
    leads nowhere.
    """
    found: set[tuple[str, Box | None]] = set()
    for mode in Mode:
        environment = ENVIRONMENTS[sample.dataset](sample, mode)
        if mode is Mode.RANDOM and environment.crop(environment.start()) is not None:
            continue
        found |= {(environment.image_path(s), environment.crop(s)) for s in states(environment)}
    return found


def states(environment: Environment[Any, Any]) -> Iterator[State]:
    """The states in which a model is asked, the earliest turn of each. Raises ``DataError`` where a
    suggestion of the sample leads nowhere."""
    frontier = [environment.start()]
    seen = {_lasting(environment, state) for state in frontier}
    while frontier:
        yield from frontier
        following = []
        for state in frontier:
            for action in _actions(environment, state):
                after = environment.move(state, action)
                if environment.is_lost(after):
                    continue
                environment.require_image(after)
                key = _lasting(environment, after)
                if key not in seen:
                    seen.add(key)
                    following.append(after)
        frontier = following


def _actions(environment: Environment[Any, Any], state: State) -> set[Action]:
    if environment.mode is Mode.REFERENCE or state.turn + 1 >= environment.max_turns:
        return set()
    suggestions = environment.correct_suggestions(state)
    if environment.mode is Mode.RANDOM:
        return set(environment.actions.values()) if suggestions else set()
    return {environment.action(suggestion) for suggestion in suggestions}


def _lasting(environment: Environment[Any, Any], state: State) -> State:
    """The part of a state that decides what may follow it.

    Where suggestions run out (MVP-N, ImageNet-C, QuickDraw) the turn is part of that. Elsewhere it
    is not: a state that is reached once more in a later turn leads to nothing new.
    """
    return state if environment.runs_out else replace(state, turn=0)
