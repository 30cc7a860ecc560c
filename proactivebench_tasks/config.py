"""Config: every ``PROACTIVEBENCH_*`` environment variable, read and checked in this one place.

    config.get().window
    config.cache_dir()

``get`` checks all variables at once, whichever is asked for, so that a run with a bad value ends
before it has done anything. To add a variable, add a field to ``Config``: ``proactivebench info``
shows it, and ``docs/make_configuration.py`` writes it into the documentation's table.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

import platformdirs
from loguru import logger
from pydantic import (
    AfterValidator,
    AliasGenerator,
    BeforeValidator,
    Field,
    JsonValue,
    SecretStr,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict

from proactivebench_tasks.errors import ConfigError

PREFIX = "PROACTIVEBENCH_"
CACHE = f"{PREFIX}CACHE"
DATA_DIR = f"{PREFIX}DATA_DIR"
MAX_FAILED = f"{PREFIX}MAX_FAILED"
JUDGE = f"{PREFIX}JUDGE"

#: The judge of the published evaluation.
OFFICIAL_JUDGE = "Qwen/Qwen3-8B"


class JudgeKind(str, Enum):
    """The kinds of judge."""

    OPENAI = "openai"  # any server that speaks the OpenAI chat protocol
    HF = "hf"  # transformers, in this process
    LEXICAL = "lexical"  # no model: stems and synonyms, comparable to nothing
    LATER = "later"  # no judge in the run; `proactivebench judge RESULTS_DIR` judges afterwards


@dataclass(frozen=True)
class Limit:
    """How many of some things are allowed: a number of them, or a share of all."""

    value: float  # the number, or the share in percent
    is_share: bool = False

    @classmethod
    def parse(cls, text: object) -> Limit:
        """``20`` or ``5%``; ``ValueError`` for anything else."""
        text = str(text).strip()
        value = float(text.removesuffix("%"))
        if not 0 <= value < float("inf"):
            raise ValueError(text)
        return cls(value, is_share=text.endswith("%"))

    def of(self, count: int) -> float:
        """How many things are allowed if there are ``count`` in all."""
        return self.value / 100 * count if self.is_share else self.value

    def __str__(self) -> str:
        return f"{self.value:g}{'%' if self.is_share else ''}"


def _home_expanded(path: Path) -> Path:
    """The path with ``~`` replaced; ``ValueError`` if there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(str(error)) from error


Folder = Annotated[Path, AfterValidator(_home_expanded)]


def _variable(default: Any, what: str, expected: str, shown: str = "", **limits: Any) -> Any:
    """A field of ``Config``.

    ``what`` says what the variable is for, ``expected`` which values it takes, to follow
    "expected" in a message, and ``shown`` how documentation shows the default if not as it is.
    """
    extra: dict[str, JsonValue] = {"expected": expected, "shown": shown}
    return Field(default, description=what, json_schema_extra=extra, **limits)


def _name(field: str) -> str:
    """The variable that sets a field of ``Config``."""
    return f"{PREFIX}{field.upper()}"


class Config(BaseSettings):
    """The variables, as the environment sets them. An empty variable counts as not set."""

    model_config = SettingsConfigDict(
        alias_generator=AliasGenerator(validation_alias=_name),
        case_sensitive=True,  # `proactivebench_window` is another variable, on most systems
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
    )

    cache: Folder | None = _variable(
        None,
        "folder for all that can be fetched or made again",
        "a folder",
        shown="the user's cache folder",
    )
    data_dir: Folder | None = _variable(
        None,
        "folder of the official data: `*_preprocessed.jsonl`, archives or extracted images",
        "a folder",
        shown="`data` in the cache folder, then the hub",
    )
    offline: bool = _variable(
        False,
        "never fetch the published package; the hub may still be read, which `HF_HUB_OFFLINE` "
        "forbids, too",
        "1 or 0",
    )
    frames_gb: float = _variable(
        5.0,
        "gigabytes that images read from the hub may take in the cache folder",
        "a number of gigabytes, 0 or more",
        ge=0,
        allow_inf_nan=False,
    )
    window: int | None = _variable(
        None,
        "unfinished episodes kept in play",
        "a number of episodes, 1 or more",
        shown="8 batches, at least 64",
        ge=1,
    )
    max_failed: Annotated[Limit, BeforeValidator(Limit.parse)] | None = _variable(
        None,
        "how many of a task's samples may fail before the run stops: a number (20) or a share (5%)",
        "a number of samples (20) or a share (5%)",
        shown="all of them",
    )
    slow_call: float = _variable(
        600.0,
        "seconds that a call of the model may take before the log says which samples are in it",
        "a number of seconds above 0, at most 1,000,000",
        gt=0,
        le=1_000_000,
    )
    lockstep: bool = _variable(
        False,
        "ranks call the model together, for a wrapper that needs it and is not recognised",
        "1 or 0",
    )
    judge: JudgeKind | None = _variable(
        None,
        "kind of judge: `openai`, `hf`, `lexical` or `later`",
        f"one of {', '.join(kind.value for kind in JudgeKind)}",
        shown="the task's `judge`",
    )
    judge_model: str = _variable(
        OFFICIAL_JUDGE,
        "openai, hf: the model that judges; the published evaluation's is the default",
        "a model's name",
    )
    judge_url: str = _variable(
        "",
        "openai: address of the server",
        "http(s)://HOST[:PORT]/v1",
        shown="`OPENAI_BASE_URL`",
    )
    judge_key: SecretStr = _variable(
        SecretStr(""),
        "openai: sent to that server, and shown nowhere",
        "a key",
        shown="`OPENAI_API_KEY`, with its `OPENAI_BASE_URL` only",
    )
    judge_concurrency: int = _variable(
        32, "openai: requests at once", "a whole number from 1 on", ge=1
    )
    judge_timeout: float = _variable(
        600.0,
        "openai: seconds that a server may stay silent",
        "a number of seconds above 0",
        gt=0,
        allow_inf_nan=False,
    )
    judge_retries: int = _variable(
        6,
        "openai: how often a request is sent again, on 408, 409, 429, 5xx, timeouts and dropped "
        "connections; Retry-After is honoured up to two minutes",
        "a whole number from 0 on",
        ge=0,
    )
    judge_max_tokens: int | None = _variable(
        None,
        "openai, hf: limit on a reply, thinking included",
        "a whole number from 1 on",
        shown="openai: the server's; hf: 32768",
        ge=1,
    )
    judge_official_parsing: bool = _variable(
        False,
        "score any text of a judge, such as one that was cut off, as the published script does",
        "1 or 0",
    )
    judge_batch_size: int = _variable(8, "hf: questions at once", "a whole number from 1 on", ge=1)
    judge_device: str = _variable(
        "", "hf: where the judge is loaded", "a device", shown="cuda if there is one"
    )

    @property
    def cache_folder(self) -> Path:
        """The folder for all that can be fetched or made again. It may not exist yet."""
        return self.cache or platformdirs.user_cache_path("proactivebench", appauthor=False)


