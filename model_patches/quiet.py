"""Keeps the log of a run readable: one progress bar a task, ours, and no line a call.

Wrappers draw a bar and log a line in every call, and the response cache a line, so that a run of a
hundred samples writes five hundred. While our tasks are played, other bars are not drawn, and what
these parts of lmms-eval tell at level INFO is told at DEBUG. Warnings and errors stay as they are.
Needed by lmms-eval 0.7.0 to 0.7.3. This can go once bars are drawn by the evaluator alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import tqdm

#: What logs a line a call, and what a line a task.
CALLS = ("lmms_eval.models.model_utils.gen_metrics", "lmms_eval.caching.response_cache")
TASKS = (*CALLS, "lmms_eval.api.task", "lmms_eval.evaluator")


@contextmanager
def only_ours(modules: tuple[str, ...]) -> Iterator[None]:
    """No bars but ours, and nothing at level INFO of these modules."""
    with ExitStack() as stack:
        stack.enter_context(_no_other_bars())
        for name in modules:
            stack.enter_context(_lowered(importlib.import_module(name)))
        yield


class _Lowered:
    """A logger whose ``info`` is ``debug``."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, "debug" if name == "info" else name)


@contextmanager
def _lowered(module: Any) -> Iterator[None]:
    logger = getattr(module, "eval_logger", None)
    if logger is None:  # nothing to lower, then
        yield
        return
    module.eval_logger = _Lowered(logger)
    try:
        yield
    finally:
        module.eval_logger = logger


@contextmanager
def _no_other_bars() -> Iterator[None]:
    original = tqdm.tqdm.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if not type(self).__module__.startswith("proactivebench_tasks."):
            kwargs["disable"] = True
        original(self, *args, **kwargs)

    tqdm.tqdm.__init__ = init
    try:
        yield
    finally:
        tqdm.tqdm.__init__ = original
