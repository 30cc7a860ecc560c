"""Variant: what a task's YAML may ask for; a word too many is an error, it is not ignored."""

from __future__ import annotations

from typing import Any

import pytest

from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.transcripts.variant import Variant


@pytest.mark.parametrize("kwargs", [None, {}])
def test_saying_nothing_is_the_plain_benchmark(kwargs: dict[str, Any] | None) -> None:
    assert Variant.parse(kwargs) == Variant()


def test_plain_benchmark_changes_nothing() -> None:
    plain = Variant()
    assert plain.mode is Mode.NORMAL
    others = plain.model_dump(exclude={"mode"})
    assert len(others) == len(Variant.model_fields) - 1
    assert not any(others.values())
    assert plain.asked_for() == {}


@pytest.mark.parametrize("mode", Mode)
def test_mode_is_said_by_its_name(mode: Mode) -> None:
    assert Variant.parse({"mode": mode.value}) == Variant(mode=mode)


@pytest.mark.parametrize(
    ("key", "value"), [("hint", True), ("history", True), ("seed", 3), ("hint", False)]
)
def test_known_key_is_taken(key: str, value: object) -> None:
    assert Variant.parse({key: value}) == Variant(**{key: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["hints", "Hint", "pre_prompt", "strip_thinking", ""])
def test_unknown_key_is_named_beside_the_known_ones(key: str) -> None:
    with pytest.raises(HarnessError, match=rf"unknown key '{key}'; known: mode, hint, .*seed"):
        Variant.parse({key: True})


@pytest.mark.parametrize("value", ["Normal", "oracle", "", None, True, 0], ids=repr)
def test_unknown_mode_is_named_beside_the_known_ones(value: object) -> None:
    with pytest.raises(
        HarnessError, match=r"mode is .*; expected one of normal, reference, random"
    ):
        Variant.parse({"mode": value})


def test_list_as_a_mode_is_an_error_of_ours() -> None:
    with pytest.raises(HarnessError):
        Variant.parse({"mode": ["normal"]})


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("hint", 1, "bool"),
        ("hint", "true", "bool"),
        ("history", None, "bool"),
        ("seed", "1", "int"),
        ("seed", 1.0, "int"),
        ("seed", True, "int"),
    ],
)
def test_mistyped_value_is_quoted_with_what_was_expected(
    key: str, value: object, wanted: str
) -> None:
    with pytest.raises(HarnessError, match=rf"{key} is {value!r}; expected an? {wanted}"):
        Variant.parse({key: value})


def test_blocks_of_the_harness_for_other_models_are_passed_over() -> None:
    assert Variant.parse({"hint": True, "qwen": {"hints": 1}}) == Variant(hint=True)


def test_what_is_given_is_left_as_it_is() -> None:
    given = {"mode": "random", "default": {}}
    Variant.parse(given)
    assert given == {"mode": "random", "default": {}}
