"""A wrapper that talks to a server has no barriers: an answer is followed by its next turn at once.

Nothing here waits for a time to pass: a wrapper holds an answer back until something is so.
"""

from __future__ import annotations

import _thread
import threading
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.probe import (
    ALL,
    GENERATION,
    ROD,
    VSOD,
    ChatReader,
    Lab,
    Outcome,
    Reader,
    expected,
    sample_id,
)
from lmms_eval.api.instance import Instance
from lmms_eval.models.model_utils.concurrency_control import AdaptiveConcurrencyConfig
from loguru import logger

from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.rollout import concurrency
from proactivebench_tasks.rollout.concurrency import Concurrency

COUNT = 14
FAULTY = 4
FAULTY_ID = sample_id(FAULTY, Dataset.VSOD)
CLEAN = {e.sample.id: [t.answer for t in e.turns] for e in expected(Dataset.VSOD, COUNT)}
TURNS = sum(map(len, CLEAN.values()))
PATIENCE = 120  # seconds after which a test that goes wrong ends
ADAPTIVE = AdaptiveConcurrencyConfig.from_raw(1, 16, 15.0, 0.1, 0.7, 0.05)


class Server(ChatReader):
    """A wrapper like lmms-eval's for servers, as far as the runner can see. Counts its requests."""

    def __init__(self, at_once: int = 4, adapts: bool = False, **kwargs: Any) -> None:
        super().__init__(64, **kwargs)
        self.num_concurrent = at_once
        self.adaptive_concurrency = adapts
        self.adaptive_config = ADAPTIVE
        self.under_way = self.peak = 0
        self.lock = threading.Lock()

    def __repr__(self) -> str:
        return "Server"

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        with self.lock:
            self.under_way += 1
            self.peak = max(self.peak, self.under_way)
        try:
            return super().generate_until(requests)
        finally:
            with self.lock:
                self.under_way -= 1


@pytest.fixture
def lab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.delenv("LMMS_CACHE_RUN_ID", raising=False)
    lab.make(Dataset.VSOD, count=COUNT)
    return lab


def cached(lab: Lab, model: Reader, **kwargs: Any) -> Outcome:
    return lab.evaluate(model, VSOD, use_cache=str(lab.folder / "responses"), **kwargs)


def warned(play: Callable[[], object]) -> str:
    lines: list[str] = []
    sink = logger.add(lines.append, level="WARNING")
    try:
        play()
    finally:
        logger.remove(sink)
    return "".join(map(str, lines))


@pytest.mark.parametrize("at_once", [1, 3, 32])
def test_all_plays_as_in_batches(lab: Lab, at_once: int) -> None:
    lab.make(*Dataset, count=COUNT)
    server, batched = Server(at_once), ChatReader(4)
    found = lab.evaluate(server, *ALL.values())
    assert found.transcripts == lab.evaluate(batched, *ALL.values()).transcripts
    assert server.turns == batched.turns
    assert {len(call) for call in server.calls} == {1}
    assert server.peak <= at_once


def test_as_many_requests_are_under_way_as_are_allowed(lab: Lab) -> None:
    meeting = threading.Barrier(4)

    def meet(call: int, requests: list[Instance]) -> None:
        if call <= 4:
            meeting.wait(PATIENCE)

    server = Server(4, before=meet)
    lab.evaluate(server, VSOD)
    assert not meeting.broken
    assert server.peak == 4


@pytest.mark.parametrize("held", [0, FAULTY, 9])
def test_a_slow_answer_holds_no_other_episode_up(lab: Lab, held: int) -> None:
    """The first request of one sample is answered when all other episodes are over."""
    others = TURNS - len(CLEAN[sample_id(held, Dataset.VSOD)])
    over, waits = threading.Event(), []

    def hold(call: int, requests: list[Instance]) -> None:
        if requests[0].args[3] == held and not waits:
            waits.append(call)
            waits.append(over.wait(PATIENCE))

    def note(answer: str, request: Instance) -> str:
        with server.lock:
            seen.update([request.args[3]])
            if seen.total() - seen[held] == others:
                over.set()
        return answer

    seen: Counter[int] = Counter()
    server = Server(2, before=hold, twist=note)
    assert lab.evaluate(server, VSOD).answers(VSOD) == CLEAN
    assert waits[1]


# Failures.


def raises(call: int, requests: list[Instance]) -> None:
    if requests[0].args[3] == FAULTY:
        raise ValueError("boom")


def is_no_answer(answer: str, request: Instance) -> str:
    failure = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] boom"
    return failure if request.args[3] == FAULTY else answer


def is_of_another_kind(answer: str, request: Instance) -> Any:
    return {"boom": 1} if request.args[3] == FAULTY else answer


@pytest.mark.parametrize(
    "fault", [{"before": raises}, {"twist": is_no_answer}, {"twist": is_of_another_kind}]
)
def test_a_failure_fails_its_sample_alone_and_is_not_kept(lab: Lab, fault: dict[str, Any]) -> None:
    outcome = cached(lab, Server(4, **fault))
    assert list(outcome.failed(VSOD)) == [FAULTY_ID]
    assert "boom" in outcome.failed(VSOD)[FAULTY_ID]
    again = Server(4)
    assert cached(lab, again).answers(VSOD) == CLEAN
    assert again.turns == len(CLEAN[FAULTY_ID])


