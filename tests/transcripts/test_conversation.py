"""Conversations: what a model sees when earlier turns or worked examples are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fakes import world

from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.random_mode import as_played, suggestions
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.rollout import icl as examples
from proactivebench_tasks.rollout.rollout import Play, start
from proactivebench_tasks.transcripts.conversation import Exchange, interleaved, messages
from proactivebench_tasks.transcripts.variant import Variant


def docs(dataset: Dataset, count: int = 12) -> list[dict[str, Any]]:
    """Documents as the harness would hand them out; the demo's wording."""
    place = {"dataset": dataset.value, "source": "demo"}
    rows = world.rows(dataset, list(range(count)))
    return [place | {"line": n + 1} | row for n, row in enumerate(rows)]


def play(pool: Sequence[dict[str, Any]], number: int, **setting: Any) -> Play:
    return start(None, 0, pool[number], Variant(**setting), pool)  # type: ignore[arg-type]


def test_chat_messages_are_written_as_expected() -> None:
    talk = [Exchange("a.png", None, "What is it?", "Show more."), Exchange("b.png", None, "And?")]
    assert messages(talk, ["A", "B"]) == [
        {
            "role": "user",
            "content": [{"type": "image", "url": "A"}, {"type": "text", "text": "What is it?"}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Show more."}]},
        {
            "role": "user",
            "content": [{"type": "image", "url": "B"}, {"type": "text", "text": "And?"}],
        },
    ]


def test_simple_text_says_where_the_pictures_go() -> None:
    talk = [Exchange("a.png", None, "What is it?", "Show more."), Exchange("b.png", None, "And?")]
    assert interleaved(talk) == "<image 1>\nWhat is it?\n\nShow more.\n\n<image 2>\nAnd?"


def test_without_history_a_turn_stands_alone() -> None:
    turn = play(docs(Dataset.QUICKDRAW), 3)
    turn.answer("Add details.")
    assert [e.image for e in turn.conversation] == ["QuickDraw/3_0001.png"]
    assert turn.text == turn.seen.text


def test_history_keeps_picture_prompt_and_answer_of_each_turn() -> None:
    turn = play(docs(Dataset.QUICKDRAW), 3, history=True)
    first = turn.seen.text
    turn.answer("Add details.")
    second = turn.seen.text
    turn.answer("B")
    assert turn.conversation == (
        Exchange("QuickDraw/3_0000.png", None, first, "Add details."),
        Exchange("QuickDraw/3_0001.png", None, second, "B"),
        Exchange("QuickDraw/3_0002.png", None, turn.seen.text),
    )


def test_history_holds_the_answer_without_thinking() -> None:
    turn = play(docs(Dataset.QUICKDRAW), 3, history=True, strip_thinking=True)
    turn.answer("<think>hm</think>Add details.")
    assert turn.conversation[0].answer == "Add details."


def test_rod_example_asks_once_and_answers() -> None:
    pool = docs(Dataset.ROD)
    (asked, answered) = play(pool, 0, icl=1).examples
    other = next(d for d in pool if asked.image.startswith(f"{d['dataset']}/{d['id']}_"))
    assert asked.answer in ("Move it to the left.", "Move it to the right.")
    assert asked.image.endswith("_0.png")
    assert answered.answer == other["answer"]
    assert answered.image != asked.image or other["num_images"] == 1


def test_mvpn_example_goes_on_to_the_informative_view() -> None:
    pool = docs(Dataset.MVPN)
    for number in range(len(pool)):
        *asked, last = play(pool, number, icl=1).examples
        assert [e.answer for e in asked] == ["Show another view."] * len(asked)
        assert "_1_" in last.image  # the informative one
        assert all("_0_" in e.image for e in asked)


def test_mvpn_example_can_keep_its_ends_only() -> None:
    pool = docs(Dataset.MVPN)
    whole = [play(pool, n, icl=1).examples for n in range(len(pool))]
    ends = [play(pool, n, icl=1, icl_ends_only=True).examples for n in range(len(pool))]
    assert [(e[0], e[-1]) for e in whole] == [(e[0], e[-1]) for e in ends]
    assert {len(e) for e in ends} == {2}


def test_chain_of_thought_precedes_the_suggestion_and_not_the_answer() -> None:
    asked, answered = play(docs(Dataset.ROD), 0, icl=1, cot=True).examples
    thought = BUILTIN.chain_of_thought[Dataset.ROD]
    assert asked.answer is not None and asked.answer.startswith(f"{thought} Move it to the ")
    assert answered.answer in world.CATEGORIES


@pytest.mark.parametrize("dataset", list(Dataset))
def test_examples_share_neither_id_nor_answer_with_the_sample(dataset: Dataset) -> None:
    pool = docs(dataset, 24)
    by_number = {int(d["line"]) - 1: d for d in pool}
    for doc in pool:
        shown = examples.choose(doc, pool, Variant(icl=2, icl_generic=True))
        answers = [e.answer for e in shown if e.answer in world.CATEGORIES]
        assert len(answers) == 2 and doc["answer"] not in answers
        names = {e.image.split("/")[1].split("_")[0].removesuffix(".png") for e in shown}
        assert {by_number[int(n)]["id"] for n in names} & {doc["id"]} == set()


def test_the_generic_example_asks_before_it_answers_on_every_dataset() -> None:
    for dataset in set(Dataset) - {Dataset.MVPN}:  # which goes on to the informative view
        pool = docs(dataset, 24)
        lengths = {len(play(pool, n, icl=1, icl_generic=True).examples) for n in range(24)}
        assert lengths <= {1, 2} and 2 in lengths  # 1: a sample of a single turn


def test_examples_depend_on_the_sample_and_the_seed_alone() -> None:
    pool = docs(Dataset.ROD, 48)
    chosen = [play(pool, n, icl=1).examples for n in range(48)]
    assert chosen == [play(pool, n, icl=1).examples for n in reversed(range(48))][::-1]
    assert chosen != [play(pool, n, icl=1, seed=1).examples for n in range(48)]
    assert len({e[0].image for e in chosen}) > 10


def test_other_datasets_have_no_examples_unless_asked_for() -> None:
    with pytest.raises(HarnessError, match=r"Realistic-Occlusion-Dataset and MVP-N.*icl_generic"):
        play(docs(Dataset.COCO), 0, icl=1)


def test_too_few_samples_for_examples_is_an_error() -> None:
    with pytest.raises(HarnessError, match="lower icl"):
        play(docs(Dataset.ROD, 3), 0, icl=3)


def test_chain_of_thought_where_there_is_none_is_an_error() -> None:
    with pytest.raises(HarnessError, match="chain of thought"):
        play(docs(Dataset.COCO), 0, icl=1, icl_generic=True, cot=True)


def test_a_hint_is_in_the_examples_too() -> None:
    asked, _ = play(docs(Dataset.ROD), 0, icl=1, hint=True).examples
    assert BUILTIN.hint[Dataset.ROD] in asked.text


@pytest.mark.parametrize("dataset", list(Dataset))
def test_random_mode_replaces_suggestions_in_their_places(dataset: Dataset) -> None:
    for doc in docs(dataset):
        sample = parse_sample(dataset, doc)
        played = as_played(dataset, sample, Mode.RANDOM, seed=0)
        for mine, theirs in zip(sample.options, played.options, strict=True):
            assert theirs in suggestions(dataset) if mine != world.REFUSAL else theirs == mine
        assert len(set(played.options)) == len(sample.options)
        assert as_played(dataset, sample, Mode.RANDOM, seed=0) == played
        assert as_played(dataset, sample, Mode.NORMAL, seed=0) is sample


def test_random_mode_varies_with_the_sample() -> None:
    shown = {
        as_played(Dataset.ROD, parse_sample(Dataset.ROD, d), Mode.RANDOM, seed=0).options
        for d in docs(Dataset.ROD)
    }
    assert len(shown) > 3


def test_short_edge_scales_pictures_down_and_never_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    monkeypatch.setattr(documents, "picture", lambda *_: Image.new("RGB", (448, 896)))
    seen = Exchange("a.png", None, "")
    doc = {"source": "demo"}
    assert documents.pixels(doc, seen, 224).size == (224, 448)
    assert documents.pixels(doc, seen, 500).size == (448, 896)
    assert documents.pixels(doc, seen).size == (448, 896)
