"""Routes the requests of our tasks to our runner.

lmms-eval plays multi-turn tasks (``output_type: generate_until_agentic``) one request at a time,
whatever the batch size, and its response cache takes turns for one another. Requests of other tasks
go to its own loop, untouched. Needed since lmms-eval 0.7.0. This can go once that loop batches
across documents and its cache key covers the image.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from proactivebench_tasks.model_patches import place, quiet, reasoning_tags, wrappers
from proactivebench_tasks.model_patches import response_cache as caching
from proactivebench_tasks.rollout import runner
from proactivebench_tasks.rollout.request import EpisodeRequest

_NAME = "_run_generate_until_agentic"


def apply(ours: Callable[..., str]) -> None:
    """Let requests whose ``doc_to_text`` is ``ours`` be played by ``runner.run``."""
    from lmms_eval import evaluator

    original = place.find(evaluator, _NAME)
    if getattr(original, "routes", None) is ours:
        return

    @functools.wraps(original)
    def dispatch(
        lm: Any,
        requests: list[Any],
        agentic_trace_mode: str = "basic",
        response_cache: Any = None,
    ) -> list[Any]:
        is_ours = [
            any(getattr(given, "func", None) is ours for given in request.args)
            for request in requests
        ]
        theirs = [r for r, mine in zip(requests, is_ours, strict=True) if not mine]
        played = [r for r, mine in zip(requests, is_ours, strict=True) if mine]
        other = iter(original(lm, theirs, agentic_trace_mode, response_cache) if theirs else ())
        our = iter(_play(lm, played, response_cache) if played else ())
        return [next(our if mine else other) for mine in is_ours]

    dispatch.routes = ours  # type: ignore[attr-defined]
    setattr(evaluator, _NAME, dispatch)


def _play(lm: Any, requests: list[Any], response_cache: Any) -> list[Any]:
    for request in requests:  # whose hash tells documents apart in the samples file
        asked = EpisodeRequest.of(request)
        request.doc = asked.documents(lm)[asked.doc_id]
    with (
        caching.apply(response_cache, requests),
        quiet.only_ours(quiet.CALLS),
        wrappers.patched(lm),
    ):
        return runner.run(lm, requests, response_cache, reasoning_tags.tags_of)
