"""Random mode: meaningless suggestions in place of a sample's own, with effects that are drawn.

Would a model that suggests things also suggest nonsense? A suggestion is meaningless for a dataset
whose images lack what it acts on: a still photo cannot be rewound, a video has no pen strokes. The
texts are ours.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.environments.environment import (
    Action,
    Environment,
    Mode,
    Subject,
    derived_seed,
    is_suggestion,
)
from proactivebench_tasks.protocol.samples import Dataset, Sample

#: What a suggestion acts on, and suggestions that act on it.
_SUGGESTIONS: Mapping[Subject, tuple[str, ...]] = {
    Subject.BLOCKS: (
        "Move the blocks to the left.",
        "Move the blocks to the right.",
        "Take the top block away.",
    ),
    Subject.VIDEO: ("Rewind the video.", "Play the video on.", "Wait for the video to end."),
    Subject.OBJECT_IN_HAND: ("Turn the object over.", "Show the object from behind."),
    Subject.PHOTO_QUALITY: ("Brighten the photo.", "Remove the noise.", "Sharpen the photo."),
    Subject.PEN_STROKES: ("Add strokes to the sketch.", "Finish the drawing."),
    Subject.FRAMING: ("Zoom out.", "Tilt the camera up.", "Move the camera to the left."),
}


def meaningless(dataset: Dataset) -> tuple[str, ...]:
    """All suggestions that make no sense for a dataset."""
    lacking = (each for each in _SUGGESTIONS if each not in ENVIRONMENTS[dataset].subjects)
    return tuple(text for subject in lacking for text in _SUGGESTIONS[subject])


def as_played(sample: Sample, mode: Mode, seed: int) -> Sample:
    """The sample as a mode shows it: in random mode each suggestion is replaced, in its place, by a
    meaningless one, drawn without repetition by a seed derived from the sample."""
    if mode is not Mode.RANDOM:
        return sample
    rng = random.Random(derived_seed("meaningless", seed, sample.dataset.value, sample.id))
    pool = meaningless(sample.dataset)
    count = sum(map(is_suggestion, sample.options))
    drawn = iter(rng.sample(pool * (1 + count // len(pool)), count))
    options = tuple(next(drawn) if is_suggestion(o) else o for o in sample.options)
    return sample.model_copy(update={"options": options})


def drawn_action(environment: Environment[Any, Any], seed: int, turn: int) -> Action | None:
    """What an accepted suggestion does in a turn (from 0): any action of the dataset. In the other
    modes nothing is drawn."""
    if environment.mode is not Mode.RANDOM:
        return None
    sample = environment.sample
    derived = derived_seed(seed, sample.dataset.value, sample.id, turn)
    return random.Random(derived).choice(environment.all_actions)
