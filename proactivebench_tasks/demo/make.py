"""Draws the demo dataset: ``python -m proactivebench_tasks.demo.make FOLDER``.

FOLDER gets the folders ``test`` and ``train``, each laid out like the official data: seven
``<file stem>_preprocessed.jsonl`` and the images beside them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from PIL import Image

from proactivebench_tasks.demo.case import Case, Scene
from proactivebench_tasks.demo.scenes import changeit, coco, imagenetc, mvpn, quickdraw, rod, vsod
from proactivebench_tasks.protocol.samples import Dataset

SAMPLES = {"test": 16, "train": 12}
COLOURS = 32  # of an image's palette
SCENES: Mapping[Dataset, Callable[[Case], Scene]] = {
    Dataset.ROD: rod.scene,
    Dataset.VSOD: vsod.scene,
    Dataset.MVPN: mvpn.scene,
    Dataset.IMAGENETC: imagenetc.scene,
    Dataset.QUICKDRAW: quickdraw.scene,
    Dataset.CHANGEIT: changeit.scene,
    Dataset.COCO: coco.scene,
}


def make(folder: Path, split: str, *, per_dataset: int | None = None) -> None:
    """Write a split's rows and images into ``folder``; ``per_dataset`` keeps the first few."""
    for dataset in Dataset:
        rows = []
        for scene in _scenes(dataset, split, per_dataset):
            rows.append(json.dumps(scene.row) + "\n")
            for path, image in scene.images.items():
                _write(folder / path, image)
        (folder / dataset.jsonl).write_text("".join(rows), encoding="utf-8")


def _scenes(dataset: Dataset, split: str, count: int | None) -> Iterator[Scene]:
    for index in range(SAMPLES[split])[:count]:
        shared = changeit.SAMPLES_PER_VIDEO if dataset is Dataset.CHANGEIT else 1
        yield SCENES[dataset](Case(dataset, split, index, shared))
    if dataset is Dataset.VSOD and split == "test":  # a row that loaders have to leave out
        yield vsod.scene(Case(dataset, split, SAMPLES[split]), strong=False)


def _write(path: Path, image: Image.Image) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    flat = image.quantize(COLOURS, dither=Image.Dither.NONE)
    flat.save(path, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the folders of the splits go")
    target = parser.parse_args().folder
    for name in SAMPLES:
        make(target / name, name)
