"""Sample: one row of a dataset's jsonl, parsed and validated.

A row is the benchmark's own record of one sample (ENVIRONMENTS in the paper's appendix; the hub
dataset ``tdemin16/ProactiveBench``). Parsing is strict: a number written as text is an error, not a
number. Columns that the benchmark does not define are ignored.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar

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


Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=100_000)]  # turns, frames: what a real sample can have
Number = Annotated[float, Field(allow_inf_nan=False)]


class Crop(BaseModel):
    """COCO's starting window, in pixels of the whole image."""

    model_config = ConfigDict(frozen=True, strict=True)

    top: Number
    left: Number
    height: Number
    width: Number


class Sample(BaseModel):
    """What every dataset's row has. ``options`` are the suggestions and refusals, in list order."""

    model_config = ConfigDict(frozen=True, strict=True)

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


class RodSample(Sample):
    """Object behind blocks."""


class VsodSample(Sample):
    """Object in a video, hidden by something that passes."""

    strong_occlusions: bool


class MvpnSample(Sample):
    """Views of an object, the last of ``valid_images`` being the informative one."""

    placeholders: ClassVar[frozenset[str]] = frozenset({"image", "informative"})

    valid_images: Annotated[tuple[int, ...], Field(strict=False)]

    @model_validator(mode="after")
    def _enough_views(self) -> MvpnSample:
        if len(self.valid_images) < self.num_images:
            raise ValueError(
                f"valid_images has {len(self.valid_images)} entries, fewer than num_images "
                f"({self.num_images})"
            )
        return self


class ImagenetcSample(Sample):
    """Corrupted photo; ``quality_answer`` is the suggestion that repairs it."""

    placeholders: ClassVar[frozenset[str]] = frozenset({"level"})

    quality_answer: Text


class QuickdrawSample(Sample):
    """Unfinished sketch."""


class ChangeitSample(Sample):
    """Video frame from before (or after) the change of state; a move skips ``step_size`` frames."""

    step_size: Count
    max_steps: Count


class CocoSample(Sample):
    """Crop that shows too little. Steps are in pixels."""

    placeholders: ClassVar[frozenset[str]] = frozenset()

    direction: Annotated[
        str, Field(pattern=r"^((left|right|up|down)(_(left|right|up|down))?|zoom)$")
    ]
    granularity: Count
    horizontal_step: Number
    vertical_step: Number
    crop: Crop


_MODELS: Mapping[Dataset, type[Sample]] = {
    Dataset.ROD: RodSample,
    Dataset.VSOD: VsodSample,
    Dataset.MVPN: MvpnSample,
    Dataset.IMAGENETC: ImagenetcSample,
    Dataset.QUICKDRAW: QuickdrawSample,
    Dataset.CHANGEIT: ChangeitSample,
    Dataset.COCO: CocoSample,
}


def parse(dataset: Dataset, row: object) -> Sample:
    """Validate one row of a dataset.

    Returns the dataset's own subclass of ``Sample``. Raises ``DataError`` that names every field at
    fault, what was found and what was expected; callers add file and line.
    """
    if not isinstance(row, Mapping):
        raise DataError(f"expected a JSON object, found {type(row).__name__}")
    try:
        return _MODELS[dataset].model_validate(dict(row))
    except ValidationError as error:
        raise DataError("; ".join(map(_fault, error.errors(include_url=False)))) from None


def _fault(error: Any) -> str:
    field = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"field {field!r} is missing"
    if error["type"] == "value_error":  # our own checks name their field themselves
        return str(error["ctx"]["error"])
    return f"field {field!r}: {error['msg']}, found {error['input']!r:.80}"
