"""The wheel: what a user installs holds all that a run needs, and plays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAME = "proactivebench_tasks"
#: Folders of the repository, and where the wheel has what they hold.
PLACES = {
    ROOT / NAME: NAME,
    ROOT / "model_patches": f"{NAME}/model_patches",
    ROOT / "task_yamls": f"{NAME}/task_yamls",
}

pytestmark = [pytest.mark.slow, pytest.mark.network]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing of an earlier build is in it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for path in (*PLACES, ROOT / "pyproject.toml", ROOT / "setup.py", ROOT / "README.md"):
        copy = shutil.copytree if path.is_dir() else shutil.copy
        source.mkdir(exist_ok=True)
        copy(path, source / path.name)
    shutil.copy(ROOT / "LICENSE", source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", str(source)]
    subprocess.run([*command, "--wheel-dir", str(folder)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_it_holds_every_file_of_the_package(wheel: Path) -> None:
    wanted = {
        f"{place}/{path.relative_to(folder).as_posix()}"
        for folder, place in PLACES.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == wanted
    assert any(name.startswith(f"{NAME}/demo/data/test/") for name in held)


PLAY = (
    *("lmms_eval", "--model", "proactivebench_baseline", "--model_args", "policy=oracle"),
    *("--tasks", "proactivedemo", "--limit", "1", "--output_path", "."),
)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (PLAY, "these numbers compare to no others"),
        ((NAME, "chance", "--demo"), "mean "),
    ],
    ids=["play", "chance"],
)
def test_it_works_inside_a_checkout(
    wheel: Path, tmp_path: Path, command: tuple[str, ...], expected: str
) -> None:
    """``python -m`` puts the current folder first on the path, and so the checkout's package."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    checkout = tmp_path / "checkout"
    shutil.copytree(wheel.parent / "source", checkout)
    # -S: this environment, which the tests run in, may have an editable install.
    run = subprocess.run(
        [sys.executable, "-S", "-m", *command],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(site), sysconfig.get_path("purelib")]),
            "HF_HUB_OFFLINE": "1",
        },
        cwd=checkout,
        capture_output=True,
        text=True,
    )
    assert expected in run.stdout, run.stderr[-2000:]
    assert run.returncode == 0


def test_the_demo_plays_from_it(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    script = tmp_path / "run.py"
    script.write_text(
        f"import {NAME}\nprint({NAME}.__file__)\n"
        "from lmms_eval.__main__ import cli_evaluate\ncli_evaluate()\n"
    )
    command = [
        *(sys.executable, str(script), "--model", "proactivebench_baseline"),
        *("--model_args", "policy=oracle", "--tasks", "proactivedemo", "--limit", "2"),
        *("--output_path", str(tmp_path / "out")),
    ]
    environment = os.environ | {"PYTHONPATH": str(site), "HF_HUB_OFFLINE": "1"}
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout.splitlines()[0] == str(site / NAME / "__init__.py")
    (results,) = (tmp_path / "out").rglob("*_results.json")
    found = json.loads(results.read_text())
    assert found["results"]["proactivedemo"]["acc,none"] == 100
    group = found["proactivebench"]["groups"]["proactivedemo"]
    assert group["metrics"]["failed"]["mean"] == 0
