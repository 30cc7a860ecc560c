"""Record: what both kinds of record have in common, and the one way in and out of their text.

A record is the text that the harness stores of a sample (``filtered_resps`` in its samples file).
It is parsed once, where it enters, and written once, where it leaves. Records of schema 1, which
earlier versions wrote, are read as records of schema 2 in which some fields are not known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
)

from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import Box
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.errors import DataError, RecordError
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.transcripts.thinking import Tags
from proactivebench_tasks.transcripts.variant import Variant

SCHEMA = 2  # of what is written

#: The tags of ``strip_thinking``, a key of variants in the time of schema 1.
_TAGS_OF_SCHEMA_1 = [["<think>", "</think>"]]

R = TypeVar("R", bound="Record")


def _box(value: object) -> object:
    return Box(*value) if isinstance(value, Sequence) and len(value) == 4 else value


#: ``[left, top, right, bottom]`` in pixels of the image.
Crop = Annotated[
    Box, BeforeValidator(_box), PlainSerializer(lambda box: box.to_list(), return_type=list)
]


@dataclass(frozen=True)
class Provenance:
    """Where a record's sample came from and how it was played, beside what its episode knows.

    ``row`` is what no other row has; ``locate`` tells where an image's path below the data folder
    opens.
    """

    suite: str
    row: str
    variant: Variant
    tags: Tags
    locate: Callable[[str], str]


class Record(BaseModel):
    """A sample that was played: whose it is, by which protocol, in which variant.

    Fields that may be ``None`` are not known of records of schema 1.
    """

    model_config = ConfigDict(frozen=True, strict=False, populate_by_name=True, extra="allow")

    #: What tells the kinds of records apart.
    KIND: ClassVar[str]

    schema_number: Literal[2] = Field(default=2, alias="schema")
    kind: str
    protocol: str  # version
    suite: str
    dataset: Dataset
    id: int
    row: str | None = None
    sample: dict[str, Any] | None = None  # the columns of its row
    variant: Variant
    reasoning_tags: Tags
    error: str | None

    @classmethod
    def from_json(cls: type[R], text: str, sample: Sample | None = None) -> R:
        """Read a record back; ``RecordError``, with the reason, when the text is no record of this
        kind, or, where a sample is given, not of that sample."""
        value = as_schema_2(load(text))
        if value["kind"] != cls.KIND:
            raise RecordError(f"a record of kind {value['kind']!r}, not {cls.KIND!r}")
        whose = (value.get("dataset"), value.get("id"))
        if sample is not None and whose != (sample.dataset.value, sample.id):
            raise RecordError(f"a record of {whose[0]} {whose[1]}, not of this sample")
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            faults = "; ".join(map(_fault, error.errors(include_url=False)))
            raise RecordError(f"not a whole record: {faults}") from None

    def to_json(self) -> str:
        """The record as text that any file can hold."""
        value = self.to_dict()
        text = json.dumps(value, ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError:  # half a surrogate pair, as a cut answer may hold
            text = json.dumps(value)
        return text

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, such as ``json`` takes."""
        value = self.model_dump(by_alias=True)
        value["dataset"] = self.dataset.value
        value["variant"] = self.variant.asked_for()
        return value

    def own_sample(self) -> Sample:
        """The sample that it holds; ``RecordError`` if there is none, or a malformed one."""
        if self.sample is None:
            raise RecordError("the record holds no sample: it is of schema 1")
        try:
            return parse_sample(self.dataset, self.sample)
        except DataError as error:
            raise RecordError(f"the record's sample: {error}") from error


def is_record(text: str) -> bool:
    """Whether a text begins as all records do."""
    return text.startswith('{"schema": ')


def load(text: str) -> dict[str, Any]:
    """The JSON object of a record of any known schema; ``RecordError`` if the text is none."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}") from None
    if not isinstance(value, dict) or "schema" not in value:
        raise RecordError("not a record: an object with a schema is expected")
    if value["schema"] not in (1, SCHEMA):
        raise RecordError(
            f"a record of schema {value['schema']!r}; this version reads 1 and {SCHEMA}"
        )
    return value


def as_schema_2(value: dict[str, Any]) -> dict[str, Any]:
    """The object of a record of schema 1 or 2 as one of schema 2."""
    if value["schema"] == SCHEMA:
        return {"kind": None, **value}
    value = dict(value)
    open_ended = "valid_answers" in value
    setting = dict(value.pop("setting", None) or {})
    stripped = setting.pop("strip_thinking", False)
    for name in ("mode", "hint", "seed"):  # which stood beside the setting, too
        if name in value:
            setting[name] = value.pop(name)
    if open_ended:
        setting["open_ended"] = True
    return {
        **value,
        "schema": SCHEMA,
        "kind": "open_ended" if open_ended else "multiple_choice",
        "suite": "demo" if str(value.get("protocol")).startswith("builtin") else "official",
        "variant": setting,
        "reasoning_tags": _TAGS_OF_SCHEMA_1 if stripped else [],
    }


def head(episode: Episode, origin: Provenance, error: Exception | None) -> dict[str, Any]:
    """The fields of ``Record`` for an episode."""
    return {
        "protocol": episode.protocol.version,
        "suite": origin.suite,
        "dataset": episode.dataset,
        "id": episode.sample.id,
        "row": origin.row,
        "sample": episode.sample.model_dump(mode="json"),
        "variant": origin.variant,
        "reasoning_tags": origin.tags,
        "error": f"{type(error).__name__}: {error}" if error else None,
    }


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    """A mapping without those of these fields that say nothing: ``None``, false, empty."""
    return {name: each for name, each in value.items() if each or name not in names}


def _fault(error: Any) -> str:
    field = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"{field}: {error['msg']}"
    return f"{field}: {error['msg']}, found {error['input']!r:.80}"
