"""Random mode: meaningless suggestions in place of a sample's own, with effects that are drawn.

Would a model that suggests things also suggest nonsense? A suggestion is meaningless for a dataset
whose images lack what it acts on: a still photo cannot be rewound, a video has no pen strokes. The
texts are ours.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from proactivebench_tasks.environments.environment import (
    Action,
    Environment,
    Mode,
    derived_seed,
    is_suggestion,
)
from proactivebench_tasks.protocol.samples import Dataset, Sample

#: What a suggestion acts on, and suggestions that act on it.
_SUGGESTIONS: Mapping[str, tuple[str, ...]] = {
    "blocks": (
        "Move the blocks to the left.",
        "Move the blocks to the right.",
        "Take the top block away.",
    ),
    "video": ("Rewind the video.", "Play the video on.", "Wait for the video to end."),
    "object in hand": ("Turn the object over.", "Show the object from behind."),
    "photo quality": ("Brighten the photo.", "Remove the noise.", "Sharpen the photo."),
    "pen strokes": ("Add strokes to the sketch.", "Finish the drawing."),
    "framing": ("Zoom out.", "Tilt the camera up.", "Move the camera to the left."),
}

#: What a dataset's images have, so that a suggestion about it may make sense.
_HAS: Mapping[Dataset, frozenset[str]] = {
    Dataset.ROD: frozenset({"blocks", "object in hand", "photo quality", "framing"}),
    Dataset.VSOD: frozenset({"video", "photo quality", "framing"}),
    Dataset.MVPN: frozenset({"object in hand", "photo quality", "framing"}),
    Dataset.IMAGENETC: frozenset({"photo quality", "framing", "object in hand"}),
    Dataset.QUICKDRAW: frozenset({"pen strokes", "framing"}),
    Dataset.CHANGEIT: frozenset({"video", "photo quality", "framing"}),
    Dataset.COCO: frozenset({"photo quality", "framing"}),
}


def suggestions(dataset: Dataset) -> tuple[str, ...]:
    """All suggestions that make no sense for a dataset."""
    lacking = (thing for thing in _SUGGESTIONS if thing not in _HAS[dataset])
    return tuple(text for thing in lacking for text in _SUGGESTIONS[thing])


def as_played(sample: Sample, mode: Mode, seed: int) -> Sample:
    """The sample as a mode shows it: in random mode each suggestion is replaced, in its place, by a
    meaningless one, drawn without repetition by a seed derived from the sample."""
    if mode is not Mode.RANDOM:
        return sample
    rng = random.Random(derived_seed("meaningless", seed, sample.dataset.value, sample.id))
    pool = suggestions(sample.dataset)
    count = sum(map(is_suggestion, sample.options))
    drawn = iter(rng.sample(pool * (1 + count // len(pool)), count))
    options = tuple(next(drawn) if is_suggestion(o) else o for o in sample.options)
    return sample.model_copy(update={"options": options})


def drawn_action(environment: Environment[Any], seed: int, turn: int) -> Action:
    """What an accepted suggestion does in a turn (from 0): any action of the dataset."""
    sample = environment.sample
    derived = derived_seed(seed, sample.dataset.value, sample.id, turn)
    return random.Random(derived).choice(environment.all_actions)
