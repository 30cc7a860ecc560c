"""Makes lmms-eval find our task folder without ``--include_path``.

lmms-eval has an entry point for models but none for tasks. Needed since lmms-eval 0.7.0. This can
go once it has one.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from proactivebench_tasks.model_patches import place


def apply(folder: Path) -> None:
    """Let every ``TaskManager`` index ``folder`` too, after the folders that it was given."""
    manager = place.find("lmms_eval.tasks", "TaskManager")
    original = place.find(manager, "initialize_tasks")
    if getattr(original, "adds", None) == folder:
        return

    @functools.wraps(original)
    def initialize_tasks(self: Any, include_path: Any = None, *args: Any, **kwargs: Any) -> Any:
        given = [include_path] if isinstance(include_path, str) else list(include_path or [])
        return original(self, [*given, str(folder)], *args, **kwargs)

    initialize_tasks.adds = folder  # type: ignore[attr-defined]
    manager.initialize_tasks = initialize_tasks
