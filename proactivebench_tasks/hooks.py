"""The functions that the task YAMLs name. They adapt documents to the engine and decide nothing.

Importing this module applies the patches of lmms-eval that playing and scoring need, so that they
are there whether our tasks were found through the entry point or through ``--include_path``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import datasets
from lmms_eval.api.filter import Filter
from loguru import logger
from PIL.Image import Image

from proactivebench_tasks.errors import RecordError
from proactivebench_tasks.model_patches import (
    agentic_loop,
    baseline,
    efficiency,
    evaluation,
    input_media,
    reasoning_tags,
    result_files,
    sample_values,
)
from proactivebench_tasks.protocol import published
from proactivebench_tasks.results import scoring
from proactivebench_tasks.results.scoring import OnFault, texts_of
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.rollout.documents import Document
from proactivebench_tasks.rollout.visuals import image_of
from proactivebench_tasks.transcripts.variant import Variant


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
    """The 100 rows of the published open-ended runs; all of them where there are fewer."""
    return rows.select(published.open_ended_subset(len(rows)))


class AllRepeats(Filter):
    """Keeps the responses of all ``--repeats``, of which the harness would keep the first: the text
    if there is one, else the list of them."""

    def apply(self, resps: Iterable[Sequence[str]], docs: object) -> list[str | list[str]]:
        return [each[0] if len(each) == 1 else list(each) for each in resps]


def process_results(doc: Document, results: list[Any]) -> dict[str, Any]:
    """All that a document's row in the samples file says, from its record or records."""
    sample, protocol = documents.sample(doc), documents.suite(doc).protocol
    return scoring.multiple_choice(texts_of(results[0]), sample, protocol, _complain(doc))


def process_open_ended(doc: Document, results: list[Any]) -> dict[str, Any]:
    """The same for an open-ended document, from its judged record or records."""
    return scoring.open_ended(texts_of(results[0]), documents.sample(doc), _complain(doc))


def _complain(doc: Document) -> OnFault:
    def complain(response: str, error: RecordError) -> None:
        logger.error(
            f"{doc['dataset']}, sample {doc['id']}: the response is no record of it ({error}) and "
            f"counts as failed: {response!r:.200}"
        )

    return complain


agentic_loop.apply(doc_to_text)
evaluation.apply(doc_to_text)
sample_values.apply()
reasoning_tags.apply()
efficiency.apply()
baseline.apply()
input_media.apply()
result_files.apply()
