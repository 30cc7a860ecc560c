"""Reader: a record of either kind, from its text."""

from __future__ import annotations

from proactivebench_tasks.errors import RecordError
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.record import as_schema_2, load
from proactivebench_tasks.transcripts.transcript import Transcript


def read(text: str) -> Transcript | OpenEnded:
    """The record in a text; ``RecordError``, with the reason, if there is none."""
    value = as_schema_2(load(text))
    for kind in (Transcript, OpenEnded):
        if value["kind"] == kind.KIND:
            return kind.from_dict(value)
    raise RecordError(
        f"a record of kind {value['kind']!r}, neither {Transcript.KIND.value!r} nor "
        f"{OpenEnded.KIND.value!r}"
    )
