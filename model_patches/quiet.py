"""Keeps the log of a run readable: one progress bar a task, ours, and no line a call.

Wrappers draw a bar and log a line in every call, or lines in place of a bar where there is no
terminal, and the response cache logs a line, so that a run of a hundred samples writes five
hundred. While our tasks are played, bars are drawn for our own modules alone, and what these parts
of lmms-eval tell at level INFO is told at DEBUG. Warnings and errors stay as they are, and so does
what a wrapper itself tells, such as that it tries again. Needed since lmms-eval 0.7.0. This can go
once bars are drawn by the evaluator alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import tqdm

#: Modules, and packages, that log a line a call; and those that log a line a task.
CALLS = ("lmms_eval.models.model_utils", "lmms_eval.caching")
TASKS = (*CALLS, "lmms_eval.api.task", "lmms_eval.evaluator")


@contextmanager
def only_ours(parts: tuple[str, ...]) -> Iterator[None]:
    """No bars but ours, and nothing at level INFO of these parts of lmms-eval."""
    inside = tuple(f"{part}." for part in parts)
    with ExitStack() as stack:
        stack.enter_context(_no_other_bars())
        stack.enter_context(_no_totals_on_bars())
        for name, module in list(sys.modules.items()):
            if f"{name}.".startswith(inside) and hasattr(module, "eval_logger"):
                stack.enter_context(_lowered(module))
        yield


class _Lowered:
    """A logger whose ``info`` is ``debug``."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, "debug" if name == "info" else name)


@contextmanager
def _lowered(module: Any) -> Iterator[None]:
    logger = module.eval_logger
    module.eval_logger = _Lowered(logger)
    try:
        yield
    finally:
        module.eval_logger = logger


@contextmanager
def _no_other_bars() -> Iterator[None]:
    original = tqdm.tqdm.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made_by = sys._getframe(1).f_globals["__name__"]
        if not made_by.startswith("proactivebench_tasks."):
            kwargs["disable"] = True
        original(self, *args, **kwargs)

    tqdm.tqdm.__init__ = init
    try:
        yield
    finally:
        tqdm.tqdm.__init__ = original


@contextmanager
def _no_totals_on_bars() -> Iterator[None]:
    """Wrappers of servers add up all tokens of a run anew after each answer, to show them on a bar:
    at ten thousand answers that takes longer than an answer. There is no bar to show them on."""
    name = "get_running_totals"
    modules = [
        module
        for path, module in list(sys.modules.items())
        if path.startswith("lmms_eval.models.chat.") and hasattr(module, name)
    ]
    originals = [getattr(module, name) for module in modules]
    for module in modules:
        setattr(module, name, lambda: {"total_tokens": 0})
    try:
        yield
    finally:
        for module, original in zip(modules, originals, strict=True):
            setattr(module, name, original)
