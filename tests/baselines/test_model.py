"""The model ``proactivebench_baseline``: which model arguments it takes."""

from __future__ import annotations

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
