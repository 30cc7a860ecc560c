"""The functions that the task YAMLs name. They adapt documents to the engine and decide nothing.

Importing this module routes our tasks to the runner, so that it is there whether they were found
through the entry point or through ``--include_path``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import datasets
from loguru import logger
from PIL.Image import Image

from proactivebench_tasks.model_patches import agentic_loop
from proactivebench_tasks.results import metrics
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.rollout.documents import Document
from proactivebench_tasks.rollout.visuals import image_of
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.transcript import Transcript
from proactivebench_tasks.transcripts.variant import Variant

OPEN_ENDED_SAMPLES = 100  # of each dataset, in the published open-ended runs


def doc_to_text(doc: Document, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """The text of a document's first turn."""
    variant = Variant.parse(lmms_eval_specific_kwargs)
    return documents.observe(documents.episode(doc, variant), variant).text


def doc_to_visual(
    doc: Document, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> list[Image]:
    """The image of a document's first turn."""
    variant = Variant.parse(lmms_eval_specific_kwargs)
    return [image_of(doc, documents.episode(doc, variant).observe(), variant.short_edge)]


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
        sample = documents.sample(doc)
        transcript = Transcript.from_json(results[0], sample)
        summary = transcript.score(sample, documents.suite(doc).protocol)
        return metrics.multiple_choice(summary, transcript.reused)
    except ValueError as error:
        _complain(doc, results[0], error)
        return metrics.multiple_choice(None)


def process_open_ended(doc: Document, results: list[str]) -> dict[str, float]:
    """The metrics of an open-ended document, from its judged record; failed alike."""
    try:
        return metrics.open_ended(OpenEnded.from_json(results[0], documents.sample(doc)))
    except ValueError as error:
        _complain(doc, results[0], error)
        return metrics.open_ended(None)


def _complain(doc: Document, response: str, error: Exception) -> None:
    logger.error(
        f"{doc['dataset']}, sample {doc['id']}: the response is no transcript of it "
        f"({error!r}) and counts as failed: {response!r:.200}"
    )


agentic_loop.apply(doc_to_text)
