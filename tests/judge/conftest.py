"""No judge of the machine's own reaches these tests."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("PROACTIVEBENCH_JUDGE", "OPENAI_")):
            monkeypatch.delenv(name)
