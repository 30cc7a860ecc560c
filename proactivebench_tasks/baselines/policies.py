"""Policies: how the baselines answer. Each is a function of the episode, and a random source.

An episode knows what is right in it, and policies may ask it; so they bound what models can do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from proactivebench_tasks.environments.environment import is_suggestion
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.protocol.protocol import split_answers

Policy = Callable[[Episode, random.Random], str]

#: Said where there is nothing to choose from. It is on no list, and is no valid answer.
SILENCE = "I do not know."


def oracle(episode: Episode, rng: random.Random) -> str:
    """Ask until the answer can be right, then answer: the best there is."""
    return next(iter(episode.correct_categories or episode.correct_suggestions), SILENCE)


def any_option(episode: Episode, rng: random.Random) -> str:
    """Any option of the list, all equally likely: chance level. The name ``random`` of this policy
    has nothing to do with the mode ``random``, whose suggestions are meaningless."""
    return rng.choice(episode.options)


def reactive(episode: Episode, rng: random.Random) -> str:
    """Name the category at once: what a model reaches that never asks but always knows."""
    return episode.sample.answer


def always_ask(episode: Episode, rng: random.Random) -> str:
    """Ask for as long as there is something to ask for, and on: never answer."""
    if episode.correct_suggestions:
        return episode.correct_suggestions[0]
    return next(filter(is_suggestion, episode.sample.options), SILENCE)


def refuse(episode: Episode, rng: random.Random) -> str:
    """Decline to answer."""
    refusals = (o for o in episode.listed if not is_suggestion(o))
    return next(refusals, SILENCE)


POLICIES: Mapping[str, Policy] = {
    "oracle": oracle,
    "random": any_option,
    "reactive": reactive,
    "always_ask": always_ask,
    "refuse": refuse,
}


# What they say where there is no list, in open-ended generation.


def tell_or_ask(episode: Episode, rng: random.Random) -> str:
    """Name the category where that is a valid answer, else ask."""
    _, categories = _valid_answers(episode)
    return tell(episode, rng) if categories else ask(episode, rng)


def anything(episode: Episode, rng: random.Random) -> str:
    """Any suggestion that is valid, any category, or a refusal, all equally likely."""
    suggestions, _ = _valid_answers(episode)
    told = [_told(category) for category in episode.sample.categories]
    return rng.choice([*(f"{s}." for s in suggestions), *told, decline(episode, rng)])


def tell(episode: Episode, rng: random.Random) -> str:
    """Name the category."""
    return _told(episode.sample.answer)


def ask(episode: Episode, rng: random.Random) -> str:
    """Make the first suggestion that is valid."""
    suggestions, _ = _valid_answers(episode)
    return f"{suggestions[0]}." if suggestions else SILENCE


def decline(episode: Episode, rng: random.Random) -> str:
    """Decline to answer."""
    return SILENCE


OPEN_ENDED: Mapping[str, Policy] = {
    "oracle": tell_or_ask,
    "random": anything,
    "reactive": tell,
    "always_ask": ask,
    "refuse": decline,
}


def _told(category: str) -> str:
    return f"It is {category.removesuffix('.')}."


def _valid_answers(episode: Episode) -> tuple[list[str], list[str]]:
    """The valid open-ended answers: suggestions, and names of the category."""
    answers = split_answers(episode.environment.open_ended_answers())
    leading = episode.environment.num_open_ended_suggestions()
    return answers[:leading], answers[leading:]
