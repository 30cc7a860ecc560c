"""Wording: how a protocol puts its texts together, and what the official one says.

The official texts are not in this repository. ``tests/vectors`` holds the hashes of what the
published package asked in recorded episodes, and ours must have the same.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.errors import ProtocolError
from proactivebench_tasks.protocol import published, versions
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.protocol import Protocol, num_answers, split_answers
from proactivebench_tasks.protocol.samples import Dataset, Sample

VECTORS = Path(__file__).parents[1] / "vectors"
COUNTS = {
    Dataset.ROD: 88,
    Dataset.VSOD: 42,
    Dataset.MVPN: 2591,
    Dataset.IMAGENETC: 1095,
    Dataset.QUICKDRAW: 2105,
    Dataset.CHANGEIT: 396,
    Dataset.COCO: 1240,
}
EXTRA: dict[Dataset, dict[str, Any]] = {
    Dataset.ROD: {},
    Dataset.VSOD: {"strong_occlusions": True},
    Dataset.MVPN: {"image_template": "a/{image}_{informative}.jpg", "valid_images": [0, 1]},
    Dataset.IMAGENETC: {"image_template": "a/{level}.jpg", "quality_answer": "Deblur it."},
    Dataset.QUICKDRAW: {},
    Dataset.CHANGEIT: {"step_size": 1, "max_steps": 2},
    Dataset.COCO: {
        "image_template": "a/b.jpg",
        "direction": "left",
        "granularity": 2,
        "horizontal_step": 1.0,
        "vertical_step": 1.0,
        "crop": {"top": 0, "left": 0, "height": 9, "width": 9},
    },
}


def sample(dataset: Dataset, **fields: object) -> Sample:
    row = {
        "id": 7,
        "image_template": "a/{image}.jpg",
        "first_image": 0,
        "num_images": 2,
        "reference_image": 1,
        "prompt": "Which animal?",
        "options": ["Move it.", "I do not know."],
        "categories": ["Cat.", "Dog."],
        "answer": "Cat.",
    }
    return parse_sample(dataset, row | EXTRA[dataset] | fields)


def vectors(name: str) -> Iterator[Any]:
    with gzip.open(VECTORS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@pytest.mark.parametrize("dataset", Dataset)
def test_prompt_is_the_question_after_the_prefix_if_there_is_one(dataset: Dataset) -> None:
    prefix = {d: f"{BUILTIN.prefix[d]} " for d in (Dataset.VSOD, Dataset.CHANGEIT)}.get(dataset, "")
    assert BUILTIN.prompt(sample(dataset)) == f"{prefix}Which animal?"


@pytest.mark.parametrize("dataset", Dataset)
def test_hint_follows_the_prompt_after_a_space(dataset: Dataset) -> None:
    plain = BUILTIN.prompt(sample(dataset))
    hinted = BUILTIN.prompt(sample(dataset), hint=True)
    assert hinted == f"{plain} {BUILTIN.hint[dataset.task]}"


def test_zoom_sample_has_its_own_hint() -> None:
    hinted = BUILTIN.prompt(sample(Dataset.COCO, direction="zoom"), hint=True)
    assert hinted == f"Which animal? {BUILTIN.hint['coco_zoom']}"


@pytest.mark.parametrize("dataset", Dataset)
def test_reference_mode_replaces_the_question_in_rod_only(dataset: Dataset) -> None:
    plain = BUILTIN.prompt(sample(dataset))
    rod = BUILTIN.reference_question[Dataset.ROD]
    expected = rod if dataset is Dataset.ROD else plain
    assert BUILTIN.prompt(sample(dataset), reference=True) == expected


def test_multiple_choice_letters_one_option_a_line() -> None:
    text = BUILTIN.multiple_choice("Q?", ["Move it.", "Cat."])
    assert text == f"Q?{BUILTIN.options_intro}A. Move it.\nB. Cat.\n{BUILTIN.options_request}"


@pytest.mark.parametrize(
    ("text", "count"), [("Ask", 1), ("Ask,, Two", 2), ("Ask, ", 1), (" ,", 0), ("Ask,.", 2)]
)
def test_blank_pieces_are_no_answers(text: str, count: int) -> None:
    assert num_answers(text) == count


def test_answers_are_split_at_every_comma() -> None:
    assert split_answers("Move it, St. Bernard,Jay, blue.") == [
        "Move it",
        "St Bernard",
        "Jay",
        "blue",
    ]


def test_judge_gets_the_answers_as_a_list_and_braces_as_they_are() -> None:
    system, user = BUILTIN.judge_messages("Q {x}?", "Move it, Cat.", "{generated}")
    assert system == {"role": "system", "content": BUILTIN.judge_system}
    assert user == {
        "role": "user",
        "content": "Question: Q {x}?\nPoints: ['Move it', 'Cat']\nReply: {generated}",
    }


def test_builtin_counts_every_sample() -> None:
    assert BUILTIN.accepts(Dataset.ROD, -1)


def test_protocol_of_a_record_is_found_by_its_version() -> None:
    assert versions.of("builtin-1") is BUILTIN


def test_version_that_this_release_does_not_have_is_named_beside_the_one_it_has() -> None:
    with pytest.raises(ProtocolError, match=r"played by protocol builtin-0, but builtin-1 is"):
        versions.of("builtin-0")


@pytest.mark.network
def test_official_protocol_of_a_record_is_found_by_its_version(official: Protocol) -> None:
    assert versions.of("proactivebench-0.1.1") == official
    with pytest.raises(
        ProtocolError, match=r"proactivebench-0\.1\.0, but proactivebench-0\.1\.1 is"
    ):
        versions.of("proactivebench-0.1.0")


def test_builtin_needs_nothing_of_the_published_package() -> None:
    code = """
