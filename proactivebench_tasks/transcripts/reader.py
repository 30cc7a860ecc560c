"""Reader: a record of either kind, from its text."""

from __future__ import annotations

from proactivebench_tasks.errors import RecordError
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.record import as_schema_2, load
from proactivebench_tasks.transcripts.transcript import Transcript

KINDS = {kind.KIND: kind for kind in (Transcript, OpenEnded)}


def read(text: str) -> Transcript | OpenEnded:
    """The record in a text; ``RecordError``, with the reason, if there is none."""
    kind = as_schema_2(load(text))["kind"]
    if kind not in KINDS:
        raise RecordError(f"a record of kind {kind!r}; expected one of {', '.join(KINDS)}")
    return KINDS[kind].from_json(text)