def test_an_image_that_cannot_be_shown_fails_before_it_is_asked_for(lab: Lab) -> None:
    image = lab.data / lab.data.joinpath(Dataset.VSOD.value) / f"{FAULTY}_0000.png"
    assert image.is_file()
    image.write_bytes(b"")
    server = Server(4)
    outcome = lab.evaluate(server, VSOD)
    assert list(outcome.failed(VSOD)) == [FAULTY_ID]
    assert FAULTY_ID not in {sample for call in server.calls for _, sample in call}


def test_a_server_that_answers_nothing_ends_the_run(lab: Lab) -> None:
    def refuse(call: int, requests: list[Instance]) -> None:
        raise ConnectionError("refused")

    lab.monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "6")
    server = Server(2, before=refuse)
    with pytest.raises(ConnectionError, match="refused"):
        lab.evaluate(server, VSOD)
    assert server.turns < COUNT


# The response cache.


def test_a_second_run_asks_nothing(lab: Lab) -> None:
    first, second = Server(4), Server(4)
    asked = cached(lab, first)
    assert cached(lab, second).transcripts == asked.transcripts
    assert first.turns == TURNS
    assert second.calls == []


def test_batches_and_servers_share_answers(lab: Lab) -> None:
    class Batched(ChatReader):
        def __repr__(self) -> str:
            return "Server"

    cached(lab, Server(4))
    model = Batched(4)
    assert cached(lab, model).answers(VSOD) == CLEAN
    assert model.calls == []


def test_the_harness_counts_a_missing_answer_once(lab: Lab) -> None:
    lines: list[str] = []
    sink = logger.add(lines.append, level="INFO")
    cached(lab, Server(4))
    logger.remove(sink)
    (said,) = (line for line in map(str, lines) if "ResponseCache stats" in line)
    assert f"0 hits, {TURNS} misses" in said


@pytest.mark.parametrize("sampled", [False, True])
def test_an_interrupt_keeps_what_is_on_its_way(lab: Lab, sampled: bool) -> None:
    """Answers that are under way are paid for. A second run asks for the rest alone."""
    meeting = threading.Barrier(3)

    def interrupt(call: int, requests: list[Instance]) -> None:
        if 6 < call <= 9 and meeting.wait(PATIENCE) == 0:
            _thread.interrupt_main()

    killed, model = Server(3, before=interrupt), Server(3)
    options = {}
    if sampled:
        options = {"gen_kwargs": "do_sample=True"}
        killed.generation = model.generation = GENERATION | {"do_sample": True}
    with pytest.raises(KeyboardInterrupt, match="the same command resumes"):
        cached(lab, killed, **options)
    assert cached(lab, model, **options).answers(VSOD) == CLEAN
    assert killed.turns + model.turns == TURNS


# How many may be in flight.


def test_a_request_that_takes_long_is_named_in_the_log(lab: Lab) -> None:
    lab.monkeypatch.setenv("PROACTIVEBENCH_SLOW_CALL", "0.01")
    said = threading.Event()

    def note(message: object) -> None:
        if f"samples of {Dataset.VSOD.value}: {FAULTY_ID}\n" in str(message):
            said.set()

    def slow(call: int, requests: list[Instance]) -> None:
        if requests[0].args[3] == FAULTY:
            assert said.wait(PATIENCE)

    sink = logger.add(note, level="WARNING")
    outcome = lab.evaluate(Server(4, before=slow), VSOD)
    logger.remove(sink)
    assert outcome.answers(VSOD) == CLEAN


def test_a_wrapper_that_adapts_gets_more_requests_while_all_goes_well(lab: Lab) -> None:
    lab.make(Dataset.ROD, count=80)
    server = Server(2, adapts=True)
    lab.evaluate(server, ROD)
    assert 2 < server.peak <= 16


def test_requests_at_once_go_up_and_down_by_the_rule_of_lmms_eval() -> None:
    now = Concurrency(8, ADAPTIVE)
    assert (now.allowed, now.most) == (8, 16)
    allowed = []
    for error in [None] * 200 + [RuntimeError("HTTP 429")] * 200:
        now.came_back(0.1, error)
        allowed.append(now.allowed)
    assert max(allowed) == 16
    assert allowed[-1] == 1


def test_a_wrapper_that_does_not_adapt_keeps_its_number() -> None:
    now = Concurrency(8)
    for _ in range(100):
        now.came_back(60.0, RuntimeError("HTTP 429"))
    assert (now.allowed, now.most) == (8, 8)


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({"num_concurrent": 7}, 7),  # openai
        ({"num_cpus": 5}, 5),  # async_openai
        ({"num_concurrent": "9"}, 9),
        ({"num_concurrent": 200}, 200),
        ({"num_concurrent": 200, "adaptive_concurrency": True}, 16),
    ],
)
def test_wrappers_of_servers_are_known(fields: dict[str, Any], allowed: int) -> None:
    settings = {"adaptive_config": ADAPTIVE, "adaptive_concurrency": False}
    found = concurrency.of(SimpleNamespace(**settings | fields))
    assert found is not None
    assert found.allowed == allowed


@pytest.mark.parametrize("fields", [{}, {"num_concurrent": 4}, {"adaptive_config": ADAPTIVE}])
def test_other_wrappers_are_no_servers(fields: dict[str, Any]) -> None:
    assert concurrency.of(SimpleNamespace(**fields)) is None
