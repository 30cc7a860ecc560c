"""What a record says of worked examples and earlier turns is what the model was shown."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import fsspec
import pytest
from fakes.probe import ChatReader, Lab
from lmms_eval.api.instance import Instance
from PIL import Image

from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.transcripts.transcript import ExampleRecord, Transcript, TurnRecord

#: A conversation: the pixels of an image, a text, and the answer, for each exchange.
Shown = list[tuple[bytes, str, str | None]]

STUDIES = {
    "proactivebench-icl_rod": 2,
    "proactivebench-icl_mvpn": 2,
    "proactivebench-icl-cot_rod": 2,
    "proactivebench-icl-generic_coco": 1,  # with windows
    "proactivebench-icl-generic_changeit": 1,
    "proactivebench-history_quickdraw": 0,
    "proactivebench-history_coco": 0,
}


def pixels(image: Image.Image) -> bytes:
    return f"{image.size} ".encode() + image.tobytes()


class Watching(ChatReader):
    """Keeps all that it is shown, by the id of the sample, turn by turn."""

    def __init__(self) -> None:
        super().__init__(4)
        self.shown: dict[int, list[Shown]] = {}

    def turn(self, visual: Callable[..., Any], request: Instance) -> tuple[Image.Image, str]:
        talk = visual(self.doc(request))
        asked = [message["content"] for message in talk if message["role"] == "user"]
        said = [m["content"][0]["text"] for m in talk if m["role"] == "assistant"]
        self.shown.setdefault(self.doc(request)["id"], []).append(
            [
                (pixels(image["url"]), text["text"], answer)
                for (image, text), answer in zip(asked, [*said, None], strict=True)
            ]
        )
        return asked[-1][0]["url"], asked[-1][1]["text"]


def read_back(record: Transcript) -> list[Shown]:
    """What a record says was shown, for each turn in which the model was asked."""
    return [
        [
            *map(exchange, record.examples),
            *(exchange(past) for past in record.turns[:position] if record.variant.history),
            (*exchange(turn)[:2], None),
        ]
        for position, turn in enumerate(record.turns)
        if not turn.reused
    ]


def exchange(part: ExampleRecord | TurnRecord) -> tuple[bytes, str, str | None]:
    with fsspec.open(part.file) as file:
        image = Image.open(file).convert("RGB")
    if part.crop is not None:
        image = image.crop(tuple(part.crop.to_list()))  # type: ignore[arg-type]
    return pixels(image), str(part.text), part.answer


def records(raw: Mapping[str, Any], task: str) -> dict[int, Transcript]:
    texts = (row["filtered_resps"][0] for row in raw["samples"][task])
    return {record.id: record for record in map(Transcript.from_json, texts)}


@pytest.mark.parametrize("place", ["folder", "archive"])
@pytest.mark.parametrize("task", STUDIES)
def test_all_that_was_shown_is_read_back_from_the_record(lab: Lab, task: str, place: str) -> None:
    dataset = Dataset.of_task(task.rpartition("_")[2])
    lab.make(dataset)
    if place == "archive":
        shutil.make_archive(str(lab.data / "images"), "zip", lab.data, dataset.value)
        shutil.rmtree(lab.data / dataset.value)
    model = Watching()
    found = records(lab.evaluate(model, task).raw, task)
    assert {i: read_back(record) for i, record in found.items()} == model.shown
    assert min(len(turn) for turns in model.shown.values() for turn in turns) > STUDIES[task]
    assert max(len(turn) for turns in model.shown.values() for turn in turns) > 1
    files = [turn.file for record in found.values() for turn in record.turns]
    assert all(str(file).startswith("zip://") == (place == "archive") for file in files)


def test_row_of_a_samples_file_says_the_same_as_its_record(lab: Lab) -> None:
    lab.make(Dataset.ROD)
    outcome = lab.evaluate(Watching(), task := "proactivebench-icl_rod")
    for row in outcome.raw["samples"][task]:
        assert row["transcript"] == json.loads(row["filtered_resps"][0])
        assert row["transcript"]["examples"]
