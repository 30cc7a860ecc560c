"""Document: a prepared row as the harness hands it out, turned back into what it stands for.

The columns are those of ``sources.prepared``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PIL.Image import Image

from proactivebench_tasks.environments.base import Episode, Observation
from proactivebench_tasks.images import picture
from proactivebench_tasks.protocol import Protocol
from proactivebench_tasks.samples import Dataset, Sample, parse
from proactivebench_tasks.settings import Setting
from proactivebench_tasks.sources import Source

Document = Mapping[str, Any]


def key(doc: Document) -> tuple[str, int]:
    """What tells documents of one source apart. Ids may repeat in a jsonl; lines do not."""
    return doc["dataset"], doc["line"]


def parts(doc: Document) -> tuple[Dataset, Sample, Protocol]:
    """Dataset, sample and wording of a document."""
    dataset = Dataset.parse(doc["dataset"])
    return dataset, parse(dataset, doc), Source(doc["source"]).protocol


def episode(doc: Document, setting: Setting) -> Episode:
    """A fresh episode of a document."""
    return Episode(*parts(doc), mode=setting.mode, seed=setting.seed, hint=setting.hint)


def pixels(doc: Document, seen: Observation) -> Image:
    """The picture of an observation, RGB; ``DataError`` if it cannot be read."""
    return picture(Source(doc["source"]).folder, seen.image, seen.crop)
