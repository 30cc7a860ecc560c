"""The model ``proactivebench_baseline``: which model arguments it takes."""

from __future__ import annotations

from typing import Any

import pytest

from proactivebench_tasks.baselines.model import Baseline
from proactivebench_tasks.errors import HarnessError


def test_arguments_that_lmms_eval_always_gives_are_taken() -> None:
    model = Baseline(policy="oracle", batch_size="4", device="cpu", max_batch_size=None)
    assert model.batch_size == 4


def test_misspelt_argument_is_named_beside_the_known_ones() -> None:
    with pytest.raises(HarnessError, match="polcy; known: policy, seed"):
        Baseline(polcy="oracle")


def test_unknown_policy_is_named_beside_the_known_ones() -> None:
    with pytest.raises(HarnessError, match="'orcale'; expected one of oracle, random, reactive"):
        Baseline(policy="orcale")


@pytest.mark.parametrize("given", ["auto", "auto:4"])
def test_a_batch_size_that_is_up_to_the_model_is_one(given: str) -> None:
    assert Baseline(batch_size=given).batch_size == 1


@pytest.mark.parametrize("given", ["0", 0, "-1", -1, "4.5", "", "four", "automatic", "1e3", None])
def test_a_batch_size_that_is_none_is_named_with_what_would_be_one(given: Any) -> None:
    with pytest.raises(HarnessError, match=f"batch_size is {given!r}; .* from 1 on, or auto"):
        Baseline(batch_size=given)


@pytest.mark.parametrize("given", ["-1", "x", "", 1.5])
def test_a_seed_that_is_none_is_named_with_what_would_be_one(given: Any) -> None:
    with pytest.raises(HarnessError, match=f"seed is {given!r}; .* from 0 on"):
        Baseline(seed=given)
