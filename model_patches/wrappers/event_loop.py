"""Gives async_openai one event loop for all its calls.

The wrapper starts a loop a call, but keeps its client, whose pooled connections belong to the loop
that opened them: from the second call on they fail with "Event loop is closed". Replies that were
paid for are lost, and the wrapper waits a second before it asks again. While our tasks are played
all its calls, from however many threads, run in one loop and through a client of that loop. Needed
since lmms-eval 0.7.0. This can go once the wrapper makes its client in the loop that uses it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from loguru import logger

from proactivebench_tasks.model_patches import place

_MODULE = "lmms_eval.models.chat.async_openai"


@contextmanager
def kept(lm: Any) -> Iterator[None]:
    """One loop, and a client of its own in it, for a wrapper of this kind."""
    if _MODULE not in sys.modules or not isinstance(lm, place.find(_MODULE, "AsyncOpenAIChat")):
        logger.debug(f"wrapper {type(lm).__name__} starts no event loops")
        yield
        return
    from openai import DefaultAsyncHttpxClient

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="async_openai", daemon=True)
    thread.start()

    def run(main: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(main, loop).result()

    module: Any = sys.modules[_MODULE]
    original, client = place.find(module, "asyncio"), lm.client
    module.asyncio = _with(original, run)
    lm.client = client.copy(http_client=DefaultAsyncHttpxClient())
    try:
        yield
    finally:
        run(lm.client.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        module.asyncio, lm.client = original, client


def _with(original: Any, run: Any) -> SimpleNamespace:
    """The module ``asyncio`` with another ``run``, for the wrapper alone."""
    return SimpleNamespace(**(vars(original) | {"run": run}))
