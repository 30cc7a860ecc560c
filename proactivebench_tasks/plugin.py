"""Entry point ``lmms_eval.models``: what lmms-eval runs when it starts. Kept light."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from proactivebench_tasks.model_patches import error_messages as clear_errors
from proactivebench_tasks.model_patches import task_folder

TASKS = Path(str(files("proactivebench_tasks.task_yamls")))


def register() -> list[Any]:
    """Add our tasks to the harness; returns the manifests of our models."""
    from lmms_eval.models.registry_v2 import ModelManifest

    task_folder.apply(TASKS)
    clear_errors.apply()
    return [
        ModelManifest(
            model_id="proactivebench_baseline",
            simple_class_path="proactivebench_tasks.baselines.model.Baseline",
        )
    ]
