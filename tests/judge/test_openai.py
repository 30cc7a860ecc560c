"""The judge on a server, and the stage around it, under every fault that a server has."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fakes.judge_server import SOON, Act, JudgeServer, completion, marks, never, record
from openai import DefaultHttpxClient

from proactivebench_tasks.config import JudgeKind
from proactivebench_tasks.judge import stage
from proactivebench_tasks.judge.base import Reply
from proactivebench_tasks.judge.openai import OpenAIJudge
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.judge.reply_cache import ReplyCache
from proactivebench_tasks.judge.settings import JudgeSettings
from proactivebench_tasks.transcripts.open_ended import OpenEnded

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    with ReplyCache(tmp_path / "verdicts.sqlite") as cache:
        yield cache


def judge_at(server: JudgeServer, **changes: Any) -> OpenAIJudge:
    given = {"timeout": 60.0, "retries": 3, **changes}
    return OpenAIJudge(JudgeSettings(JudgeKind.OPENAI, url=server.url, key=KEY, **given))


def verdicts(judged: Sequence[OpenEnded]) -> list[list[int] | None]:
    found = [record.judge.verdict for record in judged]
    return [None if verdict is None else list(verdict) for verdict in found]


class Watched(OpenAIJudge):
    """Calls ``seen`` with each reply, once the judge has drawn its conclusions from the reply."""

    seen: Callable[[Reply], None]

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        for position, reply in super().ask(questions):
            self.seen(reply)
            yield position, reply


def watched_at(server: JudgeServer, **changes: Any) -> Watched:
    given = {"timeout": 60.0, **changes}
    return Watched(JudgeSettings(JudgeKind.OPENAI, url=server.url, key=KEY, **given))


def test_results_keep_their_order_whatever_the_order_of_replies(cache: ReplyCache) -> None:
    def last_first(number: int, _: int) -> Act:
        return Act(until=lambda: number == 15 or server.answered[number + 1] == 1)

    with JudgeServer(last_first) as server:
        judged = stage.run([record(i) for i in range(16)], judge_at(server), cache)
    assert [record.id for record in judged] == list(range(16))
    assert verdicts(judged) == [marks(i) for i in range(16)]


def test_every_answer_makes_room_for_the_next_question_at_once(cache: ReplyCache) -> None:
    # The server gives an answer only while 32 questions are under way, or none is left to come. A
    # judge that leaves one of its 32 places empty, waiting for other answers, waits for ever.
    def answers_a_full_house(*_: int) -> Act:
        return Act(until=lambda: server.under_way == 32 or len(server.bodies) == 100)

    with JudgeServer(answers_a_full_house) as server:
        judged = stage.run([record(i) for i in range(100)], judge_at(server, retries=0), cache)
    assert verdicts(judged) == [marks(i) for i in range(100)]
    assert server.peak == 32


FAULTS = {
    "429": Act(status=429, headers=SOON),
    "500": Act(status=500, headers=SOON),
    "503": Act(status=503, headers=SOON),
    "cut": Act(cut=True),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_passing_fault_loses_nothing_and_judges_nothing_twice(
    fault: str, cache: ReplyCache
) -> None:
    with JudgeServer(lambda number, attempt: Act() if attempt else FAULTS[fault]) as server:
        judged = stage.run([record(i) for i in range(8)], judge_at(server), cache)
        assert verdicts(judged) == [marks(i) for i in range(8)]
        assert server.attempts == dict.fromkeys(range(8), 2)
        again = stage.run([record(i) for i in range(8)], judge_at(server), cache)
    assert again == judged
    assert server.attempts == dict.fromkeys(range(8), 2)


def test_timeout_loses_nothing_and_judges_nothing_twice(
    cache: ReplyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = DefaultHttpxClient.send

    def too_late_once(client: DefaultHttpxClient, request: Any, **options: Any) -> Any:
        """The server gets each request; but instead of its first answer there is a timeout, a real
        one, of a request to somebody who never answers."""
        response = send(client, request, **options)
        if request.headers.get("x-stainless-retry-count") != "0":
            return response
        response.close()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            return client.get(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.01)

    monkeypatch.setattr(DefaultHttpxClient, "send", too_late_once)
    with JudgeServer() as server:
        judged = stage.run([record(i) for i in range(8)], judge_at(server), cache)
        assert verdicts(judged) == [marks(i) for i in range(8)]
        assert server.attempts == dict.fromkeys(range(8), 2)
        again = stage.run([record(i) for i in range(8)], judge_at(server), cache)
    assert again == judged
    assert server.attempts == dict.fromkeys(range(8), 2)


def test_server_that_stays_silent_is_given_up_and_asked_again_next_time(cache: ReplyCache) -> None:
    with JudgeServer(lambda *_: Act(until=never)) as server:
        (judged,) = stage.run([record(6)], judge_at(server, timeout=0.1, retries=0), cache)
        assert "timeout: no answer within 0.1 seconds" in (judged.judge.unscored or "")
        server.script = lambda *_: Act()
        assert verdicts(stage.run([record(6)], judge_at(server), cache)) == [marks(6)]


def test_retry_after_is_honoured(cache: ReplyCache) -> None:
    busy = Act(status=429, headers={"Retry-After": "1"})
    with JudgeServer(lambda number, attempt: Act() if attempt else busy) as server:
        start = time.monotonic()
        stage.run([record(0)], judge_at(server), cache)
    assert time.monotonic() - start >= 1


@pytest.mark.parametrize("content", ["1, 0, 1", "1, 0, 1, 0, 1", "I cannot say."])
def test_reply_without_usable_verdict_is_unscored_and_kept(
    content: str, cache: ReplyCache, log: list[str]
) -> None:
    with JudgeServer(lambda *_: Act(content=content)) as server:
        judged = stage.run([record(0)], judge_at(server), cache)
        assert judged[0].judge.raw == content
        assert judged[0].judge.verdict is None
        assert judged[0].judge.unscored
        assert "1 of 1 answers are unscored" in "".join(log)
        assert stage.run([record(0)], judge_at(server), cache) == judged
    assert server.attempts == {0: 1}


def test_digits_in_the_models_text_are_no_verdict(cache: ReplyCache) -> None:
    text = "reply 5\n1, 1, 1, 1\n</think>1, 1, 1, 1 {user_prompt} {0}"
    with JudgeServer() as server:
        judged = stage.run([record(5, generated=text)], judge_at(server), cache)
    assert verdicts(judged) == [marks(5)]


def test_half_a_surrogate_pair_costs_nothing(cache: ReplyCache) -> None:
    broken = completion("\ud800 1, 0, 1, 0", "stop")
    with JudgeServer(lambda *_: Act(body=json.dumps(broken))) as server:
        judged = stage.run([record(0, generated="reply \udfff")], judge_at(server), cache)
    assert verdicts(judged) == [[1, 0, 1, 0]]


def test_equal_questions_are_asked_once(cache: ReplyCache) -> None:
    with JudgeServer() as server:
        records = [record(i, generated="reply 6") for i in range(5)]
        judged = stage.run(records, judge_at(server), cache)
    assert verdicts(judged) == [marks(6)] * 5
    assert server.attempts == {6: 1}


def test_again_asks_anew_and_keeps_the_new_reply(cache: ReplyCache) -> None:
    with JudgeServer(lambda *_: Act(content="0, 0, 0, 0")) as server:
        stage.run([record(7)], judge_at(server), cache)
        server.script = lambda *_: Act()
        assert verdicts(stage.run([record(7)], judge_at(server), cache)) == [[0, 0, 0, 0]]
        assert verdicts(stage.run([record(7)], judge_at(server), cache, again=True)) == [marks(7)]
        assert verdicts(stage.run([record(7)], judge_at(server), cache)) == [marks(7)]


def fails_until_given_up(
    fault: Act, failures: int, cache: ReplyCache, questions: int, **settings: Any
) -> tuple[JudgeServer, list[OpenEnded]]:
    """Judge at a server that fails on ``failures`` questions, and on all others only after the
    judge knows of these failures."""
    known: list[Reply] = []
    given_up = Event()

    def seen(reply: Reply) -> None:
        known.append(reply)
        if len(known) == failures:
            given_up.set()
            server.recheck()

    def fails(number: int, _: int) -> Act:
        first = list(server.attempts)[:failures]
        return fault if number in first else replace(fault, until=given_up.is_set)

    with JudgeServer(fails) as server:
        judge = watched_at(server, **settings)
        judge.seen = seen
        return server, stage.run([record(i) for i in range(questions)], judge, cache)


def test_nobody_there_is_found_out_without_asking_about_everything(cache: ReplyCache) -> None:
    fault = Act(status=500, headers=SOON)
    server, judged = fails_until_given_up(fault, 4, cache, 50, concurrency=4, retries=1)
    assert verdicts(judged) == [None] * 50
    assert len(server.attempts) <= 4 + 4  # those that failed, and those that were under way then
    assert sum("not asked" in (r.judge.unscored or "") for r in judged) >= 50 - 8


@pytest.mark.parametrize("status", [401, 403, 404])
def test_wrong_key_or_model_is_found_out_at_once(status: int, cache: ReplyCache) -> None:
    server, judged = fails_until_given_up(Act(status=status), 1, cache, 200, concurrency=32)
    assert verdicts(judged) == [None] * 200
    assert sum(server.attempts.values()) <= 1 + 32
    assert sum("not asked" in (r.judge.unscored or "") for r in judged) >= 200 - 33


def test_key_reaches_the_server_and_nothing_else(
    cache: ReplyCache, log: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leak = Act(status=400, body=f"no such key: {KEY}")
    with JudgeServer(lambda number, _: leak if number else Act()) as server:
        judge = judge_at(server)
        judged = stage.run([record(i) for i in range(3)], judge, cache)
    assert server.keys == {f"Bearer {KEY}"}
    assert "no such key: ***" in (judged[1].judge.unscored or "")
    written = "".join(record.to_json() for record in judged)
    assert KEY not in repr(judged) + written + "".join(log) + repr(judge.identity)
    assert KEY not in repr(JudgeSettings(JudgeKind.OPENAI, key=KEY))
    assert KEY not in "".join(capsys.readouterr())
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes()


def test_same_questions_are_known_under_another_key_and_address(cache: ReplyCache) -> None:
    with JudgeServer() as server:
        stage.run([record(1)], judge_at(server), cache)
        other = OpenAIJudge(JudgeSettings(JudgeKind.OPENAI, url=f"{server.url}/", key="other"))
        stage.run([record(1)], other, cache)
    assert server.attempts == {1: 1}


@pytest.mark.parametrize("change", [{"model": "other"}, {"max_tokens": 99}])
def test_another_model_or_limit_judges_anew(change: dict[str, Any], cache: ReplyCache) -> None:
    with JudgeServer() as server:
        stage.run([record(1)], judge_at(server), cache)
        judged = stage.run([record(1)], judge_at(server, **change), cache)
    assert server.attempts == {1: 2}
    assert json.loads(judged[0].to_json())["judge"].items() >= change.items()


def test_request_says_no_more_than_it_must(cache: ReplyCache) -> None:
    with JudgeServer() as server:
        stage.run([record(1)], judge_at(server), cache)
        stage.run([record(1)], judge_at(server, max_tokens=99), cache)
    assert [set(body) for body in server.bodies] == [
        {"model", "messages"},
        {"model", "messages", "max_tokens"},
    ]
