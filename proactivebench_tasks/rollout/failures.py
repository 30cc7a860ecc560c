"""FailurePolicy: what ends a run, and what only counts.

A sample that fails is recorded and counted, and the run goes on, but for two cases: nothing works
at all, so that going on is a night in vain; or more fail than the user allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from proactivebench_tasks.config import MAX_FAILED, Limit
from proactivebench_tasks.errors import HarnessError


class EndOfRun(Enum):
    """Why a run ends before all is played."""

    NOTHING_WORKS = "nothing works"
    TOO_MANY_FAILED = "more samples failed than are allowed"


@dataclass(frozen=True)
class Standing:
    """How a run fares over all its tasks, and in the task that is being played."""

    episodes: int = 0
    answers: int = 0
    failed: int = 0
    task_episodes: int = 0
    task_failed: int = 0


@dataclass(frozen=True)
class FailurePolicy:
    """``allowed``: how many of a task's samples may fail, all of them if ``None``. ``patience``:
    samples that may fail before there was any answer. ``is_alone``: no other rank plays along."""

    allowed: Limit | None
    patience: int
    is_alone: bool = True

    def after_failure(self, standing: Standing) -> EndOfRun | None:
        """Whether one more failure ends the run."""
        if not standing.answers and standing.failed >= self.patience:
            return EndOfRun.NOTHING_WORKS
        if self.allowed and standing.task_failed > self.allowed.of(standing.task_episodes):
            return EndOfRun.TOO_MANY_FAILED
        return None

    def at_the_end(self, standing: Standing) -> EndOfRun | None:
        """Whether a run that was played to its end has failed as a whole. One rank of several may
        hold few samples, and does not end the run for the others."""
        all_failed = standing.failed == standing.episodes > 0
        return EndOfRun.NOTHING_WORKS if all_failed and self.is_alone else None


class Failures:
    """Keeps the standing of a run, and raises when the policy says that it ends."""

    def __init__(self, policy: FailurePolicy) -> None:
        self._policy = policy
        self._standing = Standing()
        self._first: Exception | None = None

    def start(self, episodes: int, *, new_task: bool) -> None:
        """So many more episodes are played, of the same task or of a new one."""
        now = self._standing
        if new_task:
            now = replace(now, task_episodes=0, task_failed=0)
        self._standing = replace(
            now,
            episodes=now.episodes + episodes,
            task_episodes=now.task_episodes + episodes,
        )

    def answered(self) -> None:
        """A model gave an answer."""
        self._standing = replace(self._standing, answers=self._standing.answers + 1)

    def failed(self, task: str, error: Exception) -> None:
        """A sample failed. Raises the run's first error if nothing works, ``HarnessError`` if too
        many failed."""
        self._first = self._first or error
        now = self._standing
        self._standing = now = replace(now, failed=now.failed + 1, task_failed=now.task_failed + 1)
        reason = self._policy.after_failure(now)
        if reason is EndOfRun.NOTHING_WORKS:
            raise self._first
        if reason is EndOfRun.TOO_MANY_FAILED:
            raise HarnessError(
                f"{task}: {now.task_failed} of {now.task_episodes} samples failed, more than "
                f"{MAX_FAILED} allows; the last: {error}"
            ) from error

    def end(self) -> None:
        """All was played. Raises the run's first error if every sample failed."""
        if self._policy.at_the_end(self._standing) and self._first is not None:
            raise self._first
