"""Guard: the model as the response cache sees it.

The cache passes sampled answers over, and computes its keys after the call, when a wrapper may have
changed its generation arguments. So the cache is shown requests without any, and the guard puts a
fresh copy of them in place: what they are is part of the request's ``idx``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.instance import (
    GenerationResult,
    Instance,
    TokenCounts,
    unwrap_generation_output,
)

from proactivebench_tasks.errors import GenerationError, HarnessError

_FAILED_REQUEST = "[LMMS_EVAL_REQUEST_FAILED"  # what API wrappers return when they gave up


@dataclass(frozen=True)
class Reply:
    """A wrapper's answer to one request: text, or why it is none."""

    output: str | GenerationError
    counts: TokenCounts | None = None


class Guard:
    """Calls the wrapper, with its own copy of ``gen_kwargs`` in each request, and checks what comes
    back. ``replies`` holds, by ``id`` of the request, what came; ``raised`` whether the last call
    did."""

    def __init__(
        self,
        lm: Any,
        gen_kwargs: Mapping[str, Any],
        in_step: Callable[[], object] = lambda: None,
    ) -> None:
        self._lm = lm
        self._gen_kwargs = gen_kwargs
        self._in_step = in_step
        self.replies: dict[int, Reply] = {}
        self.raised = False

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        """What the cache may keep of each reply; ``None`` for nothing: neither failures nor empty
        answers, which some wrappers return when generation fails. ``HarnessError`` when the number
        of responses is wrong."""
        self._in_step()
        try:
            responses = self._lm.generate_until([self._for_wrapper(r) for r in requests])
            wrapper = f"wrapper {type(self._lm).__name__} returned"
            if not isinstance(responses, Sequence) or isinstance(responses, str):
                raise HarnessError(f"{wrapper} a {type(responses).__name__}, not a list")
            if len(responses) != len(requests):
                raise HarnessError(
                    f"{wrapper} {len(responses)} responses for {len(requests)} requests, so no "
                    "answer can be told to belong to its sample"
                )
        except BaseException:
            self.raised = True
            raise
        for request, response in zip(requests, responses, strict=True):
            self.replies[id(request)] = self._reply(response)
        return [_keepable(self.replies[id(request)]) for request in requests]

    def _for_wrapper(self, request: Instance) -> Instance:
        own = copy.copy(request)
        own.arguments = tuple(
            copy.deepcopy(dict(self._gen_kwargs)) if isinstance(arg, dict) else arg
            for arg in request.args
        )
        return own

    def _reply(self, response: Any) -> Reply:
        text, counts = unwrap_generation_output(response) if _is_answer(response) else ("", None)
        if _is_answer(response) and not text.startswith(_FAILED_REQUEST):
            return Reply(text, counts)
        wrapper = type(self._lm).__name__
        return Reply(GenerationError(f"wrapper {wrapper} returned no answer: {response!r:.500}"))


def _is_answer(response: Any) -> bool:
    """Whether a response has a shape that the harness knows; it makes text of any other."""
    if isinstance(response, GenerationResult):
        return isinstance(response.text, str)
    if isinstance(response, (tuple, list)) and len(response) == 2:
        return isinstance(response[0], str) and isinstance(response[1], (dict, TokenCounts))
    return isinstance(response, str)


def _keepable(reply: Reply) -> Any:
    if not isinstance(reply.output, str) or not reply.output.strip():
        return None
    # A pair, unlike a GenerationResult, keeps its counts in the cache.
    return reply.output if reply.counts is None else (reply.output, reply.counts.to_dict())
