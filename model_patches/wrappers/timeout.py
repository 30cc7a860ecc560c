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

_MODULE = "lmms_eval.models.simple.openai"


@contextmanager
def passed_on(lm: Any) -> Iterator[None]:
    """A client that waits as long for a reply as the user asked."""
    module: Any = sys.modules.get(_MODULE)
    if module is None or not isinstance(lm, module.OpenAICompatible):
        logger.debug(f"wrapper {type(lm).__name__} has no timeout that would be lost")
        yield
        return
    parameters = inspect.signature(module.OpenAICompatible).parameters
    if float(lm.timeout) == parameters["timeout"].default:
        yield
        return
    client = lm.client
    lm.client = client.with_options(timeout=float(lm.timeout))
    try:
        yield
    finally:
        lm.client = client
