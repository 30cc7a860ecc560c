"""The harness's response cache: nothing is asked twice, and no turn gets another one's answer."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import Any

import pytest
from fakes.probe import (
    ALL,
    COCO,
    GENERATION,
    ROD,
    VSOD,
    ChatProbe,
    ChatReader,
    Lab,
    Outcome,
    Plan,
    Probe,
    Reader,
    Seen,
    expected,
    plan,
    sample_id,
    scores,
)
from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts

from proactivebench_tasks.protocol.samples import Dataset

FAULTY = 4
FAULTY_ID = sample_id(FAULTY, Dataset.VSOD)
COUNT = 10
CLEAN = {e.sample.id: [t.answer for t in e.turns] for e in expected(Dataset.VSOD, COUNT)}


@pytest.fixture
def lab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.delenv("LMMS_CACHE_RUN_ID", raising=False)
    lab.make(Dataset.VSOD, count=COUNT)
    return lab


def cached(lab: Lab, model: Reader, *tasks: str, **kwargs: Any) -> Outcome:
    return lab.evaluate(model, *tasks or [VSOD], use_cache=str(lab.folder / "responses"), **kwargs)


@pytest.mark.parametrize("wrapper", [Reader, ChatReader])
@pytest.mark.parametrize("batch", [1, 4])
def test_a_second_run_calls_no_model(lab: Lab, wrapper: type[Reader], batch: int) -> None:
    lab.make(Dataset.ROD, Dataset.COCO, count=COUNT)
    one, two = wrapper(batch), wrapper(batch)
    first = cached(lab, one, ROD, VSOD, COCO)
    second = cached(lab, two, ROD, VSOD, COCO)
    assert one.turns > 0
    assert two.calls == []
    assert second.transcripts == first.transcripts
    assert second.raw["results"] == first.raw["results"]


def test_a_second_run_may_batch_otherwise(lab: Lab) -> None:
    first = cached(lab, Reader(1))
    lab.monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "3")
    model = Reader(4)
    assert cached(lab, model).transcripts == first.transcripts
    assert model.calls == []


@pytest.mark.parametrize("wrapper", [Probe, ChatProbe])
def test_turns_that_differ_in_the_image_alone_share_no_answer(
    lab: Lab, wrapper: type[Probe]
) -> None:
    """In VSOD the text is the same in every turn of a sample."""
    texts: dict[int, set[str]] = {}

    def remember(answer: str, request: Instance) -> str:
        texts.setdefault(request.args[3], set()).add(request.args[0])
        return answer

    with_cache = cached(lab, wrapper(4, twist=remember))
    assert all(len(seen) == 1 for seen in texts.values())
    assert max(len(given) for given in with_cache.answers(VSOD).values()) == 6
    assert with_cache.transcripts == lab.evaluate(wrapper(4), VSOD).transcripts


@pytest.mark.parametrize("dataset", list(Dataset))
def test_with_and_without_cache_are_the_same(lab: Lab, dataset: Dataset) -> None:
    lab.make(dataset, count=COUNT)
    with_cache = cached(lab, Probe(4), ALL[dataset])
    assert with_cache.metrics(ALL[dataset]) == pytest.approx(scores(expected(dataset, COUNT)))
    assert with_cache.transcripts == lab.evaluate(Probe(4), ALL[dataset]).transcripts


def test_the_same_image_after_another_history_is_another_turn(lab: Lab) -> None:
    """A model that samples at heart (it says so) may answer otherwise when it comes back."""
    asked: Counter[int] = Counter()

    def back_and_forth_twice(seen: Seen) -> str:
        asked[seen.number] += 1
        if asked[seen.number] == 3:
            return "no option"
        return "Wait for the bus." if seen.turn == 0 else "Rewind the video."

    model = Reader(4, answer=back_and_forth_twice)
    model.deterministic = False  # type: ignore[attr-defined]
    outcome = cached(lab, model)
    assert model.turns == sum(map(len, outcome.answers(VSOD).values()))
    assert outcome.answers(VSOD)[FAULTY_ID][-1] == "no option"


class Mutating(Reader):
    """Changes its generation arguments beyond recognition."""

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        responses = super().generate_until(requests)
        for request in requests:
            given = self.arguments(request)
            given |= {"do_sample": True, "temperature": 1.0, "top_p": 0.5, "until": ["x"]}
            given.pop("max_new_tokens")
        return responses


def test_a_wrapper_that_changes_its_arguments_is_cached(lab: Lab) -> None:
    first, model = cached(lab, Mutating(4)), Mutating(4)
    assert cached(lab, model).transcripts == first.transcripts
    assert model.calls == []


@pytest.mark.parametrize(
    "failure",
    [
        "[LMMS_EVAL_REQUEST_FAILED after 3 retries] boom",
        GenerationResult("[LMMS_EVAL_REQUEST_FAILED after 3 retries] boom", TokenCounts(1, 1)),
        None,
    ],
    ids=["text", "result", "None"],
)
def test_a_failure_is_not_cached(lab: Lab, failure: Any) -> None:
    def fail(answer: str, request: Instance) -> Any:
        return failure if request.args[3] == FAULTY else answer

    first = cached(lab, Reader(4, twist=fail))
    assert list(first.failed(VSOD)) == [FAULTY_ID]
    model = Reader(4)
    second = cached(lab, model)
    assert second.answers(VSOD) == CLEAN
    assert {s for call in model.calls for _, s in call} == {FAULTY_ID}


def test_a_failure_is_not_cached_after_good_turns(lab: Lab) -> None:
    asked: Counter[int] = Counter()

    def fail_in_the_third_turn(answer: str, request: Instance) -> str:
        asked[request.args[3]] += 1
        failing = request.args[3] == FAULTY and asked[FAULTY] == 3
        return "[LMMS_EVAL_REQUEST_FAILED after 3 retries] boom" if failing else answer

    cached(lab, Reader(4, twist=fail_in_the_third_turn))
    model = Reader(4)
    model_answers = cached(lab, model).answers(VSOD)
    assert model_answers == CLEAN
    assert model.turns == len(CLEAN[FAULTY_ID]) - 2


def test_an_exception_leaves_the_others_cached(lab: Lab) -> None:
    def raise_for_one(call: int, requests: list[Instance]) -> None:
        if any(request.args[3] == FAULTY for request in requests):
            raise ValueError("boom")

    first = cached(lab, Reader(4, before=raise_for_one))
    assert list(first.failed(VSOD)) == [FAULTY_ID]
    model = Reader(4)
    assert cached(lab, model).answers(VSOD) == CLEAN
    assert {s for call in model.calls for _, s in call} == {FAULTY_ID}


@pytest.mark.parametrize("empty", ["", " \n", GenerationResult("", TokenCounts(1, 0))])
def test_an_empty_answer_is_graded_but_not_cached(lab: Lab, empty: Any) -> None:
    def say_nothing(answer: str, request: Instance) -> Any:
        return empty if request.args[3] == FAULTY else answer

    first = cached(lab, Reader(4, twist=say_nothing))
    text = empty.text if isinstance(empty, GenerationResult) else empty
    assert first.failed(VSOD) == {}
    assert first.answers(VSOD) == CLEAN | {FAULTY_ID: [text]}
    assert first.transcripts[VSOD][FAULTY_ID]["stop"] == "mismatch"
    model = Reader(4)
    assert cached(lab, model).answers(VSOD) == CLEAN
    assert model.turns == len(CLEAN[FAULTY_ID])


def test_an_empty_answer_is_not_cached_in_a_run_with_a_name(lab: Lab) -> None:
    lab.monkeypatch.setenv("LMMS_CACHE_RUN_ID", "mine")
    cached(lab, Reader(4, twist=lambda answer, request: ""))
    assert cached(lab, Reader(4)).answers(VSOD) == CLEAN


def test_a_failure_is_not_cached_in_a_run_with_a_name(lab: Lab) -> None:
    lab.monkeypatch.setenv("LMMS_CACHE_RUN_ID", "mine")
    failure = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] boom"
    cached(lab, Reader(4, twist=lambda a, r: failure if r.args[3] == FAULTY else a))
    assert cached(lab, Reader(4)).answers(VSOD) == CLEAN


#: What wrappers return as if the model had said it.
FAILURES = [
    "[LMMS_EVAL_REQUEST_FAILED after 3 retries] boom",
    "[LMMS_EVAL_BUDGET_EXCEEDED]",
    "[SAFETY_BLOCKED:block_reason=SAFETY]",
    'Error: can only concatenate str (not "NoneType") to str',
    "[PROACTIVEBENCH_NO_ANSWER] the server sent null in place of a text",
]


@pytest.mark.parametrize("failure", FAILURES)
def test_the_text_of_a_failure_is_no_answer(lab: Lab, failure: str) -> None:
    first = cached(lab, Reader(4, twist=lambda a, r: failure if r.args[3] == FAULTY else a))
    assert list(first.failed(VSOD)) == [FAULTY_ID]
    assert cached(lab, Reader(4)).answers(VSOD) == CLEAN


@pytest.mark.parametrize("name", [None, "mine"])
@pytest.mark.parametrize("failure", [*FAILURES, "", " \n"])
@pytest.mark.parametrize("with_tokens", [False, True])
def test_a_failure_that_an_older_release_kept_is_not_served(
    lab: Lab, failure: str, name: str | None, with_tokens: bool
) -> None:
    """It may lie in ``cache.db``, in a log, or in the database of a run with the same name."""
    if name:
        lab.monkeypatch.setenv("LMMS_CACHE_RUN_ID", name)
    kept = (failure, {"output_tokens": 1}) if with_tokens else failure
    with pytest.MonkeyPatch.context() as older:
        keepable = "proactivebench_tasks.rollout.checked_model.may_be_kept"
        older.setattr(keepable, lambda outcome: kept)
        cached(lab, Reader(4))
    model = Reader(4)
    assert cached(lab, model).answers(VSOD) == CLEAN
    assert model.turns == sum(map(len, CLEAN.values()))
    again = Reader(4)
    assert cached(lab, again).answers(VSOD) == CLEAN
    assert again.calls == []


def counted(answer: str, request: Instance) -> Any:
    return GenerationResult(answer, TokenCounts(10, 2))


def test_token_counts_survive_the_cache(lab: Lab) -> None:
    first, model = cached(lab, Reader(4, twist=counted)), Reader(4)
    second = cached(lab, model)
    assert model.calls == []
    turns = {sample: len(given) for sample, given in CLEAN.items()}
    wanted = {i: {"input_tokens": 10 * n, "output_tokens": 2 * n} for i, n in turns.items()}
    assert second.tokens[VSOD] == first.tokens[VSOD] == wanted
    assert second.answers(VSOD) == CLEAN


def test_greedy_repeats_are_asked_once(lab: Lab) -> None:
    model = Reader(4)
    outcome = cached(lab, model, repeats=3)
    assert model.turns == sum(map(len, CLEAN.values()))
    assert outcome.answers(VSOD) == CLEAN


def sampling(answer: Plan = plan) -> Reader:
    model = Reader(4, answer=answer)
    model.generation = GENERATION | {"do_sample": True}
    return model


def test_sampled_answers_are_kept_so_that_a_run_resumes(lab: Lab) -> None:
    first = cached(lab, sampling(), gen_kwargs="do_sample=True")
    model = sampling(lambda seen: "no option")
    assert cached(lab, model, gen_kwargs="do_sample=True").transcripts == first.transcripts
    assert model.calls == []


def test_sampled_repeats_are_asked_each_and_kept_apart(lab: Lab) -> None:
    first, second = sampling(), sampling(lambda seen: "no option")
    asked = cached(lab, first, gen_kwargs="do_sample=True", repeats=3)
    kept = cached(lab, second, gen_kwargs="do_sample=True", repeats=3)
    assert first.turns == 3 * sum(map(len, CLEAN.values()))
    assert second.calls == []
    assert repeats(kept) == repeats(asked)


def repeats(outcome: Outcome) -> list[list[list[str]]]:
    """The answers of all repeats of all samples."""
    rows = outcome.raw["samples"][VSOD]
    records = [[json.loads(text) for text in row["resps"][0]] for row in rows]
    return [[[t["answer"] for t in record["turns"]] for record in each] for each in records]


@pytest.mark.parametrize("name", ["max_new_tokens", "repetition_penalty", "presence_penalty"])
def test_other_generation_arguments_are_another_key(lab: Lab, name: str) -> None:
    cached(lab, Reader(4))
    model = Reader(4)
    model.generation = GENERATION | {name: 2}
    cached(lab, model, gen_kwargs=f"{name}=2")
    assert model.turns == sum(map(len, CLEAN.values()))


@pytest.mark.parametrize("gen_kwargs", [None, "do_sample=True"])
@pytest.mark.parametrize("name", [None, "mine"])
def test_a_killed_run_resumes(lab: Lab, gen_kwargs: str | None, name: str | None) -> None:
    """What was answered before the process died is not asked again, has the run a name or none."""
    if name:
        lab.monkeypatch.setenv("LMMS_CACHE_RUN_ID", name)

    def die(call: int, requests: list[Instance]) -> None:
        if call > 2:
            raise KeyboardInterrupt

    killed, model = Reader(4, before=die), Reader(4)
    if gen_kwargs:
        killed.generation = model.generation = GENERATION | {"do_sample": True}
    with pytest.raises(KeyboardInterrupt):
        cached(lab, killed, gen_kwargs=gen_kwargs)
    assert cached(lab, model, gen_kwargs=gen_kwargs).answers(VSOD) == CLEAN
    answered = sum(map(len, killed.calls[:2]))
    assert model.turns == sum(map(len, CLEAN.values())) - answered


def test_other_rows_are_another_key(lab: Lab) -> None:
    """The cache must not answer for a sample that another row has taken the place of."""
    cached(lab, Reader(4))
    path = lab.data / Dataset.VSOD.jsonl
    path.write_text(path.read_text().replace("Wait for the bus.", "Wait for the car."))
    model = Reader(4, answer=lambda seen: "no option")
    cached(lab, model)
    assert model.turns == COUNT


# What does not change an answer.


def asks_nothing(lab: Lab, **kwargs: Any) -> None:
    model = Reader(4)
    cached(lab, model, **kwargs)
    assert model.calls == []


def test_our_own_cache_folder_may_be_another(lab: Lab) -> None:
    """It is part of the task's configuration, since the prepared rows lie in it."""
    cached(lab, Reader(4))
    lab.monkeypatch.setenv("PROACTIVEBENCH_CACHE", str(lab.folder / "another"))
    asks_nothing(lab)


