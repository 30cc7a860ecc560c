"""The names of tasks and groups, which users type and results are kept under."""

from __future__ import annotations

from proactivebench_tasks.protocol.samples import Dataset

#: What names begin with: the official benchmark, and the demo.
OFFICIAL, DEMO = "proactivebench", "proactivedemo"

#: What every family has beside its studies: multiple choice and open-ended.
PLAIN = "mcqa", "oeg"


def task(family: str, study: str, dataset: Dataset) -> str:
    """``proactivebench_mcqa_rod`` and ``proactivebench-hint_rod``."""
    return f"{family}{'_' if study in PLAIN else '-'}{study}_{dataset.task}"


def group(family: str, study: str) -> str:
    """``proactivebench-hint``; the demo's multiple choice is the family itself."""
    return family if (family, study) == (DEMO, "mcqa") else f"{family}-{study}"
