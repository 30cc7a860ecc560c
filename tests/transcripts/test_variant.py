"""Variant: what a task's YAML may ask for; a word too many is an error, it is not ignored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fakes import world

import proactivebench_tasks
from proactivebench_tasks.config import JudgeKind
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset
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


def test_episodes_of_a_variant_are_made_in_one_place() -> None:
    """Else a new key would change the episode that is played and not the one that is scored."""
    package = Path(proactivebench_tasks.__file__).parent
    makers = [
        file.name
        for room in ("transcripts", "rollout", "results", "baselines")
        for file in (package / room).glob("*.py")
        if re.search(r"\bEpisode\(", file.read_text("utf-8"))
    ]
    assert makers == ["variant.py"]


@pytest.mark.parametrize(
    "changed", [{"mode": Mode.REFERENCE}, {"mode": Mode.RANDOM, "seed": 3}, {"hint": True}]
)
def test_an_episode_is_that_of_its_variant(changed: dict[str, Any]) -> None:
    (row,) = world.rows(Dataset.ROD, [5])
    episode = Variant(**changed).episode(parse_sample(Dataset.ROD, row), BUILTIN)
    assert {name: getattr(episode, name) for name in changed} == changed


@pytest.mark.parametrize("kind", ["gpt", "LATER", "lexical "])
def test_unknown_judge_is_named_beside_the_known_ones(kind: str) -> None:
    with pytest.raises(HarnessError, match=rf"judge is '{kind}'; expected one of openai, hf, "):
        Variant.parse({"open_ended": True, "judge": kind})


@pytest.mark.parametrize("kind", JudgeKind)
def test_known_judge_is_taken(kind: JudgeKind) -> None:
    assert Variant.parse({"open_ended": True, "judge": kind.value}).judge == kind.value


def test_blocks_of_the_harness_for_other_models_are_passed_over() -> None:
    assert Variant.parse({"hint": True, "qwen": {"hints": 1}}) == Variant(hint=True)


def test_what_is_given_is_left_as_it_is() -> None:
    given = {"mode": "random", "default": {}}
    Variant.parse(given)
    assert given == {"mode": "random", "default": {}}
