"""What a judge's server may send with status 200, and what becomes of each: a verdict, or none."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.judge_server import Act, JudgeServer, completion, record

from proactivebench_tasks.config import JudgeKind
from proactivebench_tasks.judge import stage
from proactivebench_tasks.judge.openai import OpenAIJudge
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.judge.reply_cache import ReplyCache
from proactivebench_tasks.judge.settings import JudgeSettings

MARKS = "1, 0, 1, 0"
RAISE_LIMIT = "set PROACTIVEBENCH_JUDGE_MAX_TOKENS, or the server's own limit, higher"
CUT = f"the reply was cut off at the limit on tokens (finish_reason length): {RAISE_LIMIT}"
CUT_THINKING = (
    f"empty reply: the thinking was cut off at the limit on tokens (finish_reason length): "
    f"{RAISE_LIMIT}"
)
OPEN = "the reply ends while thinking: no mark ends it"


@dataclass(frozen=True)
class Case:
    """``sent``: the body. ``verdict`` or else ``reason`` is what comes of it; ``official``: the
    verdict by the published script's parsing, if another."""

    name: str
    sent: Any
    verdict: list[int] | None = None
    reason: str | None = None
    official: list[int] | None = None

    @property
    def is_kept(self) -> bool:
        """A whole reply is kept, also one without a usable verdict."""
        return self.reason is None or "verdict" in self.reason


def says(content: Any, finish: Any = "stop", **message: Any) -> dict[str, Any]:
    sent = completion(content, finish)
    sent["choices"][0]["message"].update(message)
    return sent


def without(sent: dict[str, Any], key: str) -> dict[str, Any]:
    del sent["choices"][0][key]
    return sent


def bad(name: str, sent: Any, reason: str, official: list[int] | None = None) -> Case:
    return Case(name, sent, reason=reason, official=official)


def good(name: str, sent: Any) -> Case:
    return Case(name, sent, verdict=[1, 0, 1, 0])


def failed(
    name: str, sent: Any, status: str, said: str, step: str = "See the server's log"
) -> Case:
    return bad(name, sent, f"{{url}}: status {status}: {said}. {step}")


def no_text(name: str, sent: dict[str, Any]) -> Case:
    said = f"no text in the reply: {json.dumps(sent)}"
    return bad(name, sent, f"{{url}}: {said}. See the server's log")


def odd(name: str, sent: Any) -> Case:
    shown = sent if isinstance(sent, str) else json.dumps(sent)
    shown = shown or "it is empty"
    step = "Does the address end in /v1? If not, set PROACTIVEBENCH_JUDGE_URL"
    return bad(name, sent, f"{{url}}: the reply is no chat completion: {shown}. {step}")


