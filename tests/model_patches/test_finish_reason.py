"""Replies without an answer, through real wrappers of servers: the reason is in the transcript."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fakes.chat_server import ChatServer, Sent, reply
from fakes.probe import ALL, Lab, sample_id
from lmms_eval import models
from openai.resources.chat import AsyncCompletions, Completions

from proactivebench_tasks.model_patches.wrappers import finish_reason
from proactivebench_tasks.protocol.samples import Dataset

VSOD = ALL[Dataset.VSOD]
ROOM = "`--gen_kwargs max_new_tokens=4096` gives it more room"
FILTER = "Only the provider's own settings can change that"
PARSER = (
    "If its answers are among the reasoning, the server's parser of reasoning does not fit the "
)
ADDRESS = "is `base_url` right, up to its /v1?"

#: A reply without an answer, and the reason that there is none.
FAULTS: Mapping[str, tuple[Any, str]] = {
    "limit, reasoning beside it": (
        reply(None, "length", 50, 50, reasoning_content="Let me see. The"),
        "the limit of 50 new tokens was spent on reasoning (finish_reason length, 50 of 50 tokens),"
        f" so there is no answer. {ROOM}",
    ),
    "limit, reasoning counted": (
        reply("", "length", 50, 48),
        "the limit of 50 new tokens was spent on reasoning (finish_reason length, 48 of 50 tokens),"
        f" so there is no answer. {ROOM}",
    ),
    "limit, reasoning uncounted": (
        reply(None, "length", reasoning="Let me see. The"),
        "the limit of 50 new tokens was spent on reasoning (finish_reason length), so there is no "
        f"answer. {ROOM}",
    ),
    "limit, nothing else": (
        reply(None, "length"),
        "the limit of 50 new tokens was reached before the model had said anything (finish_reason "
        f"length). {ROOM}",
    ),
    "limit, blanks": (
        reply(" \n\n ", "length", 50),
        "the limit of 50 new tokens was reached before the model had said anything (finish_reason "
        f"length, 50 tokens). {ROOM}",
    ),
    "filter": (
        reply(None, "content_filter"),
        f"a content filter of the provider stopped it (finish_reason content_filter). {FILTER}",
    ),
    "filter, empty": (
        reply("", "content_filter", 0),
        f"a content filter of the provider stopped it (finish_reason content_filter). {FILTER}",
    ),
    "filter, half an answer": (
        reply("The answer is", "content_filter", 3),
        "a content filter of the provider stopped it after 'The answer is' (finish_reason "
        f"content_filter). {FILTER}",
    ),
    "refusal": (
        reply(None, refusal="I cannot help with this."),
        "the model refused to answer: 'I cannot help with this.'",
    ),
    "refusal, empty text": (
        reply("", "stop", 9, refusal="No."),
        "the model refused to answer: 'No.'",
    ),
    "null": (
        reply(None, "stop", 1),
        "the server sent null in place of a text (finish_reason stop)",
    ),
    "null, no finish_reason": (
        reply(None, None),
        "the server sent null in place of a text (no finish_reason)",
    ),
    "null, aborted": (
        reply(None, "abort"),
        "the server sent null in place of a text (finish_reason abort)",
    ),
    "null, reasoning beside it": (
        reply(None, "stop", 40, reasoning_content="B it is."),
        f"the model reasoned and then said nothing (finish_reason stop). {PARSER}model",
    ),
    "empty, reasoning counted": (
        reply("", "stop", 40, 40),
        f"the model reasoned and then said nothing (finish_reason stop). {PARSER}model",
    ),
    "tool": (
        reply(None, "tool_calls"),
        "the model called a tool, and there is none (finish_reason tool_calls)",
    ),
}

#: What is no reply: the wrapper tries again, and says the reason in a text of its own.
NO_REPLIES: Mapping[str, tuple[Any, str]] = {
    "no choices": (
        reply("A") | {"choices": []},
        "the server sent a reply without a message (no choices in it)",
    ),
    "choices null": (
        reply("A") | {"choices": None},
        "the server sent a reply without a message (no choices in it)",
    ),
    "message null": (
        {"choices": [{"index": 0, "message": None, "finish_reason": "stop"}]},
        "the server sent a reply without a message (no choices in it)",
    ),
    "error": (
        {"error": {"message": "Provider returned error", "code": 502}},
        "the server sent an error in place of a reply: Provider returned error (code 502)",
    ),
    "error of a type": (
        {"error": {"message": "overloaded", "type": "overloaded_error"}},
        "the server sent an error in place of a reply: overloaded (code overloaded_error)",
    ),
    "error, a text": (
        {"error": "CUDA out of memory"},
        "the server sent an error in place of a reply: CUDA out of memory",
    ),
    "error in the choice": (
        {
            "choices": [
                {
                    "message": {"role": "assistant", "content": ""},
                    "finish_reason": "error",
                    "error": {"message": "upstream went away", "code": 503},
                }
            ]
        },
        "the server sent an error in place of a reply: upstream went away (code 503)",
    ),
    "page": (
        Sent("<html>Welcome to nginx</html>", "text/html"),
        f"the server sent no reply but '<html>Welcome to nginx</html>': {ADDRESS}",
    ),
    "page called JSON": (
        Sent("<html>Bad gateway</html>"),
        f"the server sent no JSON but '<html>Bad gateway</html>': {ADDRESS}",
    ),
    "list": (
        [],
        f"the server sent no reply but []: {ADDRESS}",
    ),
    "null for all": (
        Sent("null"),
        f"the server sent no reply but None: {ADDRESS}",
    ),
}

#: What is an answer, if a strange one; and what is graded of it.
ANSWERS: Mapping[str, tuple[Any, str]] = {
    "cut": (reply("I see a thing and", "length", 50), "I see a thing and"),
    "after reasoning": (
        reply("A thing", "stop", 40, 39, reasoning_content="A thing it is."),
        "A thing",
    ),
    "with a refusal": (reply("A thing", refusal="Not quite."), "A thing"),
    "no word": (reply("", "stop", 1), ""),
    "no usage": (reply("I see a thing"), "I see a thing"),
}

KINDS = {**FAULTS, **NO_REPLIES, **ANSWERS}
SAMPLES = {sample_id(number, Dataset.VSOD): kind for number, kind in enumerate(KINDS)}

WRAPPERS: Mapping[str, Callable[[str], Any]] = {
    "openai": lambda url: _wrapper("openai", url),
    "openai, simple": lambda url: _wrapper("openai", url, force_simple=True),
    "async_openai": lambda url: _wrapper("async_openai", url),
}


def _wrapper(name: str, url: str, force_simple: bool = False) -> Any:
    kind = models.get_model(name, force_simple)
    wrapper = kind(model="m", base_url=url, api_key="x", max_retries=1, retry_backoff_s=0.0)
    wrapper.disagreements = []  # for the laboratory
    return wrapper


def of_script(sample: int) -> Sent:
    sent = KINDS[SAMPLES[sample]][0]
    return sent if isinstance(sent, Sent) else Sent(sent)


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.make(Dataset.VSOD, count=len(KINDS))
    return lab


@pytest.mark.parametrize("name", WRAPPERS)
def test_the_reason_is_in_the_transcript_and_in_the_log_and_nothing_is_kept(
    lab: Lab, log: list[str], name: str
) -> None:
    cache = str(lab.folder / "cache")
    with ChatServer(of_script) as server:
        wrapper = WRAPPERS[name](server.url)
        kind = type(wrapper).__name__
        outcome = lab.evaluate(wrapper, VSOD, use_cache=cache)
        answered = {SAMPLES[i]: answers for i, answers in outcome.answers(VSOD).items()}
        failed = {SAMPLES[i]: error for i, error in outcome.failed(VSOD).items()}
        assert failed == {
            **{kind: f"GenerationError: {reason}" for kind, (_, reason) in FAULTS.items()},
            **{each: no_reply(kind, reason) for each, (_, reason) in NO_REPLIES.items()},
        }
        assert {each: [text] for each, (_, text) in ANSWERS.items()} == {
            each: answered[each] for each in ANSWERS
        }
        for sample, each in SAMPLES.items():
            if each in failed:
                assert [line for line in log if f"sample {sample}, turn 1: {failed[each]}" in line]
        assert server.limits == {50}

        server.requests.clear()
        server.script = lambda sample: Sent(reply("I see a thing"))
        again = lab.evaluate(wrapper, VSOD, use_cache=cache)
        assert again.failed(VSOD) == {}
        asked = {SAMPLES[sample] for sample in server.requests}
        assert asked == {*FAULTS, *NO_REPLIES, "no word"}


def no_reply(wrapper: str, reason: str) -> str:
    text = f"[LMMS_EVAL_REQUEST_FAILED after 1 retries] {reason}"
    return f"GenerationError: wrapper {wrapper} returned no answer: {text!r}"


def test_the_limit_that_is_named_is_the_one_that_was_set(lab: Lab) -> None:
    with ChatServer(lambda sample: Sent(reply(None, "length"))) as server:
        with pytest.raises(Exception, match=r"limit of 4096 .* max_new_tokens=32768` gives it"):
            lab.evaluate(
                WRAPPERS["openai"](server.url), VSOD, gen_kwargs="max_new_tokens=4096", limit=2
            )
        assert server.limits == {4096}


def test_the_tokens_that_a_failure_cost_are_in_the_transcript(lab: Lab) -> None:
    def script(sample: int) -> Sent:
        return of_script(sample) if sample == 100 else Sent(reply("I see a thing", tokens=4))

    assert SAMPLES[100] == "limit, reasoning beside it"
    with ChatServer(script) as server:
        outcome = lab.evaluate(WRAPPERS["openai"](server.url), VSOD, limit=2)
    counted = outcome.tokens[VSOD][100]
    assert (counted["output_tokens"], counted["reasoning_tokens"]) == (50, 50)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, ValueError])
def test_clients_are_as_before_when_our_tasks_are_done(error: type[BaseException] | None) -> None:
    before = Completions.create, AsyncCompletions.create
    try:
        with finish_reason.told(object()):
            assert Completions.create is not before[0]
            assert AsyncCompletions.create is not before[1]
            if error is not None:
                raise error
    except (KeyboardInterrupt, ValueError):
        pass
    assert (Completions.create, AsyncCompletions.create) == before


def test_wrapper_without_such_a_client_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    monkeypatch.delitem(sys.modules, "openai")
    with finish_reason.told(object()):
        pass
    assert log == ["DEBUG wrapper object has no client whose replies could be read\n"]
