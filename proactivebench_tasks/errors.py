"""The errors of this package: one family, one type for each kind of cause.

Every message says what is wrong, where, and what to do about it. Code outside this package that
wants to catch "anything ProactiveBench has to complain about" catches ``ProactiveBenchError``.
"""

from __future__ import annotations

from pathlib import Path


class ProactiveBenchError(Exception):
    """Base of all errors that this package raises on purpose."""


class ConfigError(ProactiveBenchError):
    """An environment variable ``PROACTIVEBENCH_*`` holds what it cannot hold."""


class DataError(ProactiveBenchError):
    """The benchmark's data (a folder, a jsonl row, an image) is missing or malformed."""


class LineError(DataError):
    """A line of a file is malformed. ``line`` is its number, from 1."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(path, line, reason)
        self.path = path
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}: {self.reason}"


class ProtocolError(ProactiveBenchError):
    """The official wording and id lists cannot be had, or are not the ones expected."""


class RecordError(ProactiveBenchError, ValueError):
    """A text is no record of a sample, or not of the sample that it should be of."""


class HarnessError(ProactiveBenchError):
    """The installed lmms-eval, or a model wrapper in it, does not do what this plugin needs."""


class GenerationError(ProactiveBenchError):
    """A model wrapper returned something that is no answer."""


class JudgeError(ProactiveBenchError):
    """There is no judge for open-ended answers, or it cannot be reached or loaded."""
