"""The functions that the task YAMLs name. They adapt documents to the engine and decide nothing.

Importing this module puts the episode runner in place, so that it is there whether the tasks were
found through the entry point or through ``--include_path``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import datasets
from loguru import logger
from PIL.Image import Image

from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.results import metrics
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.rollout import runner as rollout
from proactivebench_tasks.rollout.documents import Document
from proactivebench_tasks.transcripts import transcript as transcripts
from proactivebench_tasks.transcripts.variant import Setting

OPEN_ENDED_SAMPLES = 100  # of each dataset, in the published open-ended runs

_NO_TRANSCRIPT = (ValueError, KeyError, TypeError, AttributeError)


def doc_to_text(doc: Document, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """The text of a document's first turn."""
    setting = Setting.parse(lmms_eval_specific_kwargs)
    return documents.observe(documents.episode(doc, setting), setting).text


def doc_to_visual(
    doc: Document, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> list[Image]:
    """The picture of a document's first turn."""
    setting = Setting.parse(lmms_eval_specific_kwargs)
    return [documents.pixels(doc, documents.episode(doc, setting).observe())]


def official_subset(rows: datasets.Dataset) -> datasets.Dataset:
    """The 100 rows of the published open-ended runs; all of them where there are fewer.

    Source: ``tests/oeg.py`` of the published package, which shuffles the filtered rows.
    """
    order = list(range(len(rows)))
    random.Random(0).shuffle(order)
    return rows.select(order[:OPEN_ENDED_SAMPLES])


def process_results(doc: Document, results: list[str]) -> dict[str, float]:
    """The metrics of a document, from its transcript. A response that is none counts as failed."""
    try:
        summary = transcripts.score(results[0], *documents.parts(doc))
        return metrics.multiple_choice(summary, transcripts.reused(results[0]))
    except _NO_TRANSCRIPT as error:
        _complain(doc, results[0], error)
        return metrics.multiple_choice(None)


def process_open_ended(doc: Document, results: list[str]) -> dict[str, float]:
    """The metrics of an open-ended document, from its judged transcript; failed alike."""
    try:
        record = transcripts.loads(results[0], Dataset.parse(doc["dataset"]), doc["id"])
        return metrics.open_ended(record)
    except _NO_TRANSCRIPT as error:
        _complain(doc, results[0], error)
        return metrics.open_ended(None)


def _complain(doc: Document, response: str, error: Exception) -> None:
    logger.error(
        f"{doc['dataset']}, sample {doc['id']}: the response is no transcript of it "
        f"({error!r}) and counts as failed: {response!r:.200}"
    )


rollout.apply(doc_to_text)
