"""CheckedModel: the model wrapper as the response cache sees it, its answers checked.

The cache passes sampled answers over, and computes its keys after the call, when a wrapper may have
changed its generation arguments. So the cache is shown requests without any, and the checked model
puts a fresh copy of them in place: what they are is part of the request's ``idx``.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval.api.instance import (
    GenerationResult,
    Instance,
    TokenCounts,
    unwrap_generation_output,
)

from proactivebench_tasks.errors import GenerationError, HarnessError
from proactivebench_tasks.rollout.no_answer import MARK, ModelReply
from proactivebench_tasks.rollout.rollout import Failure, Outcome
from proactivebench_tasks.transcripts.answer import Answer, Cost, Origin

#: How the texts begin that wrappers return as if the model had said them: the request failed, or
#: the budget of tokens is used up; the provider refused; a server gave no text (async_openai). Ours
#: is followed by the reason.
_NO_ANSWER = (
    MARK,
    "[LMMS_EVAL_",
    "[SAFETY_BLOCKED:",
    'Error: can only concatenate str (not "NoneType")',
)


class ModelRaised(Exception):
    """A wrapper raised; its own exception is the cause. So it is not taken for one of the cache."""


class CheckedModel:
    """Calls the wrapper, with its own copy of ``gen_kwargs`` in each request, and checks what comes
    back. ``before_call`` is called first. One is made for each call."""

    def __init__(
        self, lm: Any, gen_kwargs: Mapping[str, Any], before_call: Callable[[], object]
    ) -> None:
        self._lm = lm
        self._gen_kwargs = gen_kwargs
        self._before_call = before_call
        #: What came of each request, by its ``id``.
        self.outcomes: dict[int, Outcome] = {}
        #: The requests that the wrapper was given, by ``id``, and the seconds that it took.
        self.sent: set[int] = set()
        self.seconds = 0.0

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        """What the cache may keep of each answer; ``None`` for nothing: neither failures nor empty
        answers, which some wrappers return when generation fails.

        ``ModelRaised`` when the wrapper raised, or did not return a response to each request.
        """
        self._before_call()
        self.sent.update(map(id, requests))
        started = time.perf_counter()
        try:
            responses = self._responses(requests)
        except Exception as error:
            raise ModelRaised from error
        finally:
            self.seconds += time.perf_counter() - started
        for request, response in zip(requests, responses, strict=True):
            self.outcomes[id(request)] = self._checked(response)
        return [may_be_kept(self.outcomes[id(request)]) for request in requests]

    def _responses(self, requests: list[Instance]) -> Sequence[Any]:
        responses = self._lm.generate_until([self._for_wrapper(r) for r in requests])
        wrapper = f"wrapper {type(self._lm).__name__} returned"
        if not isinstance(responses, Sequence) or isinstance(responses, str):
            raise HarnessError(f"{wrapper} a {type(responses).__name__}, not a list")
        if len(responses) != len(requests):
            raise HarnessError(
                f"{wrapper} {len(responses)} responses for {len(requests)} requests, so no "
                "answer can be told to belong to its sample"
            )
        return responses

    def _for_wrapper(self, request: Instance) -> Instance:
        own = copy.copy(request)
        own.arguments = tuple(
            copy.deepcopy(dict(self._gen_kwargs)) if isinstance(arg, dict) else arg
            for arg in request.args
        )
        return own

    def _checked(self, response: Any) -> Outcome:
        if not _has_known_shape(response):
            return Failure(GenerationError(self._no_answer(response)))
        answer = _answer(response, Origin.MODEL)
        fault = self._fault(answer)
        return answer if fault is None else Failure(GenerationError(fault), answer.cost)

    def _fault(self, answer: Answer) -> str | None:
        """Why a text is no answer; ``None`` if it is one."""
        if answer.text.startswith(MARK):
            return answer.text.removeprefix(MARK)
        if is_failure(answer.text):
            return self._no_answer(answer.text)
        tokens = answer.cost.tokens
        return ModelReply(
            answer.text,
            output_tokens=tokens.get("output_tokens", 0),
            reasoning_tokens=tokens.get("reasoning_tokens", 0),
            limit=self._gen_kwargs.get("max_new_tokens") or 0,
        ).fault()

    def _no_answer(self, returned: Any) -> str:
        return f"wrapper {type(self._lm).__name__} returned no answer: {returned!r:.500}"


def is_failure(text: str) -> bool:
    """Whether a wrapper says by this text that there is no answer."""
    return text.startswith(_NO_ANSWER)


def is_worth_keeping(text: str) -> bool:
    """Whether the response cache may keep a text: neither a failure nor an empty answer, which some
    wrappers return when generation fails."""
    return bool(text.strip()) and not is_failure(text)


def from_cache(response: Any) -> Answer:
    """The answer in a response that was checked before it was kept."""
    return _answer(response, Origin.CACHE)


def _answer(response: Any, origin: Origin) -> Answer:
    text, counts = unwrap_generation_output(response)
    return Answer(text, origin, Cost(tokens=counts.to_dict() if counts else {}))


def _has_known_shape(response: Any) -> bool:
    """Whether the harness knows the shape of a response; it makes text of any other."""
    if isinstance(response, GenerationResult):
        return isinstance(response.text, str)
    if isinstance(response, (tuple, list)) and len(response) == 2:
        return isinstance(response[0], str) and isinstance(response[1], (dict, TokenCounts))
    return isinstance(response, str)


def may_be_kept(outcome: Outcome) -> Any:
    """What the response cache may keep of an outcome; ``None`` for nothing."""
    if isinstance(outcome, Failure) or not is_worth_keeping(outcome.text):
        return None
    # A pair, unlike a GenerationResult, keeps its counts in the cache.
    tokens = outcome.cost.tokens
    return (outcome.text, dict(tokens)) if tokens else outcome.text
