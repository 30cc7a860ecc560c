"""The task files are what their script writes, and its table is all that a new study needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.task_yamls.generate import (
    ALL,
    FOLDER,
    HEADER,
    STUDIES,
    Study,
    files,
    write,
)


def loaded(folder: Path) -> dict[str, dict[str, Any]]:
    """What lmms-eval finds in a folder: the config of each task and group, by its name."""
    from lmms_eval.tasks import TaskManager
    from lmms_eval.utils import load_yaml_config

    index = TaskManager(include_path=str(folder), include_defaults=False).task_index
    return {
        name: load_yaml_config(entry["yaml_path"], mode="simple") for name, entry in index.items()
    }


def test_files_are_what_the_script_writes() -> None:
    wanted = files()
    found = {
        path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8")
        for path in FOLDER.rglob("*.yaml")
    }
    missing = sorted(wanted.keys() - found.keys())
    extra = sorted(found.keys() - wanted.keys())
    edited = sorted(path for path in wanted.keys() & found.keys() if wanted[path] != found[path])
    assert not (missing or extra or edited), (
        f"in {FOLDER}, missing: {missing}, not from the script: {extra}, edited: {edited}. Make "
        "changes in task_yamls/generate.py and run `python task_yamls/generate.py`; a file that is "
        "still left over is to be deleted"
    )


def test_means_are_over_the_published_datasets() -> None:
    """A dataset of one's own, which is a line of ``Dataset``, does not change the headline."""
    assert ALL == published.DATASETS
    assert len(ALL) == 7


def test_study_has_tasks_and_a_group_and_their_demo_twins(tmp_path: Path) -> None:
    study = Study("seed", (Dataset.ROD, Dataset.COCO), {"mode": "random", "seed": 7}, "Luck.")
    write(files(), tmp_path / "before")
    write(files([*STUDIES, study]), tmp_path / "after")
    before, after = loaded(tmp_path / "before"), loaded(tmp_path / "after")

    groups = {
        "proactivebench-seed": ["proactivebench-seed_rod", "proactivebench-seed_coco"],
        "proactivedemo-seed": ["proactivedemo-seed_rod", "proactivedemo-seed_coco"],
    }
    assert after.keys() - before.keys() == set(groups).union(*groups.values())
    for group, tasks in groups.items():
        plain = after[group.replace("-seed", "-hint")]
        assert after[group] == {**plain, "group": group, "task": tasks}
        for task in tasks:
            hint = after[task.replace("-seed_", "-hint_")]  # the same rows, the same metrics
            kwargs = {"default": {"mode": "random", "seed": 7}}
            expected = {**hint, "task": task, "lmms_eval_specific_kwargs": kwargs}
            assert str(after[task]) == str(expected)  # a function's node equals only itself
    base = (tmp_path / "after/studies/seed/_seed.yaml").read_text(encoding="utf-8")
    assert base.startswith(f"{HEADER}# Luck.\n")


def test_open_ended_study_is_judged_without_a_model_on_the_demo_data(tmp_path: Path) -> None:
    kwargs = {"open_ended": True, "oeg_hint": True}
    write(files([Study("calm-oeg", ALL, kwargs, "One may help.")]), tmp_path)
    configs = loaded(tmp_path)

    official = configs["proactivebench-calm-oeg_vsod"]
    demo = configs["proactivedemo-calm-oeg_vsod"]
    assert official["lmms_eval_specific_kwargs"] == {"default": kwargs}
    assert demo["lmms_eval_specific_kwargs"] == {"default": {**kwargs, "judge": "lexical"}}
    assert official["metric_list"] == configs["proactivebench_oeg_vsod"]["metric_list"]
    assert demo["metadata"] == configs["proactivedemo_oeg_vsod"]["metadata"]
    group = configs["proactivebench-calm-oeg"]["aggregate_metric_list"]
    assert group == configs["proactivebench-oeg"]["aggregate_metric_list"]


def test_script_deletes_what_it_wrote_for_a_study_that_is_gone(tmp_path: Path) -> None:
    write(files(), tmp_path)
    (tmp_path / "mine.yaml").write_text("include: mcqa/rod.yaml\ntask: mine\n", encoding="utf-8")
    left = [study for study in STUDIES if study.name != "history"]
    write(files(left), tmp_path)

    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.yaml")}
    assert found == {*files(left), "mine.yaml"}
    assert not [path for path in found if "history" in path]
