"""What the studies of a model change, from results as lmms-eval writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proactivebench_tasks.errors import DataError
from proactivebench_tasks.results import studies


def results(path: Path) -> Path:
    def row(**metrics: float) -> dict[str, object]:
        keys: dict[str, object] = {f"{k},none": v for k, v in metrics.items()}
        return keys | {"acc_stderr,none": "N/A", "alias": "x"}

    table = {
        "proactivebench_mcqa_rod": row(acc=8.2, ps=0.5, asked=37.0, max_steps=16.0),
        "proactivebench-reference_rod": row(acc=98.3, ps=0.0, asked=0.0, max_steps=0.0),
        "proactivebench-hint_rod": row(acc=25.8, ps=1.5, asked=60.0, max_steps=20.0),
        "proactivebench-random_rod": row(acc=5.0, ps=0.7, asked=49.0, max_steps=20.0),
        "proactivebench-mcqa": row(acc=20.0, ps=0.4, asked=30.0, max_steps=10.0),
        "proactivebench-reference": row(acc=79.8, ps=0.0, asked=0.0, max_steps=0.0),
    }
    path.write_text(json.dumps({"results": table}))
    return path


def test_differences_are_study_minus_normal(tmp_path: Path) -> None:
    rod = studies.compare(studies.read(results(tmp_path / "r.json")))["rod"]
    assert rod.reference_gain == pytest.approx(90.1)
    assert rod.hint_gain == pytest.approx(17.6)
    assert rod.hint_ps_gain == pytest.approx(1.0)
    assert rod.random_asked_gain == pytest.approx(12.0)
    assert rod.at_limit == 16.0


def test_the_mean_comes_from_the_groups(tmp_path: Path) -> None:
    mean = studies.compare(studies.read(results(tmp_path / "r.json")))["mean"]
    assert mean.reference_gain == pytest.approx(59.8)
    assert mean.hint_gain is None


def test_what_was_not_run_is_none(tmp_path: Path) -> None:
    coco = studies.compare(studies.read(results(tmp_path / "r.json")))["coco"]
    assert coco == studies.Comparison(None, None, None, None, None)


def test_a_file_that_holds_no_results_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("[]")
    with pytest.raises(DataError, match=r"r\.json"):
        studies.read(tmp_path / "r.json")
