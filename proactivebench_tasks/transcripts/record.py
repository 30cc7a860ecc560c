"""Record: what both kinds of record have in common, and the one way in and out of their text.

A record is the text that the harness stores of a sample (``filtered_resps`` in its samples file).
It is parsed once, where it enters, and written once, where it leaves.
"""

from __future__ import annotations

import json
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proactivebench_tasks.environments.environment import Box
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.protocol.samples import Dataset, Sample

SCHEMA = 1  # of what is written

#: ``[left, top, right, bottom]`` in pixels of the image, as ``Box.to_list`` gives it.
Window = tuple[int | float, int | float, int | float, int | float]

R = TypeVar("R", bound="Record")


class Record(BaseModel):
    """A sample that was played: by which protocol, and whose it is."""

    model_config = ConfigDict(frozen=True, strict=False, populate_by_name=True, extra="allow")

    schema_number: Literal[1] = Field(default=1, alias="schema")
    protocol: str  # version
    dataset: Dataset
    id: int

    @classmethod
    def from_json(cls: type[R], text: str, sample: Sample | None = None) -> R:
        """Read a record back; ``ValueError``, with the reason, when the text is none of this kind,
        or, where a sample is given, not of that sample."""
        try:
            value = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"not JSON: {error}") from None
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            raise ValueError(f"not a transcript of schema {SCHEMA}")
        whose = (value.get("dataset"), value.get("id"))
        if sample is not None and whose != (sample.dataset.value, sample.id):
            raise ValueError(f"transcript of {whose[0]} {whose[1]}, not of this sample")
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            faults = "; ".join(map(_fault, error.errors(include_url=False)))
            raise ValueError(f"not a whole transcript: {faults}") from None

    def to_json(self) -> str:
        """The record as text that any file can hold."""
        value = self._to_dict()
        text = json.dumps(value, ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError:  # half a surrogate pair, as a cut answer may hold
            text = json.dumps(value)
        # The harness may strip reasoning tags from the whole response; escaped, none is seen.
        return text.replace("<", "\\u003c")

    def _to_dict(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True)


def head(episode: Episode) -> dict[str, Any]:
    """The fields of ``Record`` for an episode."""
    return {
        "protocol": episode.protocol.version,
        "dataset": episode.dataset,
        "id": episode.sample.id,
    }


def window(crop: Box | None) -> Window | None:
    """A crop as a record holds it."""
    return (crop.left, crop.top, crop.right, crop.bottom) if crop else None


def complaint(error: Exception | None) -> str | None:
    """An error as a record holds it."""
    return f"{type(error).__name__}: {error}" if error else None


def _fault(error: Any) -> str:
    field = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"{field}: {error['msg']}"
    return f"{field}: {error['msg']}, found {error['input']!r:.80}"
