"""Sample: one row of a dataset's jsonl, parsed and validated.

A row is the benchmark's own record of one sample (source: the hub dataset
``tdemin16/ProactiveBench``). Each dataset has a subclass of its own, beside its rules in
``environments``. Parsing is strict: a number written as text is an error, not a number. Columns
that the benchmark does not define are ignored.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from proactivebench_tasks.errors import DataError


class Dataset(str, Enum):
    """The seven datasets. The value is the stem of ``<value>_preprocessed.jsonl``."""

    ROD = "Realistic-Occlusion-Dataset"
    VSOD = "OcclusionDataSet-MM20"
    MVPN = "MVP-N"
    IMAGENETC = "ImageNet-C"
    QUICKDRAW = "QuickDraw"
    CHANGEIT = "ChangeIt"
    COCO = "coco2014"

    @property
    def task(self) -> str:
        """The dataset's part of a task name: ``rod``, ``vsod``, ``mvpn``, ..."""
        return self.name.lower()

    @property
    def jsonl(self) -> str:
        """File name of the dataset's rows inside a data folder."""
        return f"{self.value}_preprocessed.jsonl"

    @classmethod
    def of_task(cls, task: str) -> Dataset:
        """The dataset whose ``task`` name this is; ``DataError`` for any other word."""
        for dataset in cls:
            if dataset.task == task:
                return dataset
        raise DataError(f"unknown dataset {task!r}; expected one of {[d.task for d in cls]}")

    @classmethod
    def parse(cls, name: object) -> Dataset:
        """The dataset with this file stem; ``DataError`` for any other value."""
        try:
            return cls(name)
        except ValueError:
            known = ", ".join(d.value for d in cls)
            raise DataError(f"unknown dataset {name!r}; expected one of {known}") from None


S = TypeVar("S", bound="Sample")

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=100_000)]  # turns, frames: what a real sample can have
Number = Annotated[float, Field(allow_inf_nan=False)]


class Sample(BaseModel):
    """What every dataset's row has. ``options`` are the suggestions and refusals, in list order."""

    model_config = ConfigDict(frozen=True, strict=True)

    #: The dataset whose rows these are.
    dataset: ClassVar[Dataset]
    #: What stands in braces in ``image_template``.
    placeholders: ClassVar[frozenset[str]] = frozenset({"image"})

    id: int
    image_template: Text
    first_image: int
    num_images: Count
    reference_image: int
    prompt: Text
    options: Annotated[tuple[Text, ...], Field(strict=False, min_length=1)]
    categories: Annotated[tuple[Text, ...], Field(strict=False, min_length=1)]
    answer: Text
    #: Rows that say ``false``, as some of VSOD do, are not evaluated: hardly anything hides their
    #: answer. Prepared rows of the other datasets are without it.
    strong_occlusions: bool | None = Field(default=None, exclude=True)

    @property
    def hint_name(self) -> str:
        """The protocol's hint that fits this sample; most datasets have a single one."""
        return self.dataset.task

    @model_validator(mode="after")
    def _consistent(self) -> Sample:
        if self.answer not in self.categories:
            raise ValueError(f"answer {self.answer!r} is not among categories")
        try:
            fields = list(string.Formatter().parse(self.image_template))
        except ValueError as error:
            raise ValueError(f"image_template {self.image_template!r}: {error}") from None
        found = {name for _, name, _, _ in fields if name is not None}
        bare = not any(spec or conversion for _, _, spec, conversion in fields)
        if found != self.placeholders or not bare:
            wanted = ", ".join(f"{{{name}}}" for name in sorted(self.placeholders)) or "none"
            raise ValueError(
                f"image_template {self.image_template!r} must hold exactly these placeholders: "
                f"{wanted}"
            )
        path = PurePosixPath(self.image_template)
        if path.is_absolute() or ".." in path.parts or "\\" in self.image_template:
            raise ValueError(
                f"image_template {self.image_template!r} must be a relative path below the data "
                "folder"
            )
        return self


def parse(kind: type[S], row: object) -> S:
    """Validate one row of the dataset whose samples are of this ``kind``.

    Raises ``DataError`` that names every field at fault, what was found and what was expected;
    callers add file and line.
    """
    if not isinstance(row, Mapping):
        raise DataError(f"expected a JSON object, found {type(row).__name__}")
    try:
        return kind.model_validate(dict(row))
    except ValidationError as error:
        raise DataError("; ".join(map(_fault, error.errors(include_url=False)))) from None


def _fault(error: Any) -> str:
    field = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"field {field!r} is missing"
    if error["type"] == "value_error":  # our own checks name their field themselves
        return str(error["ctx"]["error"])
    return f"field {field!r}: {error['msg']}, found {error['input']!r:.80}"
