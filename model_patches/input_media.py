"""Keeps templates of image paths from standing as images in the samples file.

lmms-eval lists as ``input_media`` whatever in a document looks like an image's path. Our documents
hold templates; which images were shown, turn by turn, is in the transcript. Needed since lmms-eval
0.7.1. A release without the function, such as 0.7.0, lists nothing, so there is nothing to keep out
and no error. This can go once a task can say what its media are.
"""

from __future__ import annotations

import functools
from typing import Any

from proactivebench_tasks.model_patches.evaluation import last


def apply() -> None:
    from lmms_eval import evaluator

    original = getattr(evaluator, "_collect_input_media", None)
    if original is None or getattr(original, "spares_templates", False):
        return

    @functools.wraps(original)
    def _collect_input_media(doc: Any, request_args: Any) -> Any:
        named = {given for given in request_args if isinstance(given, str)}  # the task among them
        return [] if named & last().tasks.keys() else original(doc, request_args)

    _collect_input_media.spares_templates = True  # type: ignore[attr-defined]
    evaluator._collect_input_media = _collect_input_media
