"""A judge's server under every kind of failure: what is lost, what is asked again, what is said."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fakes.judge_server import SOON, Act, JudgeServer, marks, never, record

from proactivebench_tasks.config import JudgeKind
from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.judge import stage
from proactivebench_tasks.judge.openai import OpenAIJudge
from proactivebench_tasks.judge.reply_cache import ReplyCache
from proactivebench_tasks.judge.settings import JudgeSettings
from proactivebench_tasks.judge.stage import JudgeFilter
from proactivebench_tasks.transcripts.open_ended import OpenEnded

KEY = "sk-very-secret-0123456789"
LOG = "See the server's log"
NEXT = "`proactivebench judge RESULTS_DIR` asks for what is missing"
CONNECTION = "See the server's log for why it ended the connection"
FIX_URL = "Does the address end in /v1? If not, set PROACTIVEBENCH_JUDGE_URL"
NO_PROXY = "add judge.example to NO_PROXY if it can be reached without the proxy"
START = "Start the server, or set PROACTIVEBENCH_JUDGE_URL to where it is"
KEYED = "Set PROACTIVEBENCH_JUDGE_KEY to a key"
MODEL = (
    "Set PROACTIVEBENCH_JUDGE_MODEL (Qwen/Qwen3-8B) to a model that {base}/models lists; if there "
    "is no such page, PROACTIVEBENCH_JUDGE_URL"
)
QUOTA = (
    "Set PROACTIVEBENCH_JUDGE_CONCURRENCY lower or PROACTIVEBENCH_JUDGE_RETRIES higher, or wait "
    "for your quota"
)
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    with ReplyCache(tmp_path / "verdicts.sqlite") as cache:
        yield cache


def judge_at(url: str, **changes: Any) -> OpenAIJudge:
    given = {"timeout": 60.0, "retries": 1, **changes}
    return OpenAIJudge(JudgeSettings(JudgeKind.OPENAI, url=url, key=KEY, **given))


def verdicts(judged: list[OpenEnded]) -> list[list[int] | None]:
    found = [each.judge.verdict for each in judged]
    return [None if verdict is None else list(verdict) for verdict in found]


def inside(code: int, message: str = "scripted") -> Act:
    """An error in the body of a reply with status 200."""
    return Act(body=json.dumps({"error": {"message": message, "code": code}}), headers=SOON)


@dataclass(frozen=True)
class Failure:
    """``said`` and ``step``: what is said of it. ``asked``: how often, where it lasts."""

    act: Act
    said: str
    step: str = LOG
    asked: int = 2
    settings: dict[str, Any] = field(default_factory=dict)

    def told(self, base: str) -> str:
        return f"{base}/chat/completions: {self.said}. {self.step}".replace("{base}", base)


#: Costs the one question, and is asked again by the next run.
LASTING = {
    "429": Failure(Act(status=429, headers=SOON), "status 429 Too Many Requests: scripted", QUOTA),
    "500": Failure(Act(status=500, headers=SOON), "status 500 Internal Server Error: scripted"),
    "503": Failure(Act(status=503, headers=SOON), "status 503 Service Unavailable: scripted"),
    "529": Failure(Act(status=529, headers=SOON), "status 529: scripted"),
    "502 in 200": Failure(inside(502), "status 502 Bad Gateway: scripted"),
    "429 in 200": Failure(inside(429), "status 429 Too Many Requests: scripted", QUOTA),
    "no code in 200": Failure(
        Act(body='{"error": "oh"}', headers=SOON), "status 500 Internal Server Error: oh"
    ),
    "400": Failure(
        Act(status=400, body="too long"),
        "status 400 Bad Request: too long",
        "Change what the server complains of",
        1,
    ),
    "silence": Failure(
        Act(until=never),
        "timeout: no answer within 0.1 seconds",
        "Set PROACTIVEBENCH_JUDGE_TIMEOUT higher or PROACTIVEBENCH_JUDGE_CONCURRENCY lower, and "
        "see whether the server is at work on Qwen/Qwen3-8B",
        1,
        {"timeout": 0.1, "retries": 0},
    ),
    "reset": Failure(
        Act(reset=True), "Server disconnected without sending a response.", CONNECTION
    ),
    "half a body": Failure(
        Act(cut=True),
        "peer closed connection without sending complete message body (received 8 bytes, expected "
        "1000)",
        CONNECTION,
    ),
    "a page": Failure(
        Act(body="<p>Sign in\nhere</p>", content_type="text/html"),
        "the reply is no chat completion: <p>Sign in here</p>",
        FIX_URL,
        1,
    ),
    "no JSON": Failure(
        Act(body="{no JSON"), "the reply is no chat completion: {no JSON", FIX_URL, 1
    ),
    "no choices": Failure(
        Act(body='{"choices": []}'), 'no text in the reply: {"choices": []}', LOG, 1
    ),
}


@pytest.mark.parametrize("name", LASTING)
def test_failure_that_lasts_costs_its_own_answer_alone_and_is_asked_again_next_time(
    name: str, cache: ReplyCache, log: list[str]
) -> None:
    failure = LASTING[name]
    with JudgeServer(lambda number, _: failure.act if number == 3 else Act()) as server:
        judge = judge_at(server.url, **failure.settings)
        judged = stage.run([record(i) for i in range(6)], judge, cache)
        told = failure.told(server.url)
        assert judged[3].judge.unscored == told
        assert verdicts(judged) == [None if i == 3 else marks(i) for i in range(6)]
        assert server.attempts[3] == failure.asked
        errors = [line for line in log if line.startswith("ERROR")]
        assert len(errors) == 1
        assert errors[0].endswith(f"{told}. 1 got no reply from the judge: {NEXT}\n")
        server.script = lambda *_: Act()
        server.attempts.clear()
        judged = stage.run([record(i) for i in range(6)], judge_at(server.url), cache)
        assert verdicts(judged) == [marks(i) for i in range(6)]
        assert server.attempts == {3: 1}


PASSING = ["429", "500", "503", "502 in 200", "no code in 200", "reset", "half a body"]


@pytest.mark.parametrize("name", PASSING)
def test_failure_that_passes_loses_nothing_and_judges_nothing_twice(
    name: str, cache: ReplyCache
) -> None:
    with JudgeServer(lambda _, attempt: Act() if attempt else LASTING[name].act) as server:
        judge = judge_at(server.url)
        judged = stage.run([record(i) for i in range(4)], judge, cache)
        assert stage.run([record(i) for i in range(4)], judge, cache) == judged
    assert verdicts(judged) == [marks(i) for i in range(4)]
    assert server.attempts == dict.fromkeys(range(4), 2)


#: Every other question would get the same.
ENDING = {
    "401": Failure(
        Act(status=401, body=f"no such key: {KEY}"),
        "status 401 Unauthorized: no such key: ***",
        f"{KEYED} of this server",
    ),
    "402": Failure(
        Act(status=402),
        "status 402 Payment Required: scripted",
        f"{KEYED} that may use Qwen/Qwen3-8B, or another PROACTIVEBENCH_JUDGE_MODEL",
    ),
    "403": Failure(
        Act(status=403),
        "status 403 Forbidden: scripted",
        f"{KEYED} that may use Qwen/Qwen3-8B, or another PROACTIVEBENCH_JUDGE_MODEL",
    ),
    "404": Failure(Act(status=404), "status 404 Not Found: scripted", MODEL),
    "405": Failure(Act(status=405), "status 405 Method Not Allowed: scripted", MODEL),
    "401 in 200": Failure(
        inside(401), "status 401 Unauthorized: scripted", f"{KEYED} of this server"
    ),
    "404 in 200": Failure(inside(404), "status 404 Not Found: scripted", MODEL),
}


def told_to_end(log: list[str], told: str) -> bool:
    """Whether this is the one error of the log."""
    errors = [line for line in log if line.startswith(("ERROR", "WARNING"))]
    wanted = f"ERROR judging has ended: {told}. What was judged is kept; {NEXT}\n"
    assert errors == [wanted]
    return True


@pytest.mark.parametrize("name", ENDING)
def test_failure_of_every_question_ends_the_judging_with_one_message(
    name: str, cache: ReplyCache, log: list[str]
) -> None:
    failure = ENDING[name]
    with JudgeServer(lambda number, _: failure.act if number > 4 else Act()) as server:
        judge = judge_at(server.url, concurrency=2, retries=6)
        for task in (range(50), range(50, 99)):  # the second task of the same run
            judged = stage.run([record(i) for i in task], judge, cache)
            if not task.start:
                assert verdicts(judged) == [*map(marks, range(5)), *[None] * 45]
        told = failure.told(server.url)
        assert told_to_end(log, told)
        assert {each.judge.unscored for each in judged} == {told, f"not asked: {told}"}
        assert max(server.attempts.values()) == 1
        assert sum(server.attempts.values()) < 99
        server.script = lambda *_: Act()
        server.attempts.clear()
        stage.run([record(i) for i in range(50)], judge_at(server.url), cache)
        assert server.attempts == dict.fromkeys(range(5, 50), 1)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


UNREACHED = {
    "refused": (
        ConnectionRefusedError(111, "Connection refused"),
        f"[Errno 111] Connection refused. {START}",
    ),
    "no route": (
        OSError(113, "No route to host"),
        f"[Errno 113] No route to host. {START}",
    ),
    "unknown host": (
        socket.gaierror(-2, "Name or service not known"),
        "unknown host judge.example ([Errno -2] Name or service not known). Set "
        "PROACTIVEBENCH_JUDGE_URL to the right one",
    ),
    "no name server": (
        socket.gaierror(-3, "Temporary failure in name resolution"),
        "unknown host judge.example ([Errno -3] Temporary failure in name resolution). Set "
        "PROACTIVEBENCH_JUDGE_URL to the right one",
    ),
}


@pytest.mark.parametrize("name", UNREACHED)
def test_server_that_is_not_there_ends_the_judging_without_asking_again(
    name: str, cache: ReplyCache, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error, told = UNREACHED[name]
    tries = []

    def connect(address: Any, *_: Any, **__: Any) -> Any:
        tries.append(address)
        raise error

    monkeypatch.setattr(socket, "create_connection", connect)
    judge = judge_at("http://judge.example/v1", concurrency=1, retries=6)
    judged = stage.run([record(i) for i in range(9)], judge, cache)
    assert told_to_end(log, f"http://judge.example/v1/chat/completions: {told}")
    assert verdicts(judged) == [None] * 9
    assert len(tries) <= 2


def test_server_that_takes_no_connection_is_told_from_a_slow_one(
    cache: ReplyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: Any, **__: Any) -> Any:
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", connect)
    judge = judge_at("http://judge.example/v1", timeout=600.0, retries=0)
    (judged,) = stage.run([record(0)], judge, cache)
    where = "http://judge.example/v1/chat/completions"
    assert judged.judge.unscored == f"{where}: no connection within 30 seconds. {START}"


def test_closed_port_is_refused_and_named(cache: ReplyCache, log: list[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    stage.run([record(0)], judge_at(url, retries=6), cache)
    assert told_to_end(log, f"{url}/chat/completions: [Errno 111] Connection refused. {START}")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
def test_no_proxy_is_asked_for_this_machine(
    host: str, variable: str, cache: ReplyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"http://127.0.0.1:{free_port()}")
    with JudgeServer() as server:
        url = server.url.replace("127.0.0.1", host)
        assert verdicts(stage.run([record(5)], judge_at(url, retries=0), cache)) == [marks(5)]


@pytest.mark.parametrize("host", ["127.8.9.1", "[::1]", "judge.localhost"])
def test_no_proxy_is_blamed_for_this_machine(
    host: str, cache: ReplyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    url = f"http://{host}:{free_port()}/v1"
    (judged,) = stage.run([record(0)], judge_at(url, retries=0), cache)
    assert (judged.judge.unscored or "").startswith(f"{url}/chat/completions: ")


def test_a_proxy_that_is_not_there_is_named_without_its_password(
    cache: ReplyCache, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("http_proxy", f"http://me:pw-s@cret@127.0.0.1:{port}")
    stage.run([record(0)], judge_at("http://judge.example/v1", retries=6), cache)
    assert told_to_end(
        log,
        f"http://judge.example/v1/chat/completions, by the proxy http://***@127.0.0.1:{port}: "
        f"[Errno 111] Connection refused. {START}; {NO_PROXY}",
    )


@pytest.mark.parametrize("status", [403, 407, 503])
def test_a_proxy_that_refuses_is_named(
    status: int, cache: ReplyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JudgeServer(lambda *_: Act(status=status)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        judge = judge_at("http://judge.example/v1", retries=0)
        (judged,) = stage.run([record(0)], judge, cache)
    assert proxy.hosts == {"judge.example"}
    said = judged.judge.unscored or ""
    where = f"http://judge.example/v1/chat/completions, by the proxy {proxy.url[:-3]}: status "
    assert said.startswith(f"{where}{status} ")
    assert said.endswith(f"; {NO_PROXY}")


@pytest.mark.parametrize(
    "address", ["ftp://me:pw-secret@proxy:3128", "http://me:pw-secret@proxy:x"]
)
def test_a_proxy_that_cannot_be_used_is_an_error_without_its_password(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("all_proxy", address)
    with pytest.raises(JudgeError, match=re.escape("***@proxy:")) as error:
        judge_at("http://judge.example/v1")
    assert "the proxy cannot be used" in str(error.value)
    assert "pw-secret" not in str(error.value)
    assert judge_at("http://localhost/v1")


SECRETS = {"plain": KEY, "of a file": f"{KEY}\n", "two": f"{KEY}\n{KEY}", "ä": f"{KEY}ä"}


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("before", [0, 290])
def test_no_key_is_shown_whatever_a_server_or_the_client_says(
    kind: str, before: int, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = SECRETS[kind]
    leak = Act(status=400, body="x" * before + key)
    with JudgeServer(lambda *_: leak) as server:
        for name, value in {"": "openai", "_URL": server.url, "_KEY": key}.items():
            monkeypatch.setenv(f"PROACTIVEBENCH_JUDGE{name}", value)
        ((text,),) = JudgeFilter().apply([[record(0).to_json()]], None)
    assert json.loads(text)["judge"]["unscored"]
    assert "sk-" not in text + "".join(log)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("lexical", "judged by lexical-2, which is no judge model"),
        ("later", "open-ended answers are not judged yet"),
        ("openai", "judging failed"),  # no server is named
    ],
)
def test_what_holds_for_a_run_is_said_once_a_run(
    kind: str, told: str, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_JUDGE", kind)
    for _ in range(2):
        stage.begin()
        for _ in range(7):
            JudgeFilter().apply([[record(0).to_json()]], None)
    assert sum(told in line for line in log) == 2
