"""A small world in the official layout whose images say, in their pixels, what they are.

Every pixel is (R, G, B) = (sample's number modulo 256, image number, dataset's number). COCO's
only image is (x, y, sample's number), so that a crop tells where it was cut. Prompts name the id.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from proactivebench_tasks.protocol.samples import Dataset

CATEGORIES = ["An apple.", "A boat.", "A cup.", "A dog."]
REFUSAL = "I cannot tell."
COCO_SIZE = 128
DATASETS = list(Dataset)


def prompt(sample_id: int) -> str:
    return f"What is sample {sample_id}?"


def rows(dataset: Dataset, ids: list[int]) -> list[dict[str, Any]]:
    """One row for each id; maximum lengths run from 1 to 6."""
    return [_row(dataset, number, sample_id) for number, sample_id in enumerate(ids)]


def _row(dataset: Dataset, number: int, sample_id: int) -> dict[str, Any]:
    turns = 1 + number % 6
    stem = f"{dataset.value}/{number}"
    row: dict[str, Any] = {
        "id": sample_id,
        "prompt": prompt(sample_id),
        "categories": CATEGORIES,
        "answer": CATEGORIES[number % 4],
        "image_template": f"{stem}_{{image}}.png",
        "first_image": 0,
        "num_images": turns,
        "reference_image": 0,
    }
    if dataset is Dataset.ROD:
        row["num_images"] = turns + 1  # a sample that can be solved
        row["options"] = ["Move it to the left.", REFUSAL, "Move it to the right."]
    elif dataset is Dataset.VSOD:
        row["strong_occlusions"] = True
        row["options"] = ["Wait for the bus.", "Rewind the video.", REFUSAL]
    elif dataset is Dataset.MVPN:
        row["image_template"] = f"{stem}_{{informative}}_{{image}}.png"
        row["valid_images"] = list(range(turns))
        row["options"] = [REFUSAL, "Show another view."]
    elif dataset is Dataset.IMAGENETC:
        row["image_template"] = f"{stem}_{{level}}.png"
        row["first_image"] = turns - 1
        row["quality_answer"] = "Deblur it."
        row["options"] = ["Raise the contrast.", "Deblur it.", REFUSAL]
    elif dataset is Dataset.QUICKDRAW:
        row["options"] = [REFUSAL, "Add details."]
    elif dataset is Dataset.CHANGEIT:
        row["num_images"] = turns + 1
        row["step_size"] = 1
        row["max_steps"] = turns
        row["options"] = ["Rewind the video.", "Wait for the end.", REFUSAL]
    else:
        row["image_template"] = f"{stem}.png"
        row["direction"] = "left"
        row["granularity"] = turns
        row["horizontal_step"] = row["vertical_step"] = 8
        row["crop"] = {"top": 16, "left": 64, "height": 96, "width": 112}
        row["options"] = ["Move the camera to the left.", REFUSAL, "Move the camera up."]
    return row


def write(folder: Path, dataset: Dataset, table: list[dict[str, Any]]) -> None:
    """Write a dataset's jsonl and its images."""
    (folder / dataset.value).mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in table)
    (folder / dataset.jsonl).write_text(text)
    for number, row in enumerate(table):
        if dataset is Dataset.COCO:
            y, x = np.mgrid[:COCO_SIZE, :COCO_SIZE]
            pixels = np.stack([x, y, np.full_like(x, number % 256)], axis=-1)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / row["image_template"])
            continue
        for image in range(row["num_images"]):
            colour = (number % 256, image, DATASETS.index(dataset))
            for name in _names(dataset, row, image):
                Image.new("RGB", (32, 32), colour).save(folder / name)


def _names(dataset: Dataset, row: dict[str, Any], image: int) -> set[str]:
    padded = dataset in (Dataset.VSOD, Dataset.MVPN, Dataset.QUICKDRAW)
    number = f"{image:04d}" if padded else image
    template = row["image_template"]
    return {template.format(image=number, level=image, informative=i) for i in (0, 1)}


def make(folder: Path, ids: dict[Dataset, list[int]]) -> Path:
    """A data folder with the samples of these ids."""
    for dataset, wanted in ids.items():
        write(folder, dataset, rows(dataset, wanted))
    return folder
