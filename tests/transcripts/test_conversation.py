"""Conversations: what a model sees in one turn, and how it is given to chat and simple wrappers.

A task's YAML may ask for earlier turns (``history``) and worked examples (``icl``) in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fakes import world
from PIL import Image

from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.rollout import icl, visuals
from proactivebench_tasks.rollout.rollout import Rollout, start
from proactivebench_tasks.transcripts.answer import Answer
from proactivebench_tasks.transcripts.conversation import Exchange, interleaved, messages
from proactivebench_tasks.transcripts.thinking import Tags
from proactivebench_tasks.transcripts.variant import Variant


def docs(dataset: Dataset, count: int = 12) -> list[dict[str, Any]]:
    """Documents as the harness would hand them out, to be played with the demo's wording.

    The one at position ``n`` is the world's sample with id ``n``.
    """
    place = {"dataset": dataset.value, "suite": "demo"}
    rows = world.rows(dataset, list(range(count)))
    return [
        place | {"line": n + 1, "row": f"{dataset.task}-{n}"} | row for n, row in enumerate(rows)
    ]


def rollout(
    pool: Sequence[dict[str, Any]], number: int, tags: Tags = (), **variant: Any
) -> Rollout:
    """A fresh rollout of a document; ``pool`` is where its worked examples come from."""
    return start(None, 0, pool[number], Variant(**variant), pool, tags)  # type: ignore[arg-type]


def take(played: Rollout, *answers: str) -> None:
    """Go on with these texts of the model, one a turn."""
    for answer in answers:
        played.take(Answer(answer))


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


def test_simple_text_says_where_the_images_go() -> None:
    talk = [Exchange("a.png", None, "What is it?", "Show more."), Exchange("b.png", None, "And?")]
    assert interleaved(talk) == "<image 1>\nWhat is it?\n\nShow more.\n\n<image 2>\nAnd?"


def test_without_history_a_turn_stands_alone() -> None:
    played = rollout(docs(Dataset.QUICKDRAW), 3)
    take(played, "Add details.")
    assert [e.image_path for e in played.conversation] == ["QuickDraw/3_0001.png"]
    assert played.text == played.seen.text


def test_history_keeps_image_prompt_and_answer_of_each_turn() -> None:
    played = rollout(docs(Dataset.QUICKDRAW), 3, history=True)
    first = played.seen.text
    take(played, "Add details.")
    second = played.seen.text
    take(played, "B")
    assert played.conversation == (
        Exchange("QuickDraw/3_0000.png", None, first, "Add details."),
        Exchange("QuickDraw/3_0001.png", None, second, "B"),
        Exchange("QuickDraw/3_0002.png", None, played.seen.text),
    )


def test_history_holds_the_answer_without_thinking() -> None:
    played = rollout(docs(Dataset.QUICKDRAW), 3, (("<think>", "</think>"),), history=True)
    take(played, "<think>hm</think>Add details.")
    assert played.conversation[0].answer == "Add details."


def test_rod_example_asks_once_and_answers() -> None:
    pool = docs(Dataset.ROD)
    (asked, answered) = rollout(pool, 0, icl=1).examples
    other = next(d for d in pool if asked.image_path.startswith(f"{d['dataset']}/{d['id']}_"))
    assert asked.answer in ("Move it to the left.", "Move it to the right.")
    assert asked.image_path.endswith("_0.png")
    assert answered.answer == other["answer"]
    assert answered.image_path != asked.image_path or other["num_images"] == 1


def test_mvpn_example_goes_on_to_the_informative_view() -> None:
    pool = docs(Dataset.MVPN)
    for number in range(len(pool)):
        *asked, last = rollout(pool, number, icl=1).examples
        assert [e.answer for e in asked] == ["Show another view."] * len(asked)
        assert "_1_" in last.image_path  # the informative one
        assert all("_0_" in e.image_path for e in asked)


def test_mvpn_example_can_keep_its_ends_only() -> None:
    pool = docs(Dataset.MVPN)
    whole = [rollout(pool, n, icl=1).examples for n in range(len(pool))]
    ends = [rollout(pool, n, icl=1, icl_ends_only=True).examples for n in range(len(pool))]
    assert [(e[0], e[-1]) for e in whole] == [(e[0], e[-1]) for e in ends]
    assert {len(e) for e in ends} == {2}


def test_chain_of_thought_precedes_the_suggestion_and_not_the_answer() -> None:
    asked, answered = rollout(docs(Dataset.ROD), 0, icl=1, cot=True).examples
    thought = BUILTIN.chain_of_thought[Dataset.ROD]
    assert asked.answer is not None and asked.answer.startswith(f"{thought} Move it to the ")
    assert answered.answer in world.CATEGORIES


@pytest.mark.parametrize("dataset", list(Dataset))
def test_examples_share_neither_id_nor_answer_with_the_sample(dataset: Dataset) -> None:
    pool = docs(dataset, 24)
    for doc in pool:
        shown = icl.choose(doc, pool, Variant(icl=2, icl_generic=True))
        answers = [e.answer for e in shown if e.answer in world.CATEGORIES]
        assert len(answers) == 2 and doc["answer"] not in answers
        names = {e.image_path.split("/")[1].split("_")[0].removesuffix(".png") for e in shown}
        assert doc["id"] not in {pool[int(number)]["id"] for number in names}


def test_the_generic_example_asks_before_it_answers_on_every_dataset() -> None:
    for dataset in set(Dataset) - {Dataset.MVPN}:  # which goes on to the informative view
        pool = docs(dataset, 24)
        lengths = {len(rollout(pool, n, icl=1, icl_generic=True).examples) for n in range(24)}
        assert lengths <= {1, 2} and 2 in lengths  # 1: a sample of a single turn


def test_examples_depend_on_the_sample_and_the_seed_alone() -> None:
    pool = docs(Dataset.ROD, 48)
    chosen = [rollout(pool, n, icl=1).examples for n in range(48)]
    assert chosen == [rollout(pool, n, icl=1).examples for n in reversed(range(48))][::-1]
    assert chosen != [rollout(pool, n, icl=1, seed=1).examples for n in range(48)]
    assert len({e[0].image_path for e in chosen}) > 10


def test_other_datasets_have_no_examples_unless_asked_for() -> None:
    with pytest.raises(HarnessError, match=r"Realistic-Occlusion-Dataset and MVP-N.*icl_generic"):
        rollout(docs(Dataset.COCO), 0, icl=1)


def test_too_few_samples_for_examples_is_an_error() -> None:
    with pytest.raises(HarnessError, match="lower icl"):
        rollout(docs(Dataset.ROD, 3), 0, icl=3)


def test_chain_of_thought_where_there_is_none_is_an_error() -> None:
    with pytest.raises(HarnessError, match="chain of thought"):
        rollout(docs(Dataset.COCO), 0, icl=1, icl_generic=True, cot=True)


def test_a_hint_is_in_the_examples_too() -> None:
    asked, _ = rollout(docs(Dataset.ROD), 0, icl=1, hint=True).examples
    assert BUILTIN.hint["rod"] in asked.text


def test_short_edge_scales_images_down_and_never_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visuals, "load_image", lambda *_: Image.new("RGB", (448, 896)))
    shown = Exchange("a.png", None, "")
    doc = {"suite": "demo"}
    assert visuals.image_of(doc, shown, 224).size == (224, 448)
    assert visuals.image_of(doc, shown, 500).size == (448, 896)
    assert visuals.image_of(doc, shown).size == (448, 896)
