"""Document: a prepared row as the harness hands it out, turned back into what it stands for.

The columns are those of ``sources.prepared``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from PIL.Image import Image

from proactivebench_tasks.data.images import picture
from proactivebench_tasks.data.suite import Source
from proactivebench_tasks.environments.episode import Episode, Observation
from proactivebench_tasks.environments.random_mode import as_played
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset, Sample, parse
from proactivebench_tasks.transcripts.conversation import Exchange
from proactivebench_tasks.transcripts.variant import Setting

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
    dataset, sample, protocol = parts(doc)
    sample = as_played(dataset, sample, setting.mode, setting.seed)
    return Episode(dataset, sample, protocol, setting.mode, setting.seed, setting.hint)


def observe(episode: Episode, setting: Setting) -> Observation:
    """What the model sees of an episode now; open-ended, that is the question without a list."""
    seen = episode.observe()
    if not setting.open_ended:
        return seen
    hint = episode.protocol.oeg_hint if setting.oeg_hint else ""
    return replace(seen, options=(), text=seen.prompt + hint)


def pixels(doc: Document, seen: Observation | Exchange, short_edge: int = 0) -> Image:
    """What a document's source shows of an observation, RGB; ``DataError`` if it cannot be read.

    Scaled down to ``short_edge`` pixels if that is not 0 and smaller.
    """
    image = picture(Source(doc["source"]).data, seen.image, seen.crop)
    if 0 < short_edge < min(image.size):
        scale = short_edge / min(image.size)
        image = image.resize((round(image.width * scale), round(image.height * scale)))
    return image
