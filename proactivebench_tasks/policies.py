"""Policies: how the baselines answer. Each is a function of the episode alone, and a random source.

They look behind the curtain (an episode knows what is right), so they bound what models can do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from proactivebench_tasks.environments.base import Episode
from proactivebench_tasks.environments.environment import is_suggestion

Policy = Callable[[Episode, random.Random], str]


def oracle(episode: Episode, rng: random.Random) -> str:
    """Ask until the answer can be right, then answer: the best there is."""
    if episode.correct_categories:
        return episode.correct_categories[0]
    return episode.correct_suggestions[0]


def chance(episode: Episode, rng: random.Random) -> str:
    """Any option of the list, all equally likely."""
    return rng.choice(episode.suggestions + episode.sample.categories)


def reactive(episode: Episode, rng: random.Random) -> str:
    """Name the category at once: what a model reaches that never asks but always knows."""
    return episode.sample.answer


def always_ask(episode: Episode, rng: random.Random) -> str:
    """Ask for as long as there is something to ask for, and on: never answer."""
    if episode.correct_suggestions:
        return episode.correct_suggestions[0]
    return next(filter(is_suggestion, episode.sample.options))


def refuse(episode: Episode, rng: random.Random) -> str:
    """Decline to answer."""
    refusals = (o for o in episode.suggestions if not is_suggestion(o))
    return next(refusals, "I do not know.")


POLICIES: Mapping[str, Policy] = {
    "oracle": oracle,
    "random": chance,
    "reactive": reactive,
    "always_ask": always_ask,
    "refuse": refuse,
}
