"""Lockstep: ranks that must call their model together do so, however much work each has.

With FSDP a model is spread over the ranks, and a call on one waits for a call on all. Ranks play
different episodes, so they make different numbers of calls: each says before a call that it makes
one, and a rank without work answers with an empty one until no rank has any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loguru import logger

from proactivebench_tasks import config


class Lockstep:
    """Does nothing unless ``needed``."""

    def __init__(self, needed: bool) -> None:
        self.needed = needed

    def call(self) -> None:
        """Say that this rank calls its model now; all ranks do the same."""
        if self.needed:
            _any_rank(True)

    def drain(self, empty_call: Callable[[], object]) -> None:
        """This rank has no more work: call along until no rank has."""
        while self.needed and _any_rank(False):
            try:
                empty_call()
            except Exception as error:  # nothing depends on it
                logger.debug(f"an empty call, made to keep ranks in step, failed: {error!r}")


def of(lm: Any) -> Lockstep:
    """The lockstep that a wrapper needs: with several ranks, FSDP or DeepSpeed, or where
    ``PROACTIVEBENCH_LOCKSTEP`` says so, for a wrapper that is not recognised."""
    if getattr(lm, "world_size", 1) < 2:
        return Lockstep(False)
    kind = str(getattr(getattr(lm, "accelerator", None), "distributed_type", ""))
    spread = any(name in kind.upper() for name in ("FSDP", "DEEPSPEED"))
    return Lockstep(spread or config.get().lockstep)


def _any_rank(busy: bool) -> bool:
    from torch import distributed

    said: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(said, busy)
    return any(said)
