"""Record: what both kinds of record have in common, and the one way in and out of their text.

A record is the text that the harness stores of a sample (``filtered_resps`` in its samples file).
It is parsed once, where it enters, and written once, where it leaves. Records of schema 1, which
earlier versions wrote, are read as records of schema 2 in which some fields are not known. Fields
that are not known here, as a later version may write, are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
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


class RecordKind(str, Enum):
    """The kinds of record, as they and results name themselves."""

    MULTIPLE_CHOICE = "multiple_choice"
    OPEN_ENDED = "open_ended"


def _box(value: object) -> object:
    if isinstance(value, list) and len(value) == 4:
        return dict(zip(("left", "top", "right", "bottom"), value, strict=True))
    return value


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


class Part(BaseModel):
    """A record, or a part of one: a frozen value."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Record(Part):
    """A sample that was played: whose it is, by which protocol, in which variant.

    ``row`` and ``sample`` are not known of records of schema 1.
    """

    #: What tells the kinds of records apart.
    KIND: ClassVar[RecordKind]

    schema_number: Literal[2] = Field(default=2, alias="schema")
    kind: RecordKind
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
        record = cls.from_dict(load(text))
        if sample is not None and (record.dataset, record.id) != (sample.dataset, sample.id):
            raise RecordError(
                f"a record of {record.dataset.value} {record.id}, not of {sample.dataset.value} "
                f"{sample.id}"
            )
        return record

    @classmethod
    def from_dict(cls: type[R], value: Mapping[str, Any]) -> R:
        """Read a record back from plain values, such as ``json`` makes of its text."""
        value = as_schema_2(value)
        if value["kind"] != cls.KIND:
            raise RecordError(f"a record of kind {value['kind']!r}, not {cls.KIND.value!r}")
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
        value["kind"] = self.kind.value
        value["dataset"] = self.dataset.value
        value["variant"] = self.variant.asked_for()
        return without(value, "row", "sample")

    def to_row(self) -> dict[str, Any]:
        """``to_dict`` for a file that is written as it is: half a surrogate pair becomes ``?``."""
        text = json.dumps(self.to_dict(), ensure_ascii=False)
        return dict(json.loads(text.encode(errors="replace")))

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
    """The JSON object in a text; ``RecordError`` if there is none."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RecordError(f"not a record: expected an object, found {text!r:.80}")
    return value


def as_schema_2(value: Mapping[str, Any]) -> dict[str, Any]:
    """The object of a record of schema 1 or 2 as one of schema 2; ``RecordError`` for others."""
    value = {"schema": None, "kind": None, **value}
    if value["schema"] == SCHEMA:
        return value
    if value["schema"] != 1:
        raise RecordError(
            f"a record of schema {value['schema']!r}; this version reads 1 and {SCHEMA}"
        )
    open_ended = "valid_answers" in value
    setting = value.pop("setting", {})
    if not isinstance(setting, dict):
        raise RecordError(f"not a whole record: setting: expected an object, found {setting!r:.80}")
    setting = dict(setting)
    # Of open-ended records only a text that differs from the output tells.
    stripped = setting.pop("strip_thinking", open_ended and "output" in value)
    for name in ("mode", "hint", "seed"):  # which stood beside the setting, too
        if name in value:
            setting[name] = value.pop(name)
    if open_ended:
        setting["open_ended"] = True
    return {
        **value,
        "schema": SCHEMA,
        "kind": (RecordKind.OPEN_ENDED if open_ended else RecordKind.MULTIPLE_CHOICE).value,
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
