"""Routes the requests of our tasks to our runner.

lmms-eval plays multi-turn tasks (``output_type: generate_until_agentic``) one request at a time,
whatever the batch size, and its response cache takes turns for one another. Requests of other
tasks go to its own loop, untouched. Needed by lmms-eval 0.7.0 to 0.7.3. This can go once that loop
batches across documents and its cache key covers the image.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.model_patches import response_cache as caching
from proactivebench_tasks.rollout import runner

_NAME = "_run_generate_until_agentic"


def apply(ours: Callable[..., str]) -> None:
    """Let requests whose ``doc_to_text`` is ``ours`` be played by ``runner.run``."""
    from lmms_eval import evaluator

    original = getattr(evaluator, _NAME, None)
    if original is None:
        raise HarnessError(
            f"this lmms-eval has no evaluator.{_NAME}, so ProactiveBench cannot run in it; "
            "supported are lmms-eval 0.7.0 to 0.7.3: pip install 'lmms-eval>=0.7,<0.8'"
        )
    if getattr(original, "routes", None) is ours:
        return

    @functools.wraps(original)
    def dispatch(
        lm: Any,
        requests: list[Any],
        agentic_trace_mode: str = "basic",
        response_cache: Any = None,
    ) -> list[Any]:
        is_ours = [getattr(request.args[3], "func", None) is ours for request in requests]
        theirs = [r for r, mine in zip(requests, is_ours, strict=True) if not mine]
        played = [r for r, mine in zip(requests, is_ours, strict=True) if mine]
        if played and response_cache is not None:
            caching.adopt(response_cache)
        other = iter(original(lm, theirs, agentic_trace_mode, response_cache) if theirs else ())
        our = iter(runner.run(lm, played, response_cache) if played else ())
        return [next(our if mine else other) for mine in is_ours]

    dispatch.routes = ours  # type: ignore[attr-defined]
    setattr(evaluator, _NAME, dispatch)
