"""What the studies of a model change, from results as lmms-eval writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.results import studies

VALUES = {
    "proactivebench_mcqa_rod": {"acc": 8.2, "ps": 0.5, "asked": 37.0, "max_steps": 16.0},
    "proactivebench-reference_rod": {"acc": 98.3, "ps": 0.0, "asked": 0.0, "max_steps": 0.0},
    "proactivebench-hint_rod": {"acc": 25.8, "ps": 1.5, "asked": 60.0, "max_steps": 20.0},
    "proactivebench-random_rod": {"acc": 5.0, "ps": 0.7, "asked": 49.0, "max_steps": 20.0},
    "proactivebench-mcqa": {"acc": 20.0, "ps": 0.4, "asked": 30.0, "max_steps": 10.0},
    "proactivebench-reference": {"acc": 79.8, "ps": 0.0, "asked": 0.0, "max_steps": 0.0},
}
GROUPS = ("proactivebench-mcqa", "proactivebench-reference")


def of_older_versions() -> dict[str, Any]:
    """All metrics in the harness's part."""
    return {
        "results": {
            name: {f"{k},none": v for k, v in values.items()}
            | {"acc_stderr,none": "N/A", "alias": "x"}
            for name, values in VALUES.items()
        }
    }


def of_this_version() -> dict[str, Any]:
    """What users compare in the harness's part, all of it in ours."""
    names = ("acc", "ps")
    summaries = {
        name: {"metrics": {k: {"mean": v, "stderr": None} for k, v in values.items()}}
        for name, values in VALUES.items()
    }
    return {
        "results": {
            name: {"alias": "x"} | {f"{k},none": values[k] for k in names}
            for name, values in VALUES.items()
        },
        "proactivebench": {
            "tasks": {name: each for name, each in summaries.items() if name not in GROUPS},
            "groups": {name: each for name, each in summaries.items() if name in GROUPS},
        },
    }


@pytest.fixture(params=[of_older_versions, of_this_version], ids=["older", "this"])
def scores(request: pytest.FixtureRequest, tmp_path: Path) -> studies.Scores:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(request.param()))
    return studies.read(path)


def test_differences_are_study_minus_normal(scores: studies.Scores) -> None:
    rod = studies.compare(scores)["rod"]
    assert rod.reference_gain == pytest.approx(90.1)
    assert rod.hint_gain == pytest.approx(17.6)
    assert rod.hint_ps_gain == pytest.approx(1.0)
    assert rod.random_asked_gain == pytest.approx(12.0)
    assert rod.at_limit == 16.0


def test_the_mean_comes_from_the_groups(scores: studies.Scores) -> None:
    mean = studies.compare(scores)["mean"]
    assert mean.reference_gain == pytest.approx(59.8)
    assert mean.hint_gain is None


def test_what_was_not_run_is_none(scores: studies.Scores) -> None:
    coco = studies.compare(scores)["coco"]
    assert coco == studies.Comparison(None, None, None, None, None)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"results": 3}'])
def test_a_file_that_holds_no_results_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DataError, match=r"r\.json"):
        studies.read(tmp_path / "r.json")
