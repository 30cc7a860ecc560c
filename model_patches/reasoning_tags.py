"""Reasoning tags: our runner honours those of the run, and nothing is cut out of our records.

lmms-eval takes what stands between ``reasoning_tags`` out of a response before it scores it. For an
episode that is too late, since each answer decides the next turn; and what it would cut into is a
record, which holds the answers of all turns. Needed since lmms-eval 0.7.0. This can go once the
tags are given to the loop of multi-turn tasks, and that loop's results are left as they are.
"""

from __future__ import annotations

import functools
from typing import Any

from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.model_patches import place
from proactivebench_tasks.model_patches.evaluation import current
from proactivebench_tasks.transcripts.record import is_record
from proactivebench_tasks.transcripts.thinking import Tags


def apply() -> None:
    """Leave the text of records as it is."""
    from lmms_eval import evaluator

    original = place.find(evaluator, "strip_reasoning_tags")
    if getattr(original, "spares_records", False):
        return

    @functools.wraps(original)
    def strip_reasoning_tags(text: str, *args: Any, **kwargs: Any) -> str:
        return text if is_record(text) else original(text, *args, **kwargs)

    strip_reasoning_tags.spares_records = True  # type: ignore[attr-defined]
    evaluator.strip_reasoning_tags = strip_reasoning_tags


def tags_of(task: str) -> Tags:
    """The tags that the task's YAML names, else those of the command line (``none`` for none)."""
    from lmms_eval import evaluator

    parse = place.find(evaluator, "parse_reasoning_tags_config")
    evaluation = current()
    config = getattr(evaluation.tasks.get(task), "config", None)
    given = getattr(evaluation.cli_args, "reasoning_tags", None)
    try:
        found = parse(cli_value=given, task_value=getattr(config, "reasoning_tags", None))
        tags = tuple((str(start), str(end)) for start, end in found or ())
    except (ValueError, TypeError) as error:
        raise HarnessError(
            f"--reasoning_tags is {given!r}: {error}; expected JSON such as "
            '[["<think>", "</think>"]], or none'
        ) from error
    if not all(start and end for start, end in tags):
        raise HarnessError(f"--reasoning_tags is {given!r}: a tag may not be empty")
    return tags