COMPLAINT = "Change what the server complains of"
OVERLOADED = {"message": "Provider returned error", "code": 502}
CASES = [
    good("plain", says(MARKS)),
    good("after thinking", says(f"<think>or 1, 1, 1, 1?</think>\n{MARKS}")),
    good("thinking that began in the prompt", says(f"or 1, 1, 1, 1?</think>\n{MARKS}")),
    good("two lists", says(f"0, 0, 0, 0. No: {MARKS}")),
    good("no finish reason", says(MARKS, None)),
    good("finish reason left out", without(says(MARKS), "finish_reason")),
    good("finish reason of another server", says(MARKS, "eos_token")),
    good("finish reason in capitals", says(MARKS, "STOP")),
    good("an error that is none", says(MARKS) | {"error": None}),
    good("a heading that looks like thinking", says(f"[Reasoning] It asks.\n{MARKS}")),
    bad("too few marks", says("1, 0, 1"), "the verdict has 3 marks for 4 answers"),
    bad("too many marks", says("1, 0, 1, 0, 0"), "the verdict has 5 marks for 4 answers"),
    bad("words", says("Yes, no, yes, no."), "no verdict in the reply"),
    bad("nothing after thinking", says("<think>1, 0, 1, 0</think>"), "no verdict in the reply"),
    bad(
        "cut while thinking",
        says("<think>The camera could be met, so maybe 1, 0, 1, 0 but", "length"),
        CUT,
        [1, 0, 1, 0],
    ),
    bad("cut without a mark of thinking", says(f"So maybe {MARKS}", "length"), CUT, [1, 0, 1, 0]),
    bad("cut after thinking", says(f"<think>.</think>{MARKS}", "length"), CUT, [1, 0, 1, 0]),
    bad("cut list", says("<think>.</think>1, 0, 1", "length"), CUT),
    bad(
        "cut, in the word of another server",
        says(MARKS, "MAX_TOKENS"),
        CUT.replace("length", "MAX_TOKENS"),
        [1, 0, 1, 0],
    ),
    bad("open thinking that stopped", says(f"<think>maybe {MARKS} but"), OPEN, [1, 0, 1, 0]),
    bad("open thinking, nothing said", says(f"<think>{MARKS}", None), OPEN, [1, 0, 1, 0]),
    bad("thinking that began again", says(f"<think>.</think>.<think>{MARKS}"), OPEN, [1, 0, 1, 0]),
    bad("open [THINK]", says(f"[THINK]maybe {MARKS}"), OPEN, [1, 0, 1, 0]),
    bad("open <thinking>", says(f"<thinking>maybe {MARKS}"), OPEN, [1, 0, 1, 0]),
    bad("open <seed:think>", says(f"<seed:think>maybe {MARKS}"), OPEN, [1, 0, 1, 0]),
    bad("cut before the first word", says("", "length"), CUT_THINKING),
    bad("cut, null content", says(None, "length", reasoning_content=MARKS), CUT_THINKING),
    bad("null content", says(None), "empty reply (finish_reason stop)"),
    bad("no content", says(None, None), "empty reply (finish_reason None)"),
    bad("blank", says(" \n"), "empty reply (finish_reason stop)"),
    bad(
        "filter",
        says(MARKS, "content_filter"),
        "a content filter stopped the reply (finish_reason content_filter)",
        [1, 0, 1, 0],
    ),
    bad(
        "filter, null content",
        says(None, "content_filter"),
        "a content filter stopped the reply (finish_reason content_filter)",
    ),
    bad(
        "tool call",
        says(MARKS, "tool_calls"),
        "the reply is not whole (finish_reason tool_calls)",
        [1, 0, 1, 0],
    ),
    bad(
        "aborted",
        says(MARKS, "abort"),
        "the reply is not whole (finish_reason abort)",
        [1, 0, 1, 0],
    ),
    bad(
        "failed half way",
        says(MARKS, "error"),
        "the reply is not whole (finish_reason error)",
        [1, 0, 1, 0],
    ),
    bad("refusal", says(None, refusal="I can't help."), "the judge refused: I can't help."),
    no_text("content in parts", says([{"type": "text", "text": MARKS}])),
    no_text("content that is a number", says(1010)),
    no_text("no message", without(says(MARKS), "message")),
    no_text("no choices", {"choices": []}),
    no_text("an empty choice", {"choices": [None]}),
    odd("null choices", {"choices": None}),
    odd("choices that are an object", {"choices": {}}),
    odd("another kind of object", {"detail": "Not Found"}),
    odd("a list", [MARKS]),
    odd("a number", "1010"),
    odd("not JSON", "{no JSON"),
    odd("half of JSON", '{"choices": [{"message": {"content": "1, 0, 1, 0"'),
    odd("nothing", ""),
    odd("a page", f"<html><body>{MARKS}</body></html>"),
    failed("error", {"error": OVERLOADED}, "502 Bad Gateway", "Provider returned error"),
    failed(
        "error beside a text",
        says(MARKS) | {"error": OVERLOADED},
        "502 Bad Gateway",
        "Provider returned error",
    ),
    failed("error without a code", {"error": {"message": "oh"}}, "500 Internal Server Error", "oh"),
    failed(
        "error in words", {"error": "out of memory"}, "500 Internal Server Error", "out of memory"
    ),
    failed(
        "error with a code of its own",
        {"error": {"message": "busy", "code": 1302}},
        "500 Internal Server Error",
        "busy",
    ),
    failed(
        "error of the request",
        {"error": {"message": "too long", "code": "400"}},
        "400 Bad Request",
        "too long",
        COMPLAINT,
    ),
    failed(
        "an object that is an error",
        {"object": "error", "message": "too long", "code": 422},
        "422 Unprocessable Entity",
        "too long",
        COMPLAINT,
    ),
    failed(
        "error of the choice",
        {"choices": [says(MARKS, "error")["choices"][0] | {"error": OVERLOADED}]},
        "502 Bad Gateway",
        "Provider returned error",
    ),
]


