"""While our tasks are played the log stays readable, and nothing that matters is missing."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import tqdm
import tqdm.auto
from fakes.probe import Lab, Probe
from lmms_eval.models.model_utils import progress
from lmms_eval.models.model_utils.gen_metrics import log_metrics
from loguru import logger

from proactivebench_tasks.model_patches import quiet
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.rollout import runner

OEG = f"proactivebench_oeg_{Dataset.ROD.task}"


class Bar(tqdm.tqdm):  # type: ignore[type-arg]
    """A bar of some wrapper's own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


@pytest.mark.parametrize("kind", [tqdm.tqdm, tqdm.auto.tqdm, Bar, tqdm.trange])
def test_bars_of_others_are_not_drawn(kind: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with quiet.only_ours(quiet.CALLS):
        assert sum(kind(3) if kind is tqdm.trange else kind([0, 1, 2])) == 3
    assert capsys.readouterr().err == ""
    list(kind(3) if kind is tqdm.trange else kind([0, 1, 2]))
    assert "100%" in capsys.readouterr().err


@pytest.mark.parametrize("module", [runner, "judge.stage", "data.download", "data.verify"])
def test_bars_of_ours_are_drawn(module: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ours = module
    if isinstance(module, str):
        ours = importlib.import_module(f"proactivebench_tasks.{module}")
    with quiet.only_ours(quiet.TASKS):
        exec("list(tqdm([1, 2, 3]))", vars(ours))
    assert "100%" in capsys.readouterr().err


def test_judging_has_its_bar_while_all_else_is_quiet(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_JUDGE", "lexical")
    lab.make(Dataset.ROD, count=3)
    model = Probe(4)
    monkeypatch.setattr(model, "generate_until", lambda requests: ["A cup."] * len(requests))
    lab.evaluate(model, OEG)
    drawn = capsys.readouterr().err
    assert f"{OEG}: " in drawn
    assert "judging: " in drawn
    assert "Postprocessing" not in drawn


# What is logged.


def above_debug(log: list[str]) -> list[str]:
    return [line for line in log if not line.startswith(("DEBUG", "TRACE"))]


def wrapper_lines() -> None:
    """What wrappers log in a call, with and without a terminal."""
    log_metrics(total_gen_tokens=1, total_elapsed_time=1.0, avg_speed=1.0)
    bar = progress.SlurmProgress(total=2, desc="Model Responding")
    bar.update(2)
    bar.close()


def test_lines_of_a_call_are_told_at_level_debug(log: list[str]) -> None:
    with quiet.only_ours(quiet.CALLS):
        wrapper_lines()
    assert above_debug(log) == []
    assert len(log) == 3
    wrapper_lines()
    assert len(above_debug(log)) == 3


@pytest.mark.parametrize("level", ["warning", "error", "exception", "critical", "success"])
def test_warnings_and_errors_stay(log: list[str], level: str) -> None:
    with quiet.only_ours(quiet.TASKS):
        getattr(progress.eval_logger, level)("heed this")
    (line,) = above_debug(log)
    assert "heed this" in line


def test_what_a_wrapper_itself_tells_stays(log: list[str]) -> None:
    openai = importlib.import_module("lmms_eval.models.chat.openai")
    with quiet.only_ours(quiet.TASKS):
        openai.eval_logger.info("Attempt 1/3 failed with error: 429")
    assert above_debug(log) == ["INFO Attempt 1/3 failed with error: 429\n"]


def test_all_is_as_before_when_an_evaluation_ends_with_an_error() -> None:
    drawn, told = tqdm.tqdm.__init__, progress.eval_logger
    twice = quiet.only_ours(quiet.TASKS), quiet.only_ours(quiet.CALLS)
    with pytest.raises(KeyboardInterrupt), twice[0], twice[1]:
        raise KeyboardInterrupt
    assert tqdm.tqdm.__init__ is drawn
    assert progress.eval_logger is told is logger