def test_a_commit_to_the_surrounding_repository_may_be_made(lab: Lab) -> None:
    commit = "lmms_eval.utils.get_git_commit_hash"
    lab.monkeypatch.setattr(commit, lambda: "one")
    cached(lab, Reader(4))
    lab.monkeypatch.setattr(commit, lambda: "two")
    asks_nothing(lab)
    lab.monkeypatch.setattr(commit, lambda: None)  # where git is not installed
    asks_nothing(lab)


def test_rows_that_are_added_change_no_other(lab: Lab) -> None:
    cached(lab, Reader(4))
    lab.make(Dataset.VSOD, count=COUNT + 1)
    model = Reader(4)
    cached(lab, model)
    assert {sample for call in model.calls for _, sample in call} == {
        sample_id(COUNT, Dataset.VSOD)
    }


@pytest.mark.parametrize("options", [{"repeats": 3}, {"predict_only": True}, {"limit": 4}])
def test_other_ways_to_run_the_task_share_its_answers(lab: Lab, options: dict[str, Any]) -> None:
    cached(lab, Reader(4))
    if "predict_only" in options:
        options = options | {"log_samples": True}
    asks_nothing(lab, **options)


def test_other_repeats_share_the_answers_that_are_there(lab: Lab) -> None:
    cached(lab, sampling(), gen_kwargs="do_sample=True")
    model = sampling()
    cached(lab, model, gen_kwargs="do_sample=True", repeats=3)
    assert model.turns == 2 * sum(map(len, CLEAN.values()))


