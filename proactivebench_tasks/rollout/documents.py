"""Document: a prepared row as the harness hands it out, turned back into what it stands for.

The columns are those of ``data.prepared``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.episode import Episode, Observation
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.transcripts.record import Provenance
from proactivebench_tasks.transcripts.thinking import Tags
from proactivebench_tasks.transcripts.variant import Variant

Document = Mapping[str, Any]

#: The samples of this run by ``key``, so that each row is validated once.
_samples: dict[str, Sample] = {}


def key(doc: Document) -> str:
    """What no other document has. Ids may repeat in a jsonl, and data folders hold equal lines."""
    return str(doc["row"])


def suite(doc: Document) -> Suite:
    """The suite that a document is from."""
    return Suite(doc["suite"])


def sample(doc: Document) -> Sample:
    """The sample in a document."""
    if (found := _samples.get(key(doc))) is None:
        found = _samples[key(doc)] = parse_sample(Dataset.parse(doc["dataset"]), doc)
    return found


def episode(doc: Document, variant: Variant) -> Episode:
    """A fresh episode of a document."""
    return variant.episode(sample(doc), suite(doc).protocol)


def observe(episode: Episode, variant: Variant) -> Observation:
    """What the model sees of an episode now; open-ended, that is the question without a list."""
    seen = episode.observe()
    if not variant.open_ended:
        return seen
    hint = episode.protocol.oeg_hint if variant.oeg_hint else ""
    return replace(seen, options=(), text=seen.prompt + hint)


def provenance(doc: Document, variant: Variant, tags: Tags) -> Provenance:
    """What a record says of where a document came from and how it was played."""
    found = suite(doc)
    return Provenance(found.value, key(doc), variant, tags, found.store.locate)