@pytest.fixture(scope="module")
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    with ReplyCache(tmp_path / "verdicts.sqlite") as cache:
        yield cache


def judge_at(server: JudgeServer) -> OpenAIJudge:
    return OpenAIJudge(JudgeSettings(JudgeKind.OPENAI, url=server.url, retries=0))


def say(server: JudgeServer, sent: Any) -> None:
    """From now on the server sends this, whatever it is asked."""
    body = sent if isinstance(sent, str) else json.dumps(sent)
    kind = "text/html" if body.startswith("<") else "application/json"
    server.script = lambda *_: Act(body=body, content_type=kind)
    server.attempts.clear()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reply_gets_its_verdict_or_the_reason_why_not(
    case: Case, server: JudgeServer, cache: ReplyCache
) -> None:
    say(server, case.sent)
    judge = judge_at(server)
    (first,) = stage.run([record(0)], judge, cache)
    verdict = None if first.judge.verdict is None else list(first.judge.verdict)
    reason = case.reason and case.reason.replace("{url}", f"{server.url}/chat/completions")
    assert (verdict, first.judge.unscored) == (case.verdict, reason)
    assert (first.judge.raw is not None) == case.is_kept
    assert stage.run([record(0)], judge, cache) == [first]
    assert server.attempts == {0: 1 if case.is_kept else 2}


SCORED = [case for case in CASES if case.official or case.verdict]


@pytest.mark.parametrize("case", SCORED, ids=lambda case: case.name)
def test_published_parsing_scores_any_text(
    case: Case, server: JudgeServer, cache: ReplyCache
) -> None:
    say(server, case.sent)
    for _ in range(2):
        (judged,) = stage.run([record(0)], judge_at(server), cache, official=True)
        assert list(judged.judge.verdict or ()) == (case.official or case.verdict)
    assert server.attempts == {0: 1}


OLD = {
    "cut": ("<think>… could be met, so maybe 1, 0, 1, 0 but", True),
    "blank": (" ", True),
    "thinking ends": ("<think>1, 1, 1, 1</think>0, 0, 0, 0", False),
    "no verdict": ("I cannot say.", False),
}


@pytest.mark.parametrize("kept", OLD)
def test_reply_of_an_older_version_that_is_none_is_asked_again(
    kept: str, server: JudgeServer, tmp_path: Path
) -> None:
    text, is_asked = OLD[kept]
    path = tmp_path / "verdicts.sqlite"
    judge = judge_at(server)
    key = Question.of(record(5)).key(judge.identity)
    with sqlite3.connect(path) as db:  # as the older version made it
        db.execute("CREATE TABLE replies (key TEXT PRIMARY KEY, raw TEXT)")
        db.execute("INSERT INTO replies VALUES (?, ?)", (key, text))
    say(server, says(MARKS))
    for _ in range(2):  # the second time the new reply is known
        with ReplyCache(path) as cache:
            (judged,) = stage.run([record(5)], judge, cache)
        assert server.attempts == ({5: 1} if is_asked else {})
        assert (judged.judge.raw == text) is not is_asked


def test_what_the_published_script_alone_scores_is_asked_again_without_it(
    server: JudgeServer, cache: ReplyCache
) -> None:
    say(server, says(MARKS, "length"))
    (official,) = stage.run([record(5)], judge_at(server), cache, official=True)
    assert (official.judge.verdict, official.judge.finish) == ((1, 0, 1, 0), "length")
    say(server, says("0, 0, 0, 0"))
    (strict,) = stage.run([record(5)], judge_at(server), cache)
    assert (strict.judge.verdict, strict.judge.finish) == ((0, 0, 0, 0), "stop")