# What is left of a cache folder.


@pytest.mark.parametrize("lost", ["runs", "cache.db", "cache.audit.jsonl", "runs and cache.db"])
def test_answers_are_found_in_what_is_left(lab: Lab, lost: str) -> None:
    cached(lab, Reader(4))
    folder = lab.folder / "responses"
    for name in lost.split(" and "):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    asks_nothing(lab)


@pytest.mark.parametrize(
    "strange",
    [
        b"\xff\xfe\n",
        b"[]\n7\nnull\n",
        b'{"cache_key": "k"}\n',
        b'{"cache_key": 1, "request_type": [], "task_name": [], "doc_id": {}, "idx": null, '
        b'"gen_kwargs": 1, "response": 1, "created_at": ""}\n',
        b'{"cache_key": "k", "request_type": "generate_until", "task_name": "proactivebench_mcqa_v',
    ],
    ids=["no text", "no objects", "too little", "wrong types", "torn"],
)
@pytest.mark.parametrize("at_the_end", [True, False])
def test_a_log_with_strange_lines_costs_no_answer(
    lab: Lab, strange: bytes, at_the_end: bool
) -> None:
    cached(lab, Reader(4))
    folder = lab.folder / "responses"
    (log,) = folder.glob("runs/*/*.audit.jsonl")
    content = log.read_bytes()
    shutil.rmtree(log.parent)
    (folder / "cache.db").unlink()
    (folder / "cache.audit.jsonl").unlink()
    other = folder / "runs" / "other" / "rank_5.audit.jsonl"
    other.parent.mkdir()
    other.write_bytes(content + strange if at_the_end else strange + content)
    asks_nothing(lab)
