"""Every model call carries what it must: right image, right text, right turn, right sample."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from fakes.probe import (
    ALL,
    COCO,
    GENERATION,
    ROD,
    TOY,
    VSOD,
    ChatProbe,
    Lab,
    Outcome,
    Probe,
    Reader,
    Seen,
    answers,
    expected,
    plan,
    scores,
)
from lmms_eval.api.instance import Instance
from PIL.Image import Image

from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.rollout import visuals
from proactivebench_tasks.rollout.checked_model import CheckedModel
from proactivebench_tasks.rollout.documents import Document
from proactivebench_tasks.rollout.generate import Generator
from proactivebench_tasks.rollout.rollout import Rollout
from proactivebench_tasks.rollout.visuals import Visuals

SEVEN = list(ALL.values())


def check_outcome(lab: Lab, outcome: Outcome) -> None:
    """Transcripts and metrics are those of the same samples played alone."""
    for dataset, count in lab.counts.items():
        alone, task = expected(dataset, count, protocol=lab.protocol), ALL[dataset]
        together = outcome.transcripts[task]
        assert list(together) == [e.sample.id for e in alone]
        for episode, transcript in zip(alone, together.values(), strict=True):
            assert answers(transcript) == [turn.answer for turn in episode.turns]
            assert [t["image"] for t in transcript["turns"]] == [
                t.image_path for t in episode.turns
            ]
            assert transcript["stop"] == episode.turns[-1].stop
        assert outcome.metrics(task) == pytest.approx(scores(alone))


def check_every_turn_was_asked_once(lab: Lab, model: Reader, times: int = 1) -> None:
    for dataset, count in lab.counts.items():
        alone = expected(dataset, count, protocol=lab.protocol)
        asked = [sample for call in model.calls for task, sample in call if task == ALL[dataset]]
        turns = {episode.sample.id: times * len(episode.turns) for episode in alone}
        assert {sample: asked.count(sample) for sample in asked} == turns


def test_plan_gives_episodes_of_one_to_six_turns_and_every_ending() -> None:
    episodes = [e for d in Dataset for e in expected(d, 14)]
    assert {len(e.turns) for e in episodes} >= {1, 2, 3, 4, 5, 6}
    assert {e.turns[-1].stop for e in episodes} == {"solved", "wrong", "mismatch", "max_turns"}


@pytest.mark.parametrize("wrapper", [Probe, ChatProbe])
@pytest.mark.parametrize("batch", [1, 4, 64])
@pytest.mark.parametrize("style", ["own", "first", "sorted", "threads"])
def test_turns_belong_to_their_samples(
    lab: Lab, wrapper: type[Probe], batch: int, style: str
) -> None:
    lab.make(Dataset.ROD, Dataset.COCO)
    model = wrapper(batch, style)
    check_outcome(lab, lab.evaluate(model, ROD, COCO))
    check_every_turn_was_asked_once(lab, model)


@pytest.mark.parametrize("wrapper", [Probe, ChatProbe])
def test_seven_tasks_in_one_run(lab: Lab, wrapper: type[Probe]) -> None:
    lab.make(*Dataset)
    model = wrapper(4, "sorted")
    check_outcome(lab, lab.evaluate(model, *SEVEN))
    check_every_turn_was_asked_once(lab, model)


@pytest.mark.parametrize("wrapper", [Probe, ChatProbe])
@pytest.mark.parametrize("batch", [1, 4])
def test_seven_tasks_with_a_response_cache(lab: Lab, wrapper: type[Probe], batch: int) -> None:
    lab.make(*Dataset, count=7)
    model = wrapper(batch, "first")
    check_outcome(lab, lab.evaluate(model, *SEVEN, use_cache=str(lab.folder / "responses")))
    check_every_turn_was_asked_once(lab, model)


@pytest.mark.parametrize("wrapper", [Probe, ChatProbe])
@pytest.mark.parametrize("style", ["own", "sorted", "threads"])
def test_more_samples_than_the_window(lab: Lab, wrapper: type[Probe], style: str) -> None:
    lab.monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "6")
    lab.make(Dataset.COCO, Dataset.MVPN, count=20)
    model = wrapper(4, style)
    check_outcome(lab, lab.evaluate(model, COCO, ALL[Dataset.MVPN]))
    check_every_turn_was_asked_once(lab, model)


@pytest.mark.parametrize("wrapper", [Probe, ChatProbe])
def test_repeats_are_played_one_after_the_other(lab: Lab, wrapper: type[Probe]) -> None:
    lab.make(Dataset.ROD, Dataset.VSOD, Dataset.COCO)
    model = wrapper(4)  # it fails if a document is there twice in a call, or a wave starts early
    check_outcome(lab, lab.evaluate(model, ROD, VSOD, COCO, repeats=3))
    check_every_turn_was_asked_once(lab, model, times=3)


def test_repeats_give_a_transcript_each(lab: Lab) -> None:
    lab.make(Dataset.VSOD)
    shown: Counter[int] = Counter()

    def other_in_the_third_wave(seen: Seen) -> str:
        shown[seen.number] += seen.turn == 0
        return "no option" if shown[seen.number] == 3 else plan(seen)

    outcome = lab.evaluate(Reader(4, answer=other_in_the_third_wave), VSOD, repeats=3)
    alone = [[turn.answer for turn in e.turns] for e in expected(Dataset.VSOD, 14)]
    for row, wanted in zip(outcome.raw["samples"][VSOD], alone, strict=True):
        played = [answers(json.loads(text)) for text in row["resps"][0]]
        assert played == [wanted, wanted, ["no option"]]


class WithToy:
    """Answers the toy task, which knows no images of ours, too."""

    toy_calls: list[int]

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        if requests[0].args[4] != TOY:
            return super().generate_until(requests)  # type: ignore[misc]
        self.__dict__.setdefault("toy_calls", []).append(len(requests))
        return [f"answer to {request.args[0]}" for request in requests]


class ToyProbe(WithToy, Probe):
    pass


class ChatToyProbe(WithToy, ChatProbe):
    pass


@pytest.mark.parametrize("wrapper", [ToyProbe, ChatToyProbe])
@pytest.mark.parametrize("repeats", [1, 3])
def test_other_multi_turn_tasks_are_played_by_the_harness(
    lab: Lab, wrapper: type[Probe], repeats: int
) -> None:
    lab.make(Dataset.ROD, Dataset.COCO)
    model = wrapper(4)
    outcome = lab.evaluate(model, ROD, TOY, COCO, repeats=repeats)
    check_outcome(lab, outcome)
    assert outcome.raw["results"][TOY]["right,none"] == 1
    assert model.toy_calls == [1] * 6 * repeats  # type: ignore[attr-defined]


@pytest.mark.network
@pytest.mark.parametrize("wrapper", [Probe, ChatProbe])
def test_official_wording(lab: Lab, official: Protocol, wrapper: type[Probe]) -> None:
    lab.protocol = official
    lab.make(*Dataset, count=7)
    outcome = lab.evaluate(wrapper(4), *SEVEN)
    check_outcome(lab, outcome)
    transcripts: Mapping[int, Any] = outcome.transcripts[ROD]
    assert {t["protocol"] for t in transcripts.values()} == {official.version}


def _other_sample(image: str) -> str:
    stem, _, rest = image.rpartition("/")[2].partition("_")
    return f"{Dataset.ROD.value}/{(int(stem) + 1) % 14}_{rest}"


@pytest.mark.parametrize("wrapper", [Probe, ChatProbe])
@pytest.mark.parametrize("fault", ["image", "turn", "text", "callable", "arguments"])
def test_probe_notices_what_does_not_fit(lab: Lab, wrapper: type[Probe], fault: str) -> None:
    """The proof above is worth something only if the probe can fail."""
    lab.make(Dataset.ROD)
    image_of, request = visuals.image_of, Generator._request
    shared = dict(GENERATION)

    def wrong_image(doc: Document, shown: Any, short_edge: int = 0) -> Image:
        if fault == "image":
            path = _other_sample(shown.image_path)
        else:  # every ROD sample has images 0 and 1
            path = shown.image_path.replace("_0.png", "_1.png")
        return image_of(doc, replace(shown, image_path=path), short_edge)

    def wrong_request(self: Generator, rollout: Rollout, given: Visuals) -> Instance:
        instance = request(self, rollout, given)
        if fault == "text":
            text = instance.args[0].replace(f"sample {rollout.doc['id']}", "sample 100")
            instance.arguments = (text, *instance.args[1:])
        else:
            own = [partial(given) if arg is given else arg for arg in instance.args]
            instance.arguments = tuple(own)
        return instance

    def shared_arguments(self: CheckedModel, request: Instance) -> Instance:
        own = [shared if isinstance(arg, dict) else arg for arg in request.args]
        return replace(request, arguments=tuple(own))

    if fault in ("image", "turn"):
        lab.monkeypatch.setattr(visuals, "image_of", wrong_image)
    elif fault == "arguments":
        lab.monkeypatch.setattr(CheckedModel, "_for_wrapper", shared_arguments)
    else:
        lab.monkeypatch.setattr(Generator, "_request", wrong_request)
    with pytest.raises(pytest.fail.Exception, match="disagreements"):
        lab.evaluate(wrapper(4), ROD)
