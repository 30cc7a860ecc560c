"""The functions that the task YAMLs name. They adapt documents to the engine and decide nothing.

Importing this module puts the episode runner in place, so that it is there whether the tasks were
found through the entry point or through ``--include_path``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loguru import logger
from PIL.Image import Image

from proactivebench_tasks import documents, metrics, transcripts
from proactivebench_tasks.documents import Document
from proactivebench_tasks.model_patches import rollout
from proactivebench_tasks.settings import Setting


def doc_to_text(doc: Document, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """The text of a document's first turn."""
    return documents.episode(doc, Setting.parse(lmms_eval_specific_kwargs)).observe().text


def doc_to_visual(
    doc: Document, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> list[Image]:
    """The picture of a document's first turn."""
    setting = Setting.parse(lmms_eval_specific_kwargs)
    return [documents.pixels(doc, documents.episode(doc, setting).observe())]


def process_results(doc: Document, results: list[str]) -> dict[str, float]:
    """The metrics of a document, from its transcript. A response that is none counts as failed."""
    try:
        summary = transcripts.score(results[0], *documents.parts(doc))
    except (ValueError, KeyError, TypeError) as error:
        logger.error(
            f"{doc['dataset']}, sample {doc['id']}: the response is no transcript of it "
            f"({error!r}) and counts as failed: {results[0]!r:.200}"
        )
        summary = None
    return metrics.multiple_choice(summary)


rollout.apply(doc_to_text)
