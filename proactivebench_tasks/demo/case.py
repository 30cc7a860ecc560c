"""Case: what chance decides about one sample, before its scene is drawn.

Every case has its own seed, so that one sample never depends on how many others are made.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from PIL import Image

from proactivebench_tasks.demo.draw import Colour, Drawing
from proactivebench_tasks.demo.things import THINGS
from proactivebench_tasks.protocol.samples import Dataset

CATEGORIES = 4
FIRST_ID = {"test": 1, "train": 1001}
REFUSALS = (
    "I cannot tell from what is shown.",
    "I do not know what it is.",
    "This cannot be told yet.",
    "I cannot see enough to answer.",
)
# Each split has its own colours, so that not even an empty stage is the same in both.
# fmt: off
BACKDROPS: Mapping[str, Sequence[Colour]] = {
    "test": (
        (222, 232, 214), (212, 226, 240), (240, 226, 206), (232, 220, 238), (206, 232, 232),
        (238, 234, 208),
    ),
    "train": (
        (226, 226, 226), (246, 236, 226), (218, 238, 222), (228, 234, 246), (244, 228, 232),
        (232, 240, 214),
    ),
}
PAINTS: Mapping[str, Sequence[Colour]] = {
    "test": (
        (196, 80, 72), (66, 112, 176), (84, 148, 92), (222, 164, 60), (130, 98, 160),
        (70, 146, 150),
    ),
    "train": (
        (176, 96, 120), (92, 100, 186), (110, 140, 60), (216, 130, 92), (96, 122, 140),
        (150, 120, 80),
    ),
}
# fmt: on


@dataclass(frozen=True)
class Scene:
    """One row of a jsonl and the images it needs, by their path below the data folder."""

    row: Mapping[str, object]
    images: Mapping[str, Image.Image]


@dataclass(frozen=True)
class Case:
    """The ``index``-th sample of a dataset's split.

    Each ``samples_per_stage`` samples in a row are of one stage: they share their images.
    """

    dataset: Dataset
    split: str
    index: int
    samples_per_stage: int = 1

    @property
    def id(self) -> int:
        """The sample's id, unique over both splits."""
        return FIRST_ID[self.split] + self.index

    @property
    def stage(self) -> int:
        """Number of the set of images, unique over both splits."""
        return FIRST_ID[self.split] + self.index // self.samples_per_stage

    @property
    def folder(self) -> str:
        """Where the images lie, below the data folder."""
        return f"{self.dataset.value}/{self.stage:04d}"

    @cached_property
    def look(self) -> random.Random:
        """Chance for the drawing: the same for all samples of a stage."""
        return random.Random(f"{self.dataset.value} {self.split} stage {self.stage}")

    @cached_property
    def deal(self) -> random.Random:
        """Chance for the question, the options and the way through the images."""
        return random.Random(f"{self.dataset.value} {self.split} sample {self.index}")

    @property
    def answer(self) -> str:
        """The thing to be found, a key of ``THINGS[split]``; each comes once before any returns."""
        things = sorted(THINGS[self.split])
        random.Random(f"{self.dataset.value} {self.split}").shuffle(things)
        return things[self.index // self.samples_per_stage % len(things)]

    @property
    def backdrops(self) -> Sequence[Colour]:
        """Light colours to stand behind things."""
        return BACKDROPS[self.split]

    @property
    def paints(self) -> Sequence[Colour]:
        """Strong colours for what hides things."""
        return PAINTS[self.split]

    @property
    def drawing(self) -> Drawing:
        """How the answer looks."""
        return THINGS[self.split][self.answer]

    @cached_property
    def categories(self) -> list[str]:
        """The answer among three others; over four samples it takes each position once."""
        block, turn = divmod(self.index, CATEGORIES)
        seats = random.Random(f"{self.dataset.value} {self.split} seat {block}")
        position = seats.sample(range(CATEGORIES), CATEGORIES)[turn]
        others = sorted(set(THINGS[self.split]) - {self.answer})
        names = self.deal.sample(others, CATEGORIES - 1)
        names.insert(position, self.answer)
        return [sentence(name) for name in names]

    def scene(
        self,
        images: Mapping[str, Image.Image],
        questions: Sequence[str],
        suggestions: Sequence[str],
        **fields: object,
    ) -> Scene:
        """The finished sample; ``fields`` are what only the scenario can say of it."""
        options = [*suggestions, self.deal.choice(REFUSALS)]
        self.deal.shuffle(options)
        row = {
            "id": self.id,
            "prompt": self.deal.choice(questions),
            "options": options,
            "categories": self.categories,
            "answer": sentence(self.answer),
            **fields,
        }
        return Scene(row, images)


def sentence(name: str) -> str:
    """A thing's name as a category: ``"an apple"`` is ``"An apple."``."""
    return f"{name[0].upper()}{name[1:]}."
