"""The runner: what fails alone, what is not asked twice, how many are in play, what is recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fakes.probe import (
    ALL,
    COCO,
    GENERATION,
    ROD,
    VSOD,
    ChatReader,
    Lab,
    Outcome,
    Probe,
    Reader,
    Seen,
    count_decodes,
    expected,
    sample_id,
    scores,
    world,
)
from lmms_eval import evaluator
from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts

from proactivebench_tasks import errors, hooks
from proactivebench_tasks.data import prepared
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.rollout import runner, visuals

FAILURE = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] boom"
FAULTY = 4  # number of the sample at fault, which the plan lets ask four times
FAULTY_ID = sample_id(FAULTY, Dataset.VSOD)
VSOD_CLEAN = {e.sample.id: [t.answer for t in e.turns] for e in expected(Dataset.VSOD, 14)}


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.make(Dataset.VSOD)
    return lab


def has(number: int, requests: Sequence[Instance]) -> bool:
    return any(request.args[3] == number for request in requests)


def check_only_one_failed(outcome: Outcome, error: str, turns: int = 0) -> None:
    """``FAULTY`` failed after so many turns, with this error; the others are as in a clean run."""
    assert list(outcome.failed(VSOD)) == [FAULTY_ID]
    assert error in outcome.failed(VSOD)[FAULTY_ID]
    given = outcome.answers(VSOD)
    assert given.pop(FAULTY_ID) == VSOD_CLEAN[FAULTY_ID][:turns]
    assert given == {i: a for i, a in VSOD_CLEAN.items() if i != FAULTY_ID}
    played = [e for e in expected(Dataset.VSOD, 14) if e.sample.id != FAULTY_ID]
    alone, together = scores(played), outcome.metrics(VSOD)
    assert together.pop("failed") == pytest.approx(100 / 14)
    alone.pop("failed")
    assert together == pytest.approx({name: value * 13 / 14 for name, value in alone.items()})
    assert outcome.transcripts[VSOD][FAULTY_ID]["stop"] == "failed"


# Samples that fail.


@pytest.mark.parametrize("wrapper", [Reader, ChatReader, Probe])
@pytest.mark.parametrize("batch", [1, 4, 64])
def test_exception_fails_the_sample_at_fault_alone(
    lab: Lab, wrapper: type[Reader], batch: int
) -> None:
    def raise_for_one(call: int, requests: list[Instance]) -> None:
        if has(FAULTY, requests):
            raise ValueError("boom")

    outcome = lab.evaluate(wrapper(batch, before=raise_for_one), VSOD)
    check_only_one_failed(outcome, "ValueError: boom")


def test_exception_in_a_later_turn_keeps_the_turns_before(lab: Lab) -> None:
    def raise_from_the_second_call_on(call: int, requests: list[Instance]) -> None:
        if call > 1 and has(FAULTY, requests):
            raise ValueError("boom")

    outcome = lab.evaluate(Probe(4, before=raise_from_the_second_call_on), VSOD)
    check_only_one_failed(outcome, "ValueError: boom", turns=1)


def test_two_samples_at_fault(lab: Lab) -> None:
    def raise_for_two(call: int, requests: list[Instance]) -> None:
        if has(3, requests) or has(11, requests):
            raise ValueError("boom")

    outcome = lab.evaluate(Probe(4, before=raise_for_two), VSOD)
    failed = [sample_id(n, Dataset.VSOD) for n in (3, 11)]
    assert list(outcome.failed(VSOD)) == failed
    others = {i: a for i, a in VSOD_CLEAN.items() if i not in failed}
    assert {i: a for i, a in outcome.answers(VSOD).items() if i not in failed} == others


@pytest.mark.parametrize(
    "response",
    [
        *(FAILURE, GenerationResult(FAILURE), (FAILURE, {}), None, ["a", "b", "c"], []),
        *(5, b"A", {"text": "A"}, ("A",), ("A", None)),
    ],
    ids=lambda response: repr(response)[:24],
)
def test_a_response_that_is_no_answer_fails_its_sample_alone(lab: Lab, response: Any) -> None:
    def no_answer(answer: str, request: Instance) -> Any:
        return response if has(FAULTY, [request]) else answer

    outcome = lab.evaluate(Probe(4, twist=no_answer), VSOD)
    check_only_one_failed(outcome, "GenerationError: wrapper Probe returned no answer")


def test_a_failure_in_a_later_turn_keeps_the_turns_before(lab: Lab) -> None:
    asked = Counter[int]()

    def fails_in_the_third_turn(answer: str, request: Instance) -> str:
        asked[request.args[3]] += 1
        return FAILURE if has(FAULTY, [request]) and asked[FAULTY] == 3 else answer

    outcome = lab.evaluate(Probe(4, twist=fails_in_the_third_turn), VSOD)
    check_only_one_failed(outcome, "boom", turns=2)


@pytest.mark.parametrize("change", [lambda r: r[:-1], lambda r: [*r, ""], lambda r: []])
def test_a_wrong_number_of_responses_fails_the_sample_at_fault_alone(
    lab: Lab, change: Callable[[list[Any]], list[Any]]
) -> None:
    class Miscounting(Reader):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            responses = super().generate_until(requests)
            return change(responses) if has(FAULTY, requests) else responses

    outcome = lab.evaluate(Miscounting(4), VSOD)
    check_only_one_failed(outcome, "HarnessError: wrapper Miscounting returned")


def test_a_flaky_wrapper_fails_only_samples_that_failed_alone(lab: Lab) -> None:
    alone: set[int] = set()

    def raise_in_every_third_call(call: int, requests: list[Instance]) -> None:
        if call % 3 == 0:
            if len(requests) == 1:
                alone.add(sample_id(requests[0].args[3], Dataset.VSOD))
            raise TimeoutError("flaky")

    outcome = lab.evaluate(Probe(4, before=raise_in_every_third_call), VSOD)
    assert 0 < len(alone) < 14
    assert set(outcome.failed(VSOD)) == alone
    others = {i: a for i, a in VSOD_CLEAN.items() if i not in alone}
    assert {i: a for i, a in outcome.answers(VSOD).items() if i not in alone} == others


@pytest.mark.parametrize("kind", [iter, dict.fromkeys, lambda answers: None])
def test_responses_that_are_no_list_are_named(lab: Lab, kind: Any) -> None:
    class Odd(Reader):
        def generate_until(self, requests: list[Instance]) -> Any:
            return kind(super().generate_until(requests))

    with pytest.raises(errors.HarnessError, match=r"wrapper Odd returned a .*, not a list"):
        lab.evaluate(Odd(4), VSOD)


class Broken(Reader):
    """Nothing works; every error is another one."""

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        self.calls.append([(r.args[4], r.args[3]) for r in requests])
        raise RuntimeError(f"call {len(self.calls)}, {len(requests)} samples")


def test_if_every_sample_fails_the_first_error_is_raised(lab: Lab) -> None:
    model = Broken(4)
    with pytest.raises(RuntimeError, match="call 4, 1 samples"):  # 14, 7, 3, 1: the first alone
        lab.evaluate(model, VSOD)
    assert model.turns <= 14 * 5


def test_if_nothing_works_the_run_ends_early(lab: Lab) -> None:
    lab.make(Dataset.VSOD, count=40)
    lab.monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "4")
    model = Broken(4)
    with pytest.raises(RuntimeError, match="1 samples"):
        lab.evaluate(model, VSOD)
    assert len(model.calls) == 7  # 4, 2, 1, 1, 2, 1, 1


def test_if_every_sample_fails_without_raising_the_first_error_is_raised(lab: Lab) -> None:
    asked: list[int] = []

    def fail(answer: str, request: Instance) -> str:
        asked.append(request.args[3])
        return f"[LMMS_EVAL_REQUEST_FAILED after 3 retries] {request.args[3]}."

    with pytest.raises(errors.GenerationError) as caught:
        lab.evaluate(Probe(4, twist=fail), VSOD)
    assert f"3 retries] {asked[0]}." in str(caught.value)
    assert len(asked) == 14


# Images that cannot be shown.


def image_path(number: int, image: int) -> str:
    """Path below the data folder."""
    return f"{Dataset.VSOD.value}/{number}_{image:04d}.png"


class Swallowing(Reader):
    """Returns nothing for a call in which anything goes wrong, as llava_hf does."""

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        try:
            return super().generate_until(requests)
        except Exception:
            return [""] * len(requests)


class SwallowingEach(Reader):
    """Returns nothing for a request in which anything goes wrong."""

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        responses: list[Any] = []
        for request in requests:
            try:
                responses += super().generate_until([request])
            except Exception:
                responses.append("")
        return responses


def remove(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:60])


def scribble(path: Path) -> None:
    path.write_text("no image")


@pytest.mark.parametrize(
    "damage",
    [
        remove,
        scribble,
        truncate,  # which lmms-eval lets pass, for the whole process
    ],
)
@pytest.mark.parametrize(
    "model",
    [
        lambda: Reader(4),
        lambda: ChatReader(4),
        lambda: Reader(4, "threads"),
        lambda: Probe(64, "sorted"),
        lambda: SwallowingEach(4),
    ],
    ids=["simple", "chat", "threads", "sorted", "swallowing"],
)
def test_a_bad_image_fails_its_sample_alone(
    lab: Lab, model: Callable[[], Reader], damage: Callable[[Path], None]
) -> None:
    damage(lab.data / image_path(FAULTY, 2))
    outcome = lab.evaluate(model(), VSOD)
    check_only_one_failed(outcome, f"DataError: image {image_path(FAULTY, 2)} ", turns=2)
    assert str(lab.data) in outcome.failed(VSOD)[FAULTY_ID]


@pytest.mark.parametrize("batch", [1, 4, 64])
def test_a_wrapper_that_swallows_a_whole_call_fails_no_other_sample(lab: Lab, batch: int) -> None:
    remove(lab.data / image_path(FAULTY, 0))
    check_only_one_failed(lab.evaluate(Swallowing(batch), VSOD), "DataError: image")


@pytest.mark.parametrize("wrapper", [Reader, ChatReader, Swallowing])
@pytest.mark.parametrize("batch", [1, 4])
def test_no_call_is_made_for_an_image_that_cannot_be_shown(
    lab: Lab, wrapper: type[Reader], batch: int
) -> None:
    for number in (1, FAULTY, 9):
        truncate(lab.data / image_path(number, 0))
    model = wrapper(batch)
    outcome = lab.evaluate(model, VSOD)
    failed = [sample_id(number, Dataset.VSOD) for number in (1, FAULTY, 9)]
    assert list(outcome.failed(VSOD)) == failed
    turns = sum(len(given) for i, given in VSOD_CLEAN.items() if i not in failed)
    assert model.turns == turns  # each asked about once: no call was made in vain, none split


def test_a_malformed_row_fails_its_sample_alone(lab: Lab) -> None:
    rows = world.rows(Dataset.CHANGEIT, [sample_id(n, Dataset.CHANGEIT) for n in range(4)])
    rows[1] |= {"num_images": 1, "max_steps": 3}  # its suggestion leads out of the video
    world.write(lab.data, Dataset.CHANGEIT, rows)
    model = Probe(4)
    model.advance = lambda requests, given: None  # type: ignore[method-assign]
    model.follow = lambda requests, seen: None  # type: ignore[method-assign]
    task = ALL[Dataset.CHANGEIT]
    outcome = lab.evaluate(model, task)
    assert list(outcome.failed(task)) == [rows[1]["id"]]
    assert "DataError" in outcome.failed(task)[rows[1]["id"]]


# Answers that are not asked for again.


def back_and_forth(seen: Seen) -> str:
    return "Wait for the bus." if seen.turn == 0 else "Rewind the video."


def play_back_and_forth(lab: Lab, model: Reader, **kwargs: Any) -> Outcome:
    model.answer = back_and_forth
    return lab.evaluate(model, VSOD, **kwargs)


def asked_and_reused(outcome: Outcome) -> tuple[int, int]:
    turns = [turn for t in outcome.transcripts[VSOD].values() for turn in t["turns"]]
    reused = sum(turn.get("reused", False) for turn in turns)
    return len(turns) - reused, reused


def test_a_greedy_model_is_not_asked_about_what_it_has_seen(lab: Lab) -> None:
    model = Reader(4)
    outcome = play_back_and_forth(lab, model)
    episodes = expected(Dataset.VSOD, 14, back_and_forth)
    distinct = sum(len({turn.image_path for turn in e.turns}) for e in episodes)
    total = sum(len(e.turns) for e in episodes)
    assert model.turns == distinct < total
    assert asked_and_reused(outcome) == (distinct, total - distinct)
    reused = outcome.raw["proactivebench"]["tasks"][VSOD]["metrics"]["reused"]
    assert reused["mean"] == pytest.approx((total - distinct) / 14)
    assert outcome.metrics(VSOD) == pytest.approx(scores(episodes))


@pytest.mark.parametrize(
    ("arguments", "merged"),
    [
        ("do_sample=True", {"do_sample": True}),
        ("temperature=0.7", {"temperature": 0.7}),
        ("do_sample=True,temperature=1", {"do_sample": True, "temperature": 1}),
    ],
)
def test_a_sampling_model_is_asked_every_turn(
    lab: Lab, arguments: str, merged: dict[str, Any]
) -> None:
    model = Reader(4)
    model.generation = GENERATION | merged
    outcome = play_back_and_forth(lab, model, gen_kwargs=arguments)
    total = sum(len(e.turns) for e in expected(Dataset.VSOD, 14, back_and_forth))
    assert model.turns == total
    assert asked_and_reused(outcome) == (total, 0)


def test_a_model_that_says_it_is_not_deterministic_is_asked_every_turn(lab: Lab) -> None:
    model = Reader(4)
    model.deterministic = False  # type: ignore[attr-defined]
    outcome = play_back_and_forth(lab, model)
    assert asked_and_reused(outcome) == (model.turns, 0)


def test_answers_are_not_reused_in_another_repeat(lab: Lab) -> None:
    once, thrice = Reader(4), Reader(4)
    play_back_and_forth(lab, once)
    play_back_and_forth(lab, thrice, repeats=3)
    assert thrice.turns == 3 * once.turns


# Copies that keep ranks in step.


def requests_of(lab: Lab, model: Reader, count: int) -> list[Instance]:
    """Requests as the harness makes them for the first documents of a task."""
    text = Path(prepared.vsod).read_text()
    docs = [json.loads(line) for line in text.splitlines()]
    model.task_dict[VSOD] = {"test": docs}
    callable_text = partial(hooks.doc_to_text, lmms_eval_specific_kwargs=None)
    return [
        Instance(
            request_type="generate_until_agentic",
            arguments=(
                hooks.doc_to_text(docs[n]),
                dict(GENERATION),
                hooks.doc_to_visual,
                callable_text,
                n,
                VSOD,
                "test",
            ),
            idx=0,
            metadata={"task": VSOD, "doc_id": n, "repeats": 1, "split": "test"},
        )
        for n in range(count)
    ]


def test_padding_copies_get_a_response_and_no_work(lab: Lab) -> None:
    model = Probe(4)
    requests = requests_of(lab, model, 5)
    padding = evaluator._clone_padding_request(requests[-1])
    responses = runner.run(model, [*requests, padding, padding])
    assert len(responses) == 7
    assert responses[5:] == ["", ""]
    ids = [sample_id(n, Dataset.VSOD) for n in range(5)]
    assert [json.loads(r.text)["id"] for r in responses[:5]] == ids
    assert model.turns == sum(len(VSOD_CLEAN[i]) for i in ids)


def test_a_rank_with_padding_copies_only_calls_nothing(lab: Lab) -> None:
    model = Probe(4)
    padding = evaluator._clone_padding_request(requests_of(lab, model, 1)[0])
    assert runner.run(model, [padding, padding]) == ["", ""]
    assert model.calls == []


def test_requests_in_any_order_get_their_own_responses(lab: Lab) -> None:
    lab.monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "4")
    model = Probe(3)
    requests = requests_of(lab, model, 14)[::-1]
    responses = evaluator._run_generate_until_agentic(model, requests)
    wanted = [sample_id(n, Dataset.VSOD) for n in range(14)][::-1]
    assert [json.loads(r.text)["id"] for r in responses] == wanted


# Token counts.


def test_token_counts_are_summed_over_turns(lab: Lab) -> None:
    def counted(answer: str, request: Instance) -> Any:
        return GenerationResult(answer, TokenCounts(10, 2, 1))

    outcome = lab.evaluate(Probe(4, twist=counted), VSOD)
    for sample, given in VSOD_CLEAN.items():
        n = len(given)
        wanted = {"input_tokens": 10 * n, "output_tokens": 2 * n, "reasoning_tokens": n}
        assert outcome.tokens[VSOD][sample] == wanted


def test_without_token_counts_none_are_made_up(lab: Lab) -> None:
    assert set(lab.evaluate(Probe(4), VSOD).tokens[VSOD].values()) == {None}


def test_tokens_of_an_empty_answer_count(lab: Lab) -> None:
    def nothing_visible(answer: str, request: Instance) -> Any:
        return GenerationResult("", TokenCounts(10, 2))

    outcome = lab.evaluate(Probe(4, twist=nothing_visible), VSOD)
    wanted = {"input_tokens": 10, "output_tokens": 2}
    assert list(outcome.tokens[VSOD].values()) == [wanted] * 14


# How many are in play.


def live_at_each_call(model: Reader) -> list[int]:
    """How many samples had a turn by this call and one from it on."""
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    for number, call in enumerate(model.calls):
        for sample in call:
            first.setdefault(sample, number)
            last[sample] = number
    return [sum(first[s] <= n <= last[s] for s in first) for n in range(len(model.calls))]


@pytest.mark.parametrize(("window", "batch"), [(1, 1), (4, 2), (6, 4), (8, 4), (3, 8), (5, 1)])
def test_no_more_than_the_window_are_in_play(lab: Lab, window: int, batch: int) -> None:
    lab.monkeypatch.setenv("PROACTIVEBENCH_WINDOW", str(window))
    lab.make(Dataset.VSOD, count=30)
    model = Probe(batch)
    outcome = lab.evaluate(model, VSOD)
    assert outcome.failed(VSOD) == {}
    assert max(live_at_each_call(model)) <= window


@pytest.mark.parametrize(("window", "batch"), [(4, 2), (6, 4), (8, 4), (9, 3)])
def test_calls_are_whole_batches_until_the_tail(lab: Lab, window: int, batch: int) -> None:
    lab.monkeypatch.setenv("PROACTIVEBENCH_WINDOW", str(window))
    lab.make(Dataset.VSOD, count=30)
    model = Probe(batch)
    lab.evaluate(model, VSOD)
    sizes = [len(call) for call in model.calls]
    started = [len({s for call in model.calls[: n + 1] for s in call}) for n in range(len(sizes))]
    while_more_wait = [size for size, seen in zip(sizes, started, strict=True) if seen < 30]
    assert set(while_more_wait) == {window - window % batch}
    tail = sizes[len(while_more_wait) :]
    whole = [size % batch == 0 for size in tail]
    assert whole == sorted(whole, reverse=True)  # once a batch is not full, none is left
    assert sum(not w for w in whole) <= 6


@pytest.mark.parametrize(("batch", "window"), [(1, 64), ("auto", 64), (4, 64), (16, 128)])
def test_default_window_is_eight_batches_and_at_least_64(
    lab: Lab, batch: int | str, window: int
) -> None:
    lab.make(Dataset.VSOD, count=130)
    model = Reader(batch, answer=lambda seen: "no option")
    lab.evaluate(model, VSOD)
    assert len(model.calls[0]) == window


@pytest.mark.parametrize("value", ["0", "-3", "1.5", "many", " "])
def test_a_bad_window_is_an_error_before_any_call(lab: Lab, value: str) -> None:
    lab.monkeypatch.setenv("PROACTIVEBENCH_WINDOW", value)
    model = Probe(4)
    message = f"PROACTIVEBENCH_WINDOW is '{value}'; expected a number of episodes, 1 or more"
    with pytest.raises(errors.ConfigError, match=message):
        lab.evaluate(model, VSOD)
    assert model.calls == []


def test_an_image_is_decoded_once_for_a_wrapper_that_keeps_the_order(lab: Lab) -> None:
    lab.make(Dataset.VSOD, count=40)
    decoded = count_decodes(lab.monkeypatch)
    model = Reader(8, answer=lambda seen: "no option")
    lab.evaluate(model, VSOD)
    assert len(decoded) == len(set(decoded)) == 40


def test_an_image_is_decoded_once_for_a_wrapper_that_sorts(lab: Lab) -> None:
    lab.make(Dataset.VSOD, count=40)
    decoded = count_decodes(lab.monkeypatch)

    class Reversing(Reader):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            return super().generate_until(requests[::-1])[::-1]

    lab.evaluate(Reversing(8, answer=lambda seen: "no option"), VSOD)
    assert Counter(decoded).most_common(1)[0][1] == 1


@pytest.mark.parametrize(("batch", "room", "sizes"), [(4, 9, [12] * 5), (8, 1, [8] * 7 + [4])])
def test_a_call_holds_no_more_decoded_images_than_there_is_room_for(
    lab: Lab, batch: int, room: int, sizes: list[int]
) -> None:
    """Whole batches are added to a call until there is no more room; at least one batch."""
    lab.make(Dataset.VSOD, count=60)
    lab.monkeypatch.setattr(visuals, "DECODED_IN_A_CALL", room * 3 * 32 * 32)  # bytes of images
    model = Reader(batch, answer=lambda seen: "no option")
    lab.evaluate(model, VSOD)
    assert [len(call) for call in model.calls] == sizes


def test_images_are_decoded_ahead_but_not_without_bound(lab: Lab) -> None:
    lab.make(Dataset.VSOD, count=60)
    lab.monkeypatch.setattr(visuals, "DECODED_IN_A_CALL", 1)
    decoded = count_decodes(lab.monkeypatch)
    at_call: list[int] = []
    model = Reader(
        8, answer=lambda seen: "no option", before=lambda *_: at_call.append(len(decoded))
    )
    lab.evaluate(model, VSOD)
    assert all(n <= 8 * (call + 3) for call, n in enumerate(at_call))


# What the harness's options do, and what is recorded.


def test_limit_and_offset(lab: Lab) -> None:
    outcome = lab.evaluate(Probe(4), VSOD, limit=3, offset=2)
    ids = [sample_id(n, Dataset.VSOD) for n in (2, 3, 4)]
    assert outcome.answers(VSOD) == {i: VSOD_CLEAN[i] for i in ids}
    assert outcome.metrics(VSOD) == pytest.approx(scores(expected(Dataset.VSOD, 5)[2:]))


def test_metrics_without_logged_samples(lab: Lab) -> None:
    outcome = lab.evaluate(Probe(4), VSOD, log_samples=False)
    assert "samples" not in outcome.raw
    assert outcome.metrics(VSOD) == pytest.approx(scores(expected(Dataset.VSOD, 14)))


def test_predict_only_plays_and_logs(lab: Lab) -> None:
    outcome = lab.evaluate(Probe(4), VSOD, predict_only=True)
    assert outcome.answers(VSOD) == VSOD_CLEAN


@pytest.mark.parametrize("dataset", [Dataset.VSOD, Dataset.COCO, Dataset.IMAGENETC])
def test_transcripts_are_complete(lab: Lab, dataset: Dataset) -> None:
    lab.make(dataset)
    task = ALL[dataset]
    outcome = lab.evaluate(Probe(4), task)
    rows = set()
    for episode in expected(dataset, 14):
        transcript = outcome.transcripts[task][episode.sample.id]
        crops = [turn.crop for turn in episode.turns]
        texts = [turn.pop("text") for turn in transcript["turns"]]
        assert [f"What is sample {episode.sample.id}?" in text for text in texts] == [True] * len(
            episode.turns
        )
        assert parse_sample(dataset, transcript.pop("sample")) == episode.sample
        rows.add(transcript.pop("row"))
        assert transcript == {
            "schema": 2,
            "kind": "multiple_choice",
            "protocol": "builtin-1",
            "suite": "official",
            "dataset": dataset.value,
            "id": episode.sample.id,
            "variant": {},
            "reasoning_tags": [],
            "examples": [],
            "turns": [
                {
                    "image": turn.image_path,
                    "file": str(lab.data / turn.image_path),
                    "image_id": turn.image_id,
                    "crop": crop and [crop.left, crop.top, crop.right, crop.bottom],
                    "options": list(turn.options),
                    "answer": turn.answer,
                    "suggestion": turn.suggestion.value,
                    "category": turn.category.value,
                    **({"mismatch": "other"} if turn.stop == "mismatch" else {}),
                }
                for turn, crop in zip(episode.turns, crops, strict=True)
            ],
            "num_turns": len(episode.turns),
            "correct_prediction": episode.turns[-1].stop == "solved",
            "stop": episode.turns[-1].stop,
            "error": None,
        }
    assert len(rows) == 14


def test_answers_in_any_script_survive(lab: Lab) -> None:
    said = 'Ein "Boot"? 船 \\ \u2028 <b>\n'
    outcome = lab.evaluate(Reader(4, answer=lambda seen: said), VSOD)
    assert set(map(tuple, outcome.answers(VSOD).values())) == {(said,)}
    assert outcome.metrics(VSOD)["failed"] == 0


def costs_logged(log: list[str]) -> str:
    return next(line for line in log if "generations for" in line)


def test_costs_are_logged(lab: Lab, log: list[str]) -> None:
    model = Reader(4)
    play_back_and_forth(lab, model)
    turns = model.turns
    line = costs_logged(log)
    assert line.startswith(f"INFO {VSOD}: {turns} generations for {turns} answers, 0 answers from ")
    assert "0 of 14 samples failed" in line


def test_answers_of_the_cache_are_logged_as_such(lab: Lab, log: list[str]) -> None:
    cache = str(lab.folder / "cache")
    first = Reader(4)
    lab.evaluate(first, VSOD, use_cache=cache)
    log.clear()
    lab.evaluate(Reader(4), VSOD, use_cache=cache)
    wanted = f"INFO {VSOD}: 0 generations for 0 answers, {first.turns} answers from the cache, 0 "
    assert costs_logged(log).startswith(wanted)


def test_empty_answers_are_warned_of(lab: Lab, log: list[str]) -> None:
    lab.evaluate(Reader(4, answer=lambda seen: " "), VSOD)
    assert any(line.startswith(f"WARNING {VSOD}: 14 answers were empty") for line in log)


def test_a_failure_is_logged_with_sample_and_turn(lab: Lab, log: list[str]) -> None:
    remove(lab.data / image_path(FAULTY, 2))
    lab.evaluate(Reader(4), VSOD)
    wanted = f"ERROR {VSOD}: {Dataset.VSOD.value}, sample {FAULTY_ID}, turn 3: DataError: image "
    assert [line for line in log if line.startswith(wanted)]


def test_tasks_fail_apart(lab: Lab) -> None:
    """A sample that fails in one task leaves the others alone."""
    lab.make(Dataset.ROD, Dataset.COCO)
    remove(lab.data / image_path(FAULTY, 0))
    outcome = lab.evaluate(Reader(4), ROD, VSOD, COCO)
    assert [len(outcome.failed(task)) for task in (ROD, VSOD, COCO)] == [0, 1, 0]