def get() -> Config:
    """The configuration as the environment is now.

    Raises ``ConfigError``, which names each variable at fault, its value, and what is expected. A
    variable that has our prefix and is none of ours, such as a misspelt one, is warned of once.
    """
    ours = {name: value for name, value in os.environ.items() if name.upper().startswith(PREFIX)}
    for name in ours.keys() - variables().keys():
        _warn_of_unknown(name)
    return _read(tuple(sorted(ours.items())))


def cache_dir() -> Path:
    """The folder for all that can be fetched or made again. It may not exist yet."""
    return get().cache_folder


def unwritable(error: OSError) -> str:
    """What keeps the cache folder from being written, and what to do, to follow "cannot be
    written: "."""
    return (
        f"{error}. Set {CACHE} to a folder that can be written to, and HF_HOME to another if the "
        "home folder as a whole cannot be"
    )


def variables() -> Mapping[str, FieldInfo]:
    """The field of every variable by the variable's name, in the order of ``Config``."""
    return {_name(name): field for name, field in Config.model_fields.items()}


def default_of(field: FieldInfo) -> str:
    """A variable's default as documentation shows it."""
    shown = _extra(field, "shown")
    if shown:
        return shown
    if isinstance(field.default, bool):
        return str(int(field.default))
    return f"{field.default:g}" if isinstance(field.default, float) else str(field.default)


def documentation() -> str:
    """A table of all variables, in Markdown: name, default, and what the variable is for."""
    lines = ["| variable | default | what it is |", "|---|---|---|"]
    for name, field in variables().items():
        lines.append(f"| `{name}` | {default_of(field)} | {field.description} |")
    return "\n".join(lines) + "\n"


def values() -> Mapping[str, str]:
    """The variables that are set, with their values as they may be shown to anyone."""
    return {name: _shown(name, os.environ[name]) for name in variables() if os.environ.get(name)}


@cache
def _warn_of_unknown(name: str) -> None:
    known = {each.removeprefix(PREFIX): each for each in variables()}  # all begin alike
    near = difflib.get_close_matches(name.upper().removeprefix(PREFIX), known, n=1)
    hint = f"did you mean {known[near[0]]}? " if near else ""
    logger.warning(
        f"{name} is no variable of this package and changes nothing: {hint}"
        "`proactivebench info` lists them all"
    )


@lru_cache(maxsize=8)
def _read(ours: tuple[tuple[str, str], ...]) -> Config:
    """The configuration. ``ours`` is the part of the environment that it is read from, so that
    another environment gives another configuration."""
    try:
        return Config()
    except ValidationError as error:
        raise ConfigError("; ".join(map(_fault, error.errors(include_url=False)))) from None


def _fault(error: Any) -> str:
    """What is wrong with a variable, of one of pydantic's errors."""
    name, value = str(error["loc"][0]), str(error["input"])
    expected = _extra(variables()[name], "expected")
    return f"{name} is {_shown(name, value)!r:.80}; expected {expected}"


def _shown(name: str, value: str) -> str:
    """A variable's value; ``***`` if it is a key, or looks like an address that has a password or a
    key in it (``http://me:password@host``, ``http://host?key=...``)."""
    is_key = variables()[name].annotation is SecretStr
    has_secret = "@" in value or ("?" in value and "=" in value)
    return "***" if is_key or has_secret else value


def _extra(field: FieldInfo, key: str) -> str:
    """What ``_variable`` was told: ``expected`` or ``shown``."""
    extra = field.json_schema_extra
    assert isinstance(extra, dict)
    return str(extra[key])
