"""Shows our own errors where lmms-eval would hide them.

What a ``!function`` in a task's YAML raises, lmms-eval turns into "Failed to import function ...",
which is the last and often the only line that a user reads. Needed since lmms-eval 0.7.0. This can
go once it names the cause.
"""

from __future__ import annotations

import functools
from typing import Any

from proactivebench_tasks.errors import ProactiveBenchError
from proactivebench_tasks.model_patches import place


def apply() -> None:
    """Let ``TaskManager.load_task_or_group`` raise our error instead of the one made from it."""
    manager = place.find("lmms_eval.tasks", "TaskManager")
    original = place.find(manager, "load_task_or_group")
    if getattr(original, "shows_our_errors", False):
        return

    @functools.wraps(original)
    def load_task_or_group(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except ImportError as error:
            if isinstance(error.__cause__, ProactiveBenchError):
                raise error.__cause__ from None
            raise

    load_task_or_group.shows_our_errors = True  # type: ignore[attr-defined]
    manager.load_task_or_group = load_task_or_group
