"""Finds the packages. Everything else about the distribution stands in pyproject.toml.

``model_patches`` and ``task_yamls`` lie at the top of the repository, and are installed as
``proactivebench_tasks.model_patches`` and ``proactivebench_tasks.task_yamls``.
"""

from setuptools import find_packages, setup

NAME = "proactivebench_tasks"
BESIDE = ("model_patches", "task_yamls")

inside = find_packages(include=[NAME, f"{NAME}.*"])
beside = find_packages(include=[pattern for name in BESIDE for pattern in (name, f"{name}.*")])
setup(
    packages=[*inside, *(f"{NAME}.{package}" for package in beside)],
    package_dir={f"{NAME}.{name}": name for name in BESIDE},
)
