"""Says why a server's reply holds no answer: wrappers take its text, and drop the reason.

A model that spends its limit on reasoning, a content filter and a refusal all come as a null text
beside a ``finish_reason``. The wrappers ``openai`` and ``async_openai`` pass on the null,
or the text of an error of their own. An error inside of HTTP 200 becomes ``'NoneType' object is not
subscriptable``. So a text that says the reason is put in place of what is none; what is no reply at
all is raised, upon which the wrapper tries again. Needed since lmms-eval 0.7.0. This can go once
wrappers return the ``finish_reason``.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from loguru import logger

from proactivebench_tasks.errors import GenerationError
from proactivebench_tasks.rollout.no_answer import MARK, ModelReply

_QUOTED = 80  # letters of what a server said that a reason quotes


@contextmanager
def told(lm: Any) -> Iterator[None]:
    """Replies of the clients of the package ``openai`` have a text, or raise why they have none."""
    if "openai" not in sys.modules:
        logger.debug(f"wrapper {type(lm).__name__} has no client whose replies could be read")
        yield
        return
    from openai.resources.chat import AsyncCompletions, Completions

    create, create_async = Completions.create, AsyncCompletions.create

    @functools.wraps(create)
    def read(self: Any, *args: Any, **request: Any) -> Any:
        try:
            return _with_reason(create(self, *args, **request), request)
        except json.JSONDecodeError as error:
            raise _not_json(error) from error

    @functools.wraps(create_async)
    async def read_async(self: Any, *args: Any, **request: Any) -> Any:
        try:
            return _with_reason(await create_async(self, *args, **request), request)
        except json.JSONDecodeError as error:
            raise _not_json(error) from error

    _set(Completions, read)
    _set(AsyncCompletions, read_async)
    try:
        yield
    finally:
        _set(Completions, create)
        _set(AsyncCompletions, create_async)


def _set(client: Any, create: Callable[..., Any]) -> None:
    client.create = create


def _with_reason(reply: Any, request: Mapping[str, Any]) -> Any:
    """The reply, with the reason in place of the text if it has no answer.

    Raises ``GenerationError`` if it is no reply.
    """
    from openai.types.chat import ChatCompletion

    if isinstance(reply, (str, list)) or reply is None:
        raise GenerationError(f"the server sent no reply but {reply!r:.{_QUOTED}}{_ADDRESS}")
    if not isinstance(reply, ChatCompletion):  # a stream, or raw, if a wrapper asks for one
        return reply
    if (error := _error(reply)) is not None:
        raise GenerationError(f"the server sent an error in place of a reply: {error}")
    if not reply.choices or reply.choices[0].message is None:
        raise GenerationError("the server sent a reply without a message (no choices in it)")
    choice = reply.choices[0]
    if choice.finish_reason == "tool_calls":
        if "tools" in request:  # which async_openai has with an MCP server
            return reply
        fault = "the model called a tool, and there is none (finish_reason tool_calls)"
    else:
        fault = _model_reply(reply, request).fault() or ""
    if fault:
        choice.message.content = MARK + fault
        choice.finish_reason = "stop"  # what else is said of it is in the reason
    return reply


_ADDRESS = ": is `base_url` right, up to its /v1?"


def _not_json(error: json.JSONDecodeError) -> GenerationError:
    sent = error.doc.strip()
    return GenerationError(f"the server sent no JSON but {sent!r:.{_QUOTED}}{_ADDRESS}")


def _error(reply: Any) -> str | None:
    """The error that some servers send with status 200, as the whole reply or in its choice."""
    holders = [reply, *(reply.choices or [])]
    found = next((error for each in holders if (error := getattr(each, "error", None))), None)
    if isinstance(found, Mapping):
        code = found.get("code") or found.get("type")
        found = f"{found.get('message')}" + (f" (code {code})" if code else "")
    return None if found is None else f"{found:.150}"


def _model_reply(reply: Any, request: Mapping[str, Any]) -> ModelReply:
    choice, usage = reply.choices[0], reply.usage
    message = choice.message
    content = message.content
    details = getattr(usage, "completion_tokens_details", None)
    reasoning = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
    return ModelReply(
        text=None if content is None else str(content),
        finish=choice.finish_reason or "",
        refusal=getattr(message, "refusal", None) or "",
        reasoned=bool(reasoning),
        output_tokens=getattr(usage, "completion_tokens", None) or 0,
        reasoning_tokens=getattr(details, "reasoning_tokens", None) or 0,
        limit=request.get("max_tokens") or request.get("max_completion_tokens") or 0,
    )
