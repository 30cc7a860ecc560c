"""Guard: the model as the response cache sees it.

The cache passes sampled answers over, and computes its keys after the call, when a wrapper may have
changed its generation arguments. So the cache is shown requests without any, and the guard puts a
fresh copy of them in place: what they are is part of the request's ``idx``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from lmms_eval.api.instance import Instance, unwrap_generation_output

from proactivebench_tasks.errors import HarnessError

_FAILED_REQUEST = "[LMMS_EVAL_REQUEST_FAILED"  # what API wrappers return when they gave up


class Guard:
    """Calls the wrapper, with its own copy of ``gen_kwargs`` in each request, and checks what comes
    back. ``failures`` holds, by ``id`` of the request, what was wrong with a response."""

    def __init__(self, lm: Any, gen_kwargs: Mapping[str, Any]) -> None:
        self._lm = lm
        self._gen_kwargs = gen_kwargs
        self.failures: dict[int, str] = {}

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        """A response for each request; ``None``, which the cache does not keep, where there is no
        answer. ``HarnessError`` when their number is wrong."""
        responses = self._lm.generate_until([self._for_wrapper(request) for request in requests])
        if len(responses) != len(requests):
            raise HarnessError(
                f"wrapper {type(self._lm).__name__} returned {len(responses)} responses for "
                f"{len(requests)} requests, so no answer can be told to belong to its sample"
            )
        return [self._checked(*pair) for pair in zip(requests, responses, strict=True)]

    def _for_wrapper(self, request: Instance) -> Instance:
        own = copy.copy(request)
        own.arguments = tuple(
            copy.deepcopy(dict(self._gen_kwargs)) if isinstance(arg, dict) else arg
            for arg in request.args
        )
        return own

    def _checked(self, request: Instance, response: Any) -> Any:
        text, counts = unwrap_generation_output(response) if response is not None else (None, None)
        if not isinstance(text, str) or text.startswith(_FAILED_REQUEST):
            wrapper = type(self._lm).__name__
            self.failures[id(request)] = f"wrapper {wrapper} returned no answer: {text!r:.500}"
            return None
        # A pair, unlike a GenerationResult, keeps its counts in the cache.
        return (text, counts.to_dict()) if counts is not None and text.strip() else text
