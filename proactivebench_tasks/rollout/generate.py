"""Generator: one turn of many rollouts through a model wrapper, so that no failure harms another.

A call that raises is split in halves, down to the sample at fault. What comes of each rollout is
returned: its answer, or the failure that ends it.
"""

from __future__ import annotations

import gc
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.caching.response_cache import is_deterministic
from loguru import logger

from proactivebench_tasks.rollout.checked_model import CheckedModel, ModelRaised, from_cache
from proactivebench_tasks.rollout.request import EpisodeRequest
from proactivebench_tasks.rollout.rollout import Failure, Outcome, Rollout
from proactivebench_tasks.rollout.visuals import Visuals, VisualsLoader
from proactivebench_tasks.transcripts.answer import Cost

Outcomes = Iterator[tuple[Rollout, Outcome]]


@dataclass(frozen=True)
class Calls:
    """How calls of the wrapper are made: what is called before each, after how many seconds the
    log says which samples are in it, and what decodes its images."""

    before: Callable[[], object]
    slow: float
    decoders: Executor


class Generator:
    """Makes the calls of one task. ``batch`` is the wrapper's batch size."""

    def __init__(
        self,
        lm: Any,
        gen_kwargs: Mapping[str, Any],
        cache: Any,
        calls: Calls,
        batch: int = 1,
    ) -> None:
        self._lm = lm
        self._gen_kwargs = gen_kwargs
        self._cache = cache
        #: How many requests make a whole batch.
        self.batch = batch
        self._calls = calls
        self.is_simple: bool = getattr(lm, "is_simple", True)
        #: Whether an equal request gets an equal answer, as far as the arguments decide it.
        self.is_greedy = is_deterministic("generate_until", dict(gen_kwargs))
        #: Rollouts whose turn is being asked while this generator is not at work.
        self.asked: set[Rollout] = set()
        #: Requests that the wrapper was given, failed calls included.
        self.generations = 0
        self._most = sys.maxsize  # requests in one call; less once memory ran out
        looks = getattr(lm, "needs_images", True)
        self._loader = VisualsLoader(calls.decoders, batch, chat=not self.is_simple, look=looks)

    def outcomes(self, rollouts: Sequence[Rollout]) -> Outcomes:
        """One turn of each rollout; what came of it, in no certain order.

        All images are decoded, and so proven, before a call is made.
        """
        for piece in self._loader.pieces(rollouts):
            yield from piece.failures.items()
            spent: dict[Rollout, Cost] = {}
            rest = list(piece.rollouts)
            while rest:
                now, rest = rest[: self._most], rest[self._most :]
                for rollout, outcome in self._call(now, piece.visuals, spent):
                    yield rollout, with_cost(outcome, spent.get(rollout, Cost()))

    def interrupted(self) -> None:
        """The run ends before what is being asked was answered."""

    def empty_call(self, rollout: Rollout) -> None:
        """A call of the wrapper whose answer nobody reads. Other ranks are not told of it."""
        for piece in self._loader.pieces([rollout]):
            requests = [self._request(each, piece.visuals) for each in piece.rollouts]
            CheckedModel(self._lm, self._gen_kwargs, lambda: None).generate_until(requests)

    def _call(
        self, rollouts: list[Rollout], visuals: Visuals, spent: dict[Rollout, Cost]
    ) -> Outcomes:
        """One call, or, if it fails, several. What they cost is added to ``spent``."""
        requests = [self._request(rollout, visuals) for rollout in rollouts]
        model = CheckedModel(self._lm, self._gen_kwargs, self._calls.before)
        try:
            with _watched(rollouts, self._calls.slow):
                outcomes = self._send(model, requests)
        except Exception as error:
            self._note(rollouts, requests, model, spent)
            yield from self._isolated(rollouts, visuals, error, spent)
        else:
            self._note(rollouts, requests, model, spent)
            yield from zip(rollouts, outcomes, strict=True)

    def _note(
        self,
        rollouts: list[Rollout],
        requests: list[Instance],
        model: CheckedModel,
        spent: dict[Rollout, Cost],
    ) -> None:
        """Add what a call cost: to each rollout in it the same share of the seconds."""
        self.generations += len(model.sent)
        for rollout, request in zip(rollouts, requests, strict=True):
            if id(request) in model.sent:
                before = spent.get(rollout, Cost())
                spent[rollout] = Cost(
                    calls=before.calls + 1,
                    seconds=before.seconds + model.seconds / len(model.sent),
                )

    def _isolated(
        self,
        rollouts: list[Rollout],
        visuals: Visuals,
        error: Exception,
        spent: dict[Rollout, Cost],
    ) -> Outcomes:
        """Go on after a call that raised."""
        if len(rollouts) == 1:
            yield rollouts[0], Failure(error)
        elif _is_out_of_memory(error):
            self._shrink(len(rollouts))
            for start in range(0, len(rollouts), self._most):
                yield from self._call(rollouts[start : start + self._most], visuals, spent)
        else:
            half = len(rollouts) // 2
            yield from self._call(rollouts[:half], visuals, spent)
            yield from self._call(rollouts[half:], visuals, spent)

    def _shrink(self, tried: int) -> None:
        self._most = max(1, min(tried, self.batch) // 2)
        logger.warning(
            f"out of memory with {tried} requests in a call: going on with {self._most} at a time; "
            f"a smaller --batch_size would have been faster"
        )
        gc.collect()
        if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _send(self, model: CheckedModel, requests: list[Instance]) -> list[Outcome]:
        """The outcome of each request, by way of the response cache if there is one. Raises what
        the wrapper raises."""
        cached: list[Any] = [None] * len(requests)
        try:
            if self._cache is not None:
                cached = self._from_cache(model, requests)
            missing = [
                request
                for request, response in zip(requests, cached, strict=True)
                if response is None and id(request) not in model.outcomes
            ]
            if missing:
                model.generate_until(missing)
        except ModelRaised as raised:
            assert isinstance(raised.__cause__, Exception)
            raise raised.__cause__ from None
        return [
            model.outcomes.get(id(request)) or from_cache(response)
            for request, response in zip(requests, cached, strict=True)
        ]

    def _from_cache(self, model: Any, requests: list[Instance]) -> list[Any]:
        """What the cache returns, the model's answers among it; ``None`` for each if it fails."""
        try:
            return list(self._cache.execute(model, "generate_until", requests))
        except (sqlite3.Error, OSError) as error:
            logger.error(
                f"the response cache failed and is used no more in this run ({error!r}): "
                "answers from here on are not kept; check its disk"
            )
            self._cache = None
            return [None] * len(requests)

    def _request(self, rollout: Rollout, visuals: Visuals | None) -> Instance:
        asked = EpisodeRequest.of(rollout.request)
        # The empty mapping stands for the generation arguments: see CheckedModel.
        head: tuple[Any, ...]
        head = (rollout.text, {}, visuals) if self.is_simple else (rollout.text, visuals, {})
        return Instance(
            request_type="generate_until",
            arguments=(*head, asked.doc_id, asked.task, asked.split),
            idx=rollout.turn_id(self._gen_kwargs, sampled=not self.is_greedy),
            metadata=dict(rollout.request.metadata),
        )


def with_cost(outcome: Outcome, spent: Cost) -> Outcome:
    """An outcome with the calls and seconds that it took; the tokens stay."""
    seconds = round(spent.seconds, 4)
    cost = Cost(calls=spent.calls, seconds=seconds, tokens=outcome.cost.tokens)
    return replace(outcome, cost=cost)


@contextmanager
def _watched(rollouts: Sequence[Rollout], limit: float) -> Iterator[None]:
    """Say which samples are in a call that takes over ``limit`` seconds. Whether it hangs is for
    the user to tell."""

    timer = threading.Timer(limit, say_slow, [rollouts, limit])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def say_slow(rollouts: Sequence[Rollout], limit: float) -> None:
    """Say that a call with these rollouts has taken over ``limit`` seconds."""
    names = ", ".join(str(rollout.episode.sample.id) for rollout in rollouts)
    logger.warning(
        f"a call of the model has taken over {limit:.0f} s; in it are these samples of "
        f"{rollouts[0].episode.dataset.value}: {names}"
    )


def _is_out_of_memory(error: Exception) -> bool:
    return "OutOfMemory" in type(error).__name__ or "out of memory" in str(error).lower()
