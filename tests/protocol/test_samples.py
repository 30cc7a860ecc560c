"""Rows: what is taken, and that every fault in one is a ``DataError`` that names the field."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import world

from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.coco import CocoSample
from proactivebench_tasks.environments.mvpn import MvpnSample
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.samples import Dataset, Sample

NO_INT = ["1", 1.5, 1.0, True, None, [1]]
NO_COUNT = [*NO_INT, 0, -1]
NO_NUMBER = ["1", True, None, float("nan"), float("inf"), 10**400]
NO_TEXT = [1, None, "", ["text"]]
NO_TEXTS = ["text", None, [], [1], ["text", None], [""], {"0": "text"}]

COMMON = {
    "id": NO_INT,
    "image_template": NO_TEXT,
    "first_image": NO_INT,
    "num_images": NO_COUNT,
    "reference_image": NO_INT,
    "prompt": NO_TEXT,
    "options": NO_TEXTS,
    "categories": NO_TEXTS,
    "answer": NO_TEXT,
}
OWN: dict[Dataset, dict[str, list[Any]]] = {
    Dataset.ROD: {},
    Dataset.VSOD: {"strong_occlusions": [0, 1, "true", None]},
    Dataset.MVPN: {"valid_images": [0, None, "0", {}, ["0"], [True], [0.0], [None]]},
    Dataset.IMAGENETC: {"quality_answer": NO_TEXT},
    Dataset.QUICKDRAW: {},
    Dataset.CHANGEIT: {"step_size": NO_COUNT, "max_steps": NO_COUNT},
    Dataset.COCO: {
        "direction": [1, None, "", "Left", "left ", "left\n", "left_up_down", "left_zoom", "in"],
        "granularity": NO_COUNT,
        "horizontal_step": NO_NUMBER,
        "vertical_step": NO_NUMBER,
        "crop": [None, 1, [1, 2, 3, 4], {}],
    },
}
FIELDS = [(dataset, field) for dataset in Dataset for field in COMMON | OWN[dataset]]
MISTYPED = [
    pytest.param(dataset, field, value, id=f"{dataset.task}-{field}-{value!r:.20}")
    for dataset in Dataset
    # What all datasets share is tried in one of them.
    for field, values in (COMMON if dataset is Dataset.ROD else OWN[dataset]).items()
    for value in values
]


def row(dataset: Dataset, **fields: Any) -> dict[str, Any]:
    return world.rows(dataset, [7])[0] | fields


def fault(dataset: Dataset, value: object) -> str:
    """The message about a row that must not be taken."""
    with pytest.raises(DataError) as error:
        parse_sample(dataset, value)
    return str(error.value)


@pytest.mark.parametrize(("dataset", "field"), FIELDS)
def test_missing_field_is_named(dataset: Dataset, field: str) -> None:
    given = row(dataset)
    del given[field]
    assert fault(dataset, given) == f"field {field!r} is missing"


@pytest.mark.parametrize(("dataset", "field", "value"), MISTYPED)
def test_mistyped_field_is_named_and_quoted(dataset: Dataset, field: str, value: object) -> None:
    message = fault(dataset, row(dataset, **{field: value}))
    assert message.startswith((f"field '{field}'", f"field '{field}."))


def test_message_tells_found_from_expected() -> None:
    message = fault(Dataset.ROD, row(Dataset.ROD, num_images="3"))
    assert message == "field 'num_images': Input should be a valid integer, found '3'"


def test_long_value_is_cut_in_the_message() -> None:
    assert len(fault(Dataset.ROD, row(Dataset.ROD, id="x" * 10_000))) < 200


@pytest.mark.parametrize("field", ["top", "left", "height", "width"])
@pytest.mark.parametrize("value", NO_NUMBER, ids=repr)
def test_edge_of_a_crop_is_named(field: str, value: object) -> None:
    crop = row(Dataset.COCO)["crop"] | {field: value}
    assert f"field 'crop.{field}'" in fault(Dataset.COCO, row(Dataset.COCO, crop=crop))


def test_all_faults_of_a_row_are_named_at_once() -> None:
    message = fault(Dataset.CHANGEIT, row(Dataset.CHANGEIT, id="1", step_size=0))
    assert "'id'" in message and "'step_size'" in message


@pytest.mark.parametrize("value", [None, [], "row", 3, [1, 2]], ids=repr)
def test_row_that_is_no_object_is_refused(value: object) -> None:
    assert fault(Dataset.ROD, value) == f"expected a JSON object, found {type(value).__name__}"


@pytest.mark.parametrize("answer", ["A pear.", "An apple", "an apple."])
def test_answer_must_be_one_of_the_categories_as_written(answer: str) -> None:
    message = fault(Dataset.QUICKDRAW, row(Dataset.QUICKDRAW, answer=answer))
    assert message == f"answer {answer!r} is not among categories"


@pytest.mark.parametrize(
    ("dataset", "template", "wanted"),
    [
        (Dataset.ROD, "a.png", "{image}"),
        (Dataset.ROD, "{level}.png", "{image}"),
        (Dataset.ROD, "{image}{level}.png", "{image}"),
        (Dataset.ROD, "{}.png", "{image}"),
        (Dataset.ROD, "{0}.png", "{image}"),
        (Dataset.ROD, "{image.real}.png", "{image}"),
        (Dataset.ROD, "{image[0]}.png", "{image}"),
        (Dataset.ROD, "{{image}}.png", "{image}"),
        (Dataset.MVPN, "{image}.png", "{image}, {informative}"),
        (Dataset.MVPN, "{informative}.png", "{image}, {informative}"),
        (Dataset.IMAGENETC, "{image}.png", "{level}"),
        (Dataset.COCO, "{image}.png", "none"),
    ],
)
def test_placeholders_must_be_the_datasets_own(
    dataset: Dataset, template: str, wanted: str
) -> None:
    message = fault(dataset, row(dataset, image_template=template))
    assert message.endswith(f"must hold exactly these placeholders: {wanted}")


@pytest.mark.parametrize("template", ["{image", "image}", "{image}{"])
def test_torn_placeholder_is_a_fault_of_the_template(template: str) -> None:
    assert "image_template" in fault(Dataset.ROD, row(Dataset.ROD, image_template=template))


@pytest.mark.parametrize("placeholder", ["{image!x}", "{image:04d}", "{image:{width}}"])
def test_placeholder_with_a_format_of_its_own_is_refused(placeholder: str) -> None:
    template = f"a/{placeholder}.png"
    assert "image_template" in fault(Dataset.VSOD, row(Dataset.VSOD, image_template=template))


@pytest.mark.parametrize(
    "template", ["/etc/{image}", "../{image}", "a/../../{image}", "a/..", "\\{image}", "a\\{image}"]
)
def test_template_that_leaves_the_data_folder_is_refused(template: str) -> None:
    if "{" not in template:
        template += "/{image}"
    message = fault(Dataset.ROD, row(Dataset.ROD, image_template=template))
    assert message.endswith("must be a relative path below the data folder")


@pytest.mark.parametrize(
    "template", ["{image}", "a/b/{image}.png", "..a/{image}", "{image}/{image}"]
)
def test_template_below_the_data_folder_is_taken(template: str) -> None:
    sample = parse_sample(Dataset.ROD, row(Dataset.ROD, image_template=template))
    assert sample.image_template == template


def test_views_must_be_as_many_as_images() -> None:
    message = fault(Dataset.MVPN, row(Dataset.MVPN, num_images=3, valid_images=[4, 5]))
    assert message == "valid_images has 2 entries, fewer than num_images (3)"


def test_spare_views_are_taken() -> None:
    sample = parse_sample(Dataset.MVPN, row(Dataset.MVPN, num_images=1, valid_images=[4, 5]))
    assert isinstance(sample, MvpnSample) and sample.valid_images == (4, 5)


@pytest.mark.parametrize(
    "direction", ["left", "right", "up", "down", "left_up", "up_left", "down_right", "zoom"]
)
def test_known_direction_is_taken(direction: str) -> None:
    sample = parse_sample(Dataset.COCO, row(Dataset.COCO, direction=direction))
    assert isinstance(sample, CocoSample) and sample.direction == direction


@pytest.mark.parametrize("value", [8, 8.25, -3, 0])
def test_steps_in_pixels_may_be_whole_or_not(value: float) -> None:
    sample = parse_sample(Dataset.COCO, row(Dataset.COCO, horizontal_step=value))
    assert isinstance(sample, CocoSample) and sample.horizontal_step == value


@pytest.mark.parametrize("dataset", Dataset)
def test_columns_that_the_benchmark_does_not_define_are_ignored(dataset: Dataset) -> None:
    plain = parse_sample(dataset, row(dataset))
    assert parse_sample(dataset, row(dataset, line=3, note={"a": [None]})) == plain


@pytest.mark.parametrize("dataset", Dataset)
def test_row_survives_the_way_through_json(dataset: Dataset) -> None:
    sample = parse_sample(dataset, row(dataset))
    assert sample.dataset is dataset
    assert parse_sample(dataset, sample.model_dump(mode="json")) == sample


def test_sample_cannot_be_changed() -> None:
    sample = parse_sample(Dataset.ROD, row(Dataset.ROD))
    with pytest.raises(ValueError, match="frozen"):
        sample.answer = "A boat."  # type: ignore[misc]


def test_lists_keep_their_order() -> None:
    sample: Sample = parse_sample(Dataset.ROD, row(Dataset.ROD, options=["c", "a", "b"]))
    assert sample.options == ("c", "a", "b")


@pytest.mark.parametrize("name", ["ImageNet", "imagenetc", None, 3, ["ROD"]], ids=repr)
def test_unknown_dataset_is_named_beside_the_known_ones(name: object) -> None:
    with pytest.raises(DataError, match=r"unknown dataset .*Realistic-Occlusion-Dataset.*coco2014"):
        Dataset.parse(name)


def test_dataset_is_found_by_its_part_of_a_task_name() -> None:
    tasks = ["rod", "vsod", "mvpn", "imagenetc", "quickdraw", "changeit", "coco"]
    assert [Dataset.of_task(task) for task in tasks] == list(Dataset)
    with pytest.raises(DataError, match="unknown dataset 'ROD'"):
        Dataset.of_task("ROD")


def test_file_names_are_the_officials() -> None:
    assert Dataset.COCO.jsonl == "coco2014_preprocessed.jsonl"
