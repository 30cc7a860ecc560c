"""Entry point ``lmms_eval.models``: what lmms-eval runs when it starts. Kept light."""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from loguru import logger

from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.model_patches import error_messages, power, summary_table, task_folder

TASKS = Path(str(files("proactivebench_tasks.task_yamls")))


def register() -> list[Any]:
    """Add our tasks to the harness; returns the manifests of our models.

    A patch that does not fit this lmms-eval is an error in the log. An exception would be no more
    than a warning of lmms-eval's, which would then load no models of other packages either.
    """
    from lmms_eval.models.registry_v2 import ModelManifest

    for apply in (
        partial(task_folder.apply, TASKS),
        error_messages.apply,
        summary_table.apply,
        partial(power.apply, TASKS),
    ):
        try:
            apply()
        except HarnessError as error:
            logger.error(str(error))
    return [
        ModelManifest(
            model_id="proactivebench_baseline",
            simple_class_path="proactivebench_tasks.baselines.model.Baseline",
        )
    ]
