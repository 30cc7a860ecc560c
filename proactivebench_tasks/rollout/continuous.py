"""ContinuousGenerator: as soon as a server has answered a rollout, its next turn is on its way.

A wrapper that sends requests to a server gets them one by one, each in a thread of its own, as many
at a time as it allows. In one call for all, every turn would wait for the slowest of the window.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from typing import Any, NoReturn

from lmms_eval.api.instance import Instance
from loguru import logger

from proactivebench_tasks.rollout.checked_model import (
    CheckedModel,
    ModelRaised,
    from_cache,
    may_be_kept,
)
from proactivebench_tasks.rollout.concurrency import Concurrency
from proactivebench_tasks.rollout.generate import Calls, Generator, Outcomes, say_slow, with_cost
from proactivebench_tasks.rollout.rollout import Failure, Outcome, Rollout
from proactivebench_tasks.rollout.visuals import Visuals
from proactivebench_tasks.transcripts.answer import Answer, Cost


@dataclass
class _Sent:
    """A turn that is being asked: its key in the response cache, and since when."""

    rollout: Rollout
    key: Instance
    started: float
    is_slow: bool = False


class _NotKept(Exception):
    """The response cache has no answer to a request."""


class _NotAsked:
    """The model, as the cache sees it when it is only asked what it holds."""

    def generate_until(self, requests: Sequence[Instance]) -> NoReturn:
        raise _NotKept


class _Answered:
    """The model, as the cache sees it when it is given answers to keep, by the ``id`` of their
    requests."""

    def __init__(self, outcomes: Mapping[int, Outcome]) -> None:
        self._outcomes = outcomes

    def generate_until(self, requests: Sequence[Instance]) -> list[Any]:
        return [may_be_kept(self._outcomes[id(request)]) for request in requests]


class ContinuousGenerator(Generator):
    """Makes the requests of one task: as many at once as ``concurrency`` allows, in ``threads``."""

    def __init__(
        self,
        lm: Any,
        gen_kwargs: Mapping[str, Any],
        cache: Any,
        calls: Calls,
        concurrency: Concurrency,
        threads: Executor,
    ) -> None:
        super().__init__(lm, gen_kwargs, cache, calls)
        self._concurrency = concurrency
        self._threads = threads
        self._order = itertools.count()
        self._waiting: list[tuple[int, int, Rollout, Instance]] = []  # a heap
        self._sent: dict[Future[Outcome], _Sent] = {}
        self._unkept: list[tuple[_Sent, Outcome]] = []  # answers that the cache does not have yet

    def outcomes(self, rollouts: Sequence[Rollout]) -> Outcomes:
        """Ask one turn more of each rollout. What has come is returned, of these and of those that
        were asked before; at least one outcome, unless none is asked."""
        known: list[tuple[Rollout, Outcome]] = []
        for rollout in rollouts:
            self.asked.add(rollout)
            key = self._request(rollout, None)
            answer = self._known(key)
            if answer is None:
                # The longest episodes first, as there are few in flight when the last ones end.
                heapq.heappush(
                    self._waiting, (-rollout.turns_left, next(self._order), rollout, key)
                )
            else:
                known.append((rollout, answer))
        self._fill()
        for rollout, outcome in known or self._arrived():
            self.asked.remove(rollout)
            yield rollout, outcome

    def _fill(self) -> None:
        while self._waiting and len(self._sent) < self._concurrency.allowed:
            _, _, rollout, key = heapq.heappop(self._waiting)
            future = self._threads.submit(self._ask, rollout)
            self._sent[future] = _Sent(rollout, key, time.monotonic())

    def _ask(self, rollout: Rollout) -> Outcome:
        """One turn of one rollout, in a thread of its own."""
        images = self._loader.images(rollout)
        if isinstance(images, Failure):
            return images
        request = self._request(rollout, Visuals({rollout: images}, chat=not self.is_simple))
        model = CheckedModel(self._lm, self._gen_kwargs, self._calls.before)
        try:
            model.generate_until([request])
            outcome = model.outcomes[id(request)]
        except ModelRaised as raised:
            assert isinstance(raised.__cause__, Exception)
            outcome = Failure(raised.__cause__)
        return with_cost(outcome, Cost(calls=1, seconds=model.seconds))

    def _arrived(self) -> list[tuple[Rollout, Outcome]]:
        """What has come, after waiting for it if need be; other requests take its place."""
        for future in self._wait():
            self._unkept.append((self._sent[future], future.result()))
            del self._sent[future]
        arrived = self._unkept
        for _, outcome in arrived:
            self.generations += outcome.cost.calls
            error = outcome.error if isinstance(outcome, Failure) else None
            self._concurrency.came_back(outcome.cost.seconds, error)
        self._fill()
        self._keep(arrived)
        self._unkept = []
        return [(sent.rollout, outcome) for sent, outcome in arrived]

    def _wait(self) -> Iterable[Future[Outcome]]:
        done: Iterable[Future[Outcome]] = ()
        while self._sent and not done:
            done, _ = wait(self._sent, timeout=self._calls.slow, return_when=FIRST_COMPLETED)
            self._say_what_is_slow()
        return done

    def _say_what_is_slow(self) -> None:
        now = time.monotonic()
        for sent in self._sent.values():
            if not sent.is_slow and now - sent.started > self._calls.slow:
                sent.is_slow = True
                say_slow([sent.rollout], self._calls.slow)

    # The response cache, which one thread alone may use: that of the run.

    def _known(self, key: Instance) -> Answer | None:
        """The answer that the cache holds."""
        if self._cache is None:
            return None
        try:
            (response,) = self._from_cache(_NotAsked(), [key])
        except _NotKept:
            self._cache._misses -= 1  # it is counted when the answer is kept
            return None
        return None if response is None else from_cache(response)

    def _keep(self, arrived: Sequence[tuple[_Sent, Outcome]]) -> None:
        if self._cache is not None and arrived:
            outcomes = {id(sent.key): outcome for sent, outcome in arrived}
            self._from_cache(_Answered(outcomes), [sent.key for sent, _ in arrived])

    def interrupted(self) -> None:
        """Wait for the answers to what was sent, which are paid for, and keep them."""
        if self._cache is None:
            return
        running = {future: sent for future, sent in self._sent.items() if not future.cancel()}
        logger.warning(
            f"waiting for {len(running)} answers that are on their way, to keep them; "
            "interrupt again to lose them"
        )
        came = [(running[f], f.result()) for f in wait(running).done if f.exception() is None]
        self._keep(self._unkept + came)