import sys
from proactivebench_tasks.protocol.builtin import BUILTIN
unneeded = {"proactivebench", "proactivebench_tasks.protocol.published", "filelock", "torch"}
assert not unneeded & set(sys.modules), unneeded & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.network
def test_official_is_read_once(official: Protocol) -> None:
    assert official.version == "proactivebench-0.1.1"
    assert published.load() is published.load() == official


@pytest.mark.network
@pytest.mark.parametrize("dataset", Dataset)
def test_official_sample_count(official: Protocol, dataset: Dataset) -> None:
    assert official.sample_ids is not None
    assert len(official.sample_ids[dataset]) == COUNTS[dataset]
    assert not official.accepts(dataset, -1)
    assert all(official.accepts(dataset, i) for i in official.sample_ids[dataset])


@pytest.mark.network
def test_official_wording_is_the_recorded_one(official: Protocol) -> None:
    steps = 0
    for episode in vectors("episodes"):
        played = parse_sample(Dataset(episode["dataset"]), episode["sample"])
        reference = episode["mode"] == "reference"
        prompt = official.prompt(played, reference=reference)
        hinted = official.prompt(played, reference=reference, hint=True)
        for step in episode["steps"]:
            assert sha256(prompt) == step["prompt_sha256"]
            assert sha256(hinted) == step["hint_prompt_sha256"]
            text = official.multiple_choice(prompt, step["options"])
            assert sha256(text) == step["mcqa_prompt_sha256"]
            steps += 1
    assert steps == 861


@pytest.mark.network
def test_official_judge_messages_are_the_recorded_ones(official: Protocol) -> None:
    rows = list(vectors("judge"))
    assert len(rows) == 70
    for row in rows:
        system, user = official.judge_messages(
            row["prompt"], row["valid_answers"], row["generated"]
        )
        assert sha256(system["content"]) == row["system_sha256"]
        assert sha256(user["content"]) == row["user_sha256"]


@pytest.mark.network
def test_builtin_shares_no_text_with_the_official_one(official: Protocol) -> None:
    def texts(value: Protocol) -> set[str]:
        single = {value.options_intro, value.options_request}
        single |= {value.oeg_hint, value.judge_system, value.judge_user}
        tables = (value.prefix, value.hint, value.reference_question, value.chain_of_thought)
        return single.union(*(table.values() for table in tables))

    assert not {t.strip() for t in texts(BUILTIN)} & {t.strip() for t in texts(official)}


@pytest.mark.network
def test_both_protocols_have_texts_for_the_same_datasets(official: Protocol) -> None:
    for table in ("prefix", "hint", "reference_question", "chain_of_thought"):
        assert getattr(official, table).keys() == getattr(BUILTIN, table).keys()
