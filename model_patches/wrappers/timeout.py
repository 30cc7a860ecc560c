"""Lets ``timeout=`` of the wrapper ``openai`` reach its client, which it never does.

The wrapper's own default of 10 s is not passed on: it would end requests that run to their end
today. Needed since lmms-eval 0.7.0. This can go once the wrapper hands its timeout to the client.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from loguru import logger

from proactivebench_tasks.model_patches import place

_MODULE = "lmms_eval.models.simple.openai"


@contextmanager
def passed_on(lm: Any) -> Iterator[None]:
    """A client that waits as long for a reply as the user asked."""
    if _MODULE not in sys.modules or not isinstance(lm, place.find(_MODULE, "OpenAICompatible")):
        logger.debug(f"wrapper {type(lm).__name__} has no timeout that would be lost")
        yield
        return
    unless_given = inspect.signature(place.find(_MODULE, "OpenAICompatible")).parameters["timeout"]
    if float(lm.timeout) == unless_given.default:
        yield
        return
    client = lm.client
    lm.client = client.with_options(timeout=float(lm.timeout))
    try:
        yield
    finally:
        lm.client = client
