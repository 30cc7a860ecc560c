"""Guard: the model as the response cache sees it."""

from __future__ import annotations

import copy
from typing import Any

from lmms_eval.api.instance import Instance, unwrap_generation_output

from proactivebench_tasks.errors import HarnessError

_FAILED_REQUEST = "[LMMS_EVAL_REQUEST_FAILED"  # what API wrappers return when they gave up


class Guard:
    """The model as the response cache sees it: checks what the wrapper returns, shields what it is
    given. The cache computes its keys after the call, so a wrapper that changes its generation
    arguments would store answers where they are never found."""

    def __init__(self, lm: Any) -> None:
        self._lm = lm
        self.failures: dict[int, str] = {}

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        responses = self._lm.generate_until([_own_copy(request) for request in requests])
        if len(responses) != len(requests):
            raise HarnessError(
                f"wrapper {type(self._lm).__name__} returned {len(responses)} responses for "
                f"{len(requests)} requests, so no answer can be told to belong to its sample"
            )
        return [self._checked(*pair) for pair in zip(requests, responses, strict=True)]

    def _checked(self, request: Instance, response: Any) -> Any:
        """What the cache may keep; ``None``, which it does not keep, where there is no answer."""
        text, counts = unwrap_generation_output(response) if response is not None else (None, None)
        if not isinstance(text, str) or text.startswith(_FAILED_REQUEST):
            wrapper = type(self._lm).__name__
            self.failures[id(request)] = f"wrapper {wrapper} returned no answer: {text!r:.500}"
            return None
        # A pair, unlike a GenerationResult, keeps its counts in the cache.
        return (text, counts.to_dict()) if counts is not None and text.strip() else text


def _own_copy(request: Instance) -> Instance:
    own = copy.copy(request)
    own.arguments = tuple(
        copy.deepcopy(arg) if isinstance(arg, dict) else arg for arg in request.args
    )
    return own
