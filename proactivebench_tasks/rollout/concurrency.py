"""Concurrency: how many requests a wrapper that talks to a server may have in flight at once."""

from __future__ import annotations

from typing import Any

from lmms_eval.models.model_utils.concurrency_control import (
    decide_next_concurrency,
    is_rate_limit_error,
)
from loguru import logger

#: Requests that came back since the last decision, at least so many, before there is another.
_FEWEST = 4


class Concurrency:
    """``allowed`` requests may be in flight now, ``most`` at any time.

    They are the same unless the wrapper is told to adapt (``adaptive_concurrency=True``). Then
    lmms-eval's own rule decides, from latencies and failures, as it does inside of one call.
    """

    def __init__(self, allowed: int, adaptive: Any = None) -> None:
        self._adaptive = adaptive
        self.allowed = min(allowed, adaptive.max_concurrency) if adaptive else allowed
        self.most: int = max(self.allowed, adaptive.max_concurrency) if adaptive else allowed
        self._latencies: list[float] = []
        self._failed = 0
        self._rate_limited = 0

    def came_back(self, seconds: float, error: Exception | None) -> None:
        """A request was answered after so many seconds, or failed."""
        if self._adaptive is None:
            return
        self._latencies.append(seconds)
        self._failed += error is not None
        self._rate_limited += error is not None and is_rate_limit_error(str(error))
        if len(self._latencies) >= max(_FEWEST, self.allowed):
            self._decide()

    def _decide(self) -> None:
        decision = decide_next_concurrency(
            current_concurrency=self.allowed,
            total_requests=len(self._latencies),
            failed_requests=self._failed,
            rate_limited_requests=self._rate_limited,
            latencies=self._latencies,
            config=self._adaptive,
        )
        if decision.next_concurrency != self.allowed:
            logger.info(f"{decision.next_concurrency} requests at once from here on")
        self.allowed = decision.next_concurrency
        self._latencies.clear()
        self._failed = self._rate_limited = 0


def of(lm: Any) -> Concurrency | None:
    """What a wrapper allows; ``None`` for one that does not send requests to a server.

    Known by lmms-eval's settings for adaptive concurrency, which the wrappers of servers have
    (openai, async_openai, litellm, gemini): the number is ``num_concurrent``, or ``num_cpus``.
    """
    adaptive = getattr(lm, "adaptive_config", None)
    allowed = getattr(lm, "num_concurrent", None) or getattr(lm, "num_cpus", None)
    if adaptive is None or not allowed:
        return None
    return Concurrency(int(allowed), adaptive if lm.adaptive_concurrency else None)
