"""No judge of the machine's own reaches these tests."""

from __future__ import annotations

import pytest
from fakes.judge_server import forget_judges


@pytest.fixture(autouse=True)
def no_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_judges(monkeypatch)
