"""The model ``proactivebench_baseline``: which model arguments it takes, and that it looks."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.probe import ALL, Lab, count_decodes

from proactivebench_tasks.baselines.model import Baseline
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.protocol.samples import Dataset


def test_arguments_that_lmms_eval_always_gives_are_taken() -> None:
    model = Baseline(policy="oracle", batch_size="4", device="cpu", max_batch_size=None)
    assert model.batch_size == 4


def test_misspelt_argument_is_named_beside_the_known_ones() -> None:
    with pytest.raises(HarnessError, match="polcy; known: policy, seed, look"):
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


@pytest.mark.parametrize("given", ["no", "", 2, "False ", None])
def test_a_look_that_is_none_is_named_with_what_would_be_one(given: Any) -> None:
    with pytest.raises(HarnessError, match=f"look is {given!r}; expected true or false"):
        Baseline(look=given)


class Watched(Baseline):
    """A baseline as the laboratory wants its models."""

    disagreements: list[Any] = []


VSOD = ALL[Dataset.VSOD]


def damage(lab: Lab) -> set[int]:
    """Damages the first image of three samples of 14; returns their ids."""
    lab.make(Dataset.VSOD)
    first = [lab.data / Dataset.VSOD.value / f"{number}_0000.png" for number in (1, 4, 6)]
    first[0].write_bytes(b"")
    first[1].write_bytes(first[1].read_bytes()[:-30])
    first[2].unlink()
    return {107, 128, 142}


def test_a_first_run_proves_every_image_that_it_shows_once(lab: Lab) -> None:
    damaged = damage(lab)
    decoded = count_decodes(lab.monkeypatch)
    outcome = lab.evaluate(Watched("always_ask", batch_size=4), VSOD)
    assert outcome.failed(VSOD).keys() == damaged
    assert all("_0000.png" in error for error in outcome.failed(VSOD).values())
    turns = sum(map(len, outcome.answers(VSOD).values()))
    assert len(decoded) == turns + len(damaged)


def test_without_looking_no_image_is_opened(lab: Lab) -> None:
    damage(lab)
    decoded = count_decodes(lab.monkeypatch)
    outcome = lab.evaluate(Watched("always_ask", batch_size=4, look=False), VSOD)
    assert outcome.failed(VSOD) == {}
    assert decoded == []
