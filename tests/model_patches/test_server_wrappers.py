"""Real wrappers of servers: no reply is lost between calls, and their timeout is kept."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from fakes.chat_server import ChatServer, Sent, reply
from fakes.probe import ALL, Lab, expected
from lmms_eval import models

from proactivebench_tasks.model_patches import wrappers
from proactivebench_tasks.model_patches.wrappers import event_loop, finish_reason, timeout
from proactivebench_tasks.protocol.samples import Dataset

VSOD = ALL[Dataset.VSOD]
COUNT = 12
#: Each sample is asked for until there is nothing left to wait for.
TURNS = sum(e.environment.max_turns for e in expected(Dataset.VSOD, COUNT))
CONCURRENT = {"openai": "num_concurrent", "async_openai": "num_cpus"}


def wrapper(name: str, url: str, at_once: int) -> Any:
    lm = models.get_model(name)(
        model="m", base_url=url, api_key="x", retry_backoff_s=0.0, **{CONCURRENT[name]: at_once}
    )
    lm.disagreements = []  # for the laboratory
    return lm


def asks(sample: int) -> Sent:
    return Sent(reply("Wait for the bus.", tokens=4))


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.make(Dataset.VSOD, count=COUNT)
    return lab


@pytest.mark.parametrize("name", CONCURRENT)
@pytest.mark.parametrize("at_once", [1, 3, 16])
def test_there_is_one_request_a_turn(lab: Lab, log: list[str], name: str, at_once: int) -> None:
    with ChatServer(asks, keeps_alive=True) as server:
        outcome = lab.evaluate(wrapper(name, server.url, at_once), VSOD)
    assert outcome.failed(VSOD) == {}
    assert server.requests.total() == sum(map(len, outcome.answers(VSOD).values())) == TURNS
    assert not [line for line in log if "Attempt 1" in line]


@pytest.mark.parametrize("at_once", [1, 3])
def test_without_the_patch_replies_are_lost(
    lab: Lab, log: list[str], monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """What the patch is for. If this fails, lmms-eval is mended, and the patch can go."""
    monkeypatch.setattr(wrappers, "_PATCHES", (finish_reason.told,))
    with ChatServer(asks, keeps_alive=True) as server:
        lab.evaluate(wrapper("async_openai", server.url, at_once), VSOD)
    assert [line for line in log if "Attempt 1" in line]


def test_two_runs_of_one_wrapper_and_other_tasks_between_them(lab: Lab) -> None:
    """The wrapper's own client and loop are back when our tasks are done."""
    with ChatServer(asks, keeps_alive=True) as server:
        lm = wrapper("async_openai", server.url, 3)
        client, module = lm.client, sys.modules[type(lm).__module__]
        own = module.asyncio
        for _ in range(2):
            assert lab.evaluate(lm, VSOD).failed(VSOD) == {}
            assert lm.client is client
            assert module.asyncio is own
    assert server.requests.total() == 2 * TURNS


@pytest.mark.parametrize(("given", "kept"), [({"timeout": 7}, 7.0), ({"timeout": "2.5"}, 2.5)])
def test_timeout_reaches_the_client(given: dict[str, Any], kept: float) -> None:
    lm = models.get_model("openai")(model="m", base_url="http://127.0.0.1:9", api_key="x", **given)
    before = lm.client.timeout
    with timeout.passed_on(lm):
        assert lm.client.timeout == kept
    assert lm.client.timeout is before


@pytest.mark.parametrize("given", [{}, {"timeout": 10}])
def test_the_default_timeout_ends_no_request_that_runs_today(given: dict[str, Any]) -> None:
    lm = models.get_model("openai")(model="m", base_url="http://127.0.0.1:9", api_key="x", **given)
    before = lm.client
    with timeout.passed_on(lm):
        assert lm.client is before


@pytest.mark.parametrize("patch", [event_loop.kept, timeout.passed_on])
def test_other_wrappers_are_left_alone(patch: Callable[[Any], Any], log: list[str]) -> None:
    with patch(object()):
        pass
    (line,) = log
    assert line.startswith("DEBUG wrapper object ")
