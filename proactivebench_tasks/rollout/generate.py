"""Caller: one turn of many plays through a model wrapper, so that a failure harms no other sample.

A call that raises is split in halves, down to the sample at fault. What came of each play is data:
its text, or the error that ends it.
"""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import json
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lmms_eval.api.instance import Instance, unwrap_generation_output
from lmms_eval.caching.response_cache import is_deterministic
from loguru import logger

from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.rollout.checked_model import Guard, Reply
from proactivebench_tasks.rollout.rollout import Play
from proactivebench_tasks.rollout.visuals import Screen

#: Seconds that a call may take before the log says which samples are in it; 600 by default.
SLOW_CALL = "PROACTIVEBENCH_SLOW_CALL"

Outcome = tuple[Play, "str | Exception"]


class Caller:
    """``batch`` is the wrapper's batch size; ``in_step`` is called before each of its calls."""

    def __init__(
        self,
        lm: Any,
        gen_kwargs: Mapping[str, Any],
        cache: Any,
        batch: int,
        in_step: Callable[[], object] = lambda: None,
    ) -> None:
        self._lm = lm
        self.gen_kwargs = gen_kwargs
        self._cache = cache
        self._batch = batch
        self._in_step = in_step
        self._slow_call = _slow_call()
        self.called = 0  # answers that came from the wrapper, not from the cache
        self._most = sys.maxsize  # requests in one call; less once memory ran out
        self.simple: bool = getattr(lm, "is_simple", True)
        self.greedy = is_deterministic("generate_until", dict(gen_kwargs))

    def ask(self, plays: Sequence[Play], screen: Screen) -> list[Outcome]:
        """One turn of each play: its answer, or the error that ends it; in no certain order."""
        outcomes: list[Outcome] = []
        rest = list(plays)
        while rest:
            now, rest = rest[: self._most], rest[self._most :]
            outcomes += self._ask(now, screen)
        return outcomes

    def _ask(self, plays: list[Play], screen: Screen) -> list[Outcome]:
        try:
            replies = self._replies(plays, screen)
        except Exception as error:
            return self._without_fault(plays, screen, error)
        # A picture failed and the wrapper carried on: empty answers of this call may be its doing.
        marred = any(play.error is not None for play in plays)
        outcomes: list[Outcome] = []
        again: list[Play] = []
        for play, reply in zip(plays, replies, strict=True):
            play.tokens.update(reply.counts.to_dict() if reply.counts else {})
            if play.error is not None:
                outcomes.append((play, play.error))
            elif marred and isinstance(reply.output, str) and not reply.output.strip():
                again.append(play)
            else:
                outcomes.append((play, reply.output))
        return outcomes + (self.ask(again, screen) if again else [])

    def _without_fault(self, plays: list[Play], screen: Screen, error: Exception) -> list[Outcome]:
        """Go on after a call that raised."""
        outcomes: list[Outcome] = [(p, p.error) for p in plays if p.error is not None]
        rest = [play for play in plays if play.error is None]
        if outcomes:
            return outcomes + (self.ask(rest, screen) if rest else [])
        if len(plays) == 1:
            return [(plays[0], error)]
        if _out_of_memory(error):
            self._shrink(len(plays))
            return self.ask(plays, screen)
        half = len(plays) // 2
        return self._ask(plays[:half], screen) + self._ask(plays[half:], screen)

    def _shrink(self, tried: int) -> None:
        self._most = max(1, min(tried, self._batch) // 2)
        logger.warning(
            f"out of memory with {tried} requests in a call: going on with {self._most} at a time; "
            f"a smaller --batch_size would have been faster"
        )
        gc.collect()
        if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _replies(self, plays: list[Play], screen: Screen) -> list[Reply]:
        screen.show(plays)
        with _watched(plays, self._slow_call):
            return self._sent([self._request(play, screen) for play in plays])

    def _sent(self, requests: list[Instance]) -> list[Reply]:
        guard = Guard(self._lm, self.gen_kwargs, self._in_step)
        cached: list[Any] = [None] * len(requests)
        if self._cache is not None:
            try:
                cached = self._cache.execute(guard, "generate_until", requests)
            except (sqlite3.Error, OSError) as error:
                if guard.raised:  # the wrapper's, not the cache's
                    raise
                logger.error(
                    f"the response cache failed and is used no more in this run ({error!r}): "
                    "answers from here on are not kept; check its disk"
                )
                self._cache = None
        missing = [
            request
            for request, response in zip(requests, cached, strict=True)
            if response is None and id(request) not in guard.replies
        ]
        if missing:
            guard.generate_until(missing)
        self.called += len(guard.replies)
        return [
            guard.replies.get(id(request)) or Reply(*unwrap_generation_output(response))
            for request, response in zip(requests, cached, strict=True)
        ]

    def _request(self, play: Play, screen: Screen) -> Instance:
        _, _, _, _, doc_id, task, split = play.request.args
        # The empty mapping stands for the generation arguments: see Guard.
        head = (play.text, {}, screen) if self.simple else (play.text, screen, {})
        return Instance(
            request_type="generate_until",
            arguments=(*head, doc_id, task, split),
            idx=self._turn_key(play),
            metadata=dict(play.request.metadata),
        )

    def _turn_key(self, play: Play) -> int:
        """Tells turns apart in the response cache, whose key has the text of a turn but neither
        picture, history nor (here) generation arguments: 63 bits of a digest of these.

        A sampled answer is kept like any other, so that a killed run resumes; repeats differ.
        """
        parts = [
            play.episode.protocol.version,
            [dataclasses.asdict(exchange) for exchange in play.conversation],
            [turn.answer for turn in play.episode.turns],
            play.setting.short_edge,
            dict(self.gen_kwargs),
            0 if self.greedy else play.repeat,
        ]
        text = json.dumps(parts, sort_keys=True, default=str)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _slow_call() -> float:
    value = os.environ.get(SLOW_CALL) or "600"
    try:
        if 0 < (seconds := float(value)) <= threading.TIMEOUT_MAX:
            return seconds
    except ValueError:
        pass
    raise HarnessError(f"{SLOW_CALL} is {value!r}; expected a number of seconds, above 0")


@contextmanager
def _watched(plays: Sequence[Play], limit: float) -> Iterator[None]:
    """Say which samples are in a call that takes over ``limit`` seconds. Whether it hangs is for
    the user to tell."""

    def warn() -> None:
        names = ", ".join(str(play.episode.sample.id) for play in plays)
        logger.warning(
            f"a call of the model has taken over {limit:.0f} s; in it are these samples of "
            f"{plays[0].episode.dataset.value}: {names}"
        )

    timer = threading.Timer(limit, warn)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _out_of_memory(error: Exception) -> bool:
    return "OutOfMemory" in type(error).__name__ or "out of memory" in str(error).lower()
