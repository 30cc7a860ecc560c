"""Config: every ``PROACTIVEBENCH_*`` environment variable, read and checked in this one place.

    config.get().window          # checked when it is first asked for, at the start of a run
    config.cache_dir()

``proactivebench info`` shows the values, and the table in ``docs/configuration.md`` is made from
the fields below.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import platformdirs
from loguru import logger
from pydantic import BeforeValidator, Field, JsonValue, SecretStr, ValidationError
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
    """The judges there are."""

    OPENAI = "openai"  # any server that speaks the OpenAI chat protocol
    HF = "hf"  # transformers, in this process
    LEXICAL = "lexical"  # no model: stems and synonyms, comparable to nothing
    LATER = "later"  # none now: `proactivebench judge RESULTS_DIR` when one is at hand


@dataclass(frozen=True)
class Limit:
    """A number of things, or a share of them."""

    value: float
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
        """How many of ``count`` things the limit allows."""
        return self.value / 100 * count if self.is_share else self.value

    def __str__(self) -> str:
        return f"{self.value:g}{'%' if self.is_share else ''}"


def _variable(default: Any, what: str, expected: str, shown: str = "", **limits: Any) -> Any:
    """A field: what the variable is for, which values it takes, how its default reads."""
    extra: dict[str, JsonValue] = {"expected": expected, "shown": shown}
    return Field(default, description=what, json_schema_extra=extra, **limits)


class Config(BaseSettings):
    """What the environment says, over these defaults. An empty variable counts as not set."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore"
    )

    cache: Path | None = _variable(
        None,
        "folder for all that can be fetched or made again",
        "a folder",
        shown="the user's cache folder",
    )
    data_dir: Path | None = _variable(
        None,
        "folder of the official data: `*_preprocessed.jsonl`, archives or extracted images",
        "a folder",
        shown="`data` in the cache folder, then the hub",
    )
    offline: bool = _variable(
        False, "never fetch the published package (`HF_HUB_OFFLINE` says so, too)", "1 or 0"
    )
    frames_gb: float = _variable(
        5.0,
        "gigabytes of images kept that were read from the hub",
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
        "a number of seconds, above 0",
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
        OFFICIAL_JUDGE, "openai, hf: the published judge, or another", "a model's name"
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
    judge_batch_size: int = _variable(8, "hf: questions at once", "a whole number from 1 on", ge=1)
    judge_device: str = _variable(
        "", "hf: where the judge is loaded", "a device", shown="cuda if there is one"
    )

    @property
    def cache_folder(self) -> Path:
        """It may not exist yet."""
        if self.cache is not None:
            return self.cache.expanduser()
        return platformdirs.user_cache_path("proactivebench", appauthor=False)

    @property
    def data_folder(self) -> Path | None:
        """What ``PROACTIVEBENCH_DATA_DIR`` names; it may not be a folder, nor be there."""
        return self.data_dir.expanduser() if self.data_dir is not None else None


def get() -> Config:
    """The configuration as the environment is now.

    Raises ``ConfigError`` that names each variable at fault, its value, and what is expected. A
    variable with our prefix that is not known is warned of.
    """
    ours = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    return _read(tuple(sorted(ours.items())))


def cache_dir() -> Path:
    """The folder for all that can be fetched or made again. It may not exist yet."""
    return get().cache_folder


def variables() -> Mapping[str, FieldInfo]:
    """Every variable by its name, in the order of ``Config``."""
    return {f"{PREFIX}{name.upper()}": field for name, field in Config.model_fields.items()}


def default_of(field: FieldInfo) -> str:
    """A variable's default as documentation shows it."""
    shown = _extra(field, "shown")
    if shown:
        return shown
    if isinstance(field.default, bool):
        return str(int(field.default))
    return f"{field.default:g}" if isinstance(field.default, float) else str(field.default)


def documentation() -> str:
    """The table of all variables, in Markdown."""
    lines = ["| variable | default | what it is |", "|---|---|---|"]
    for name, field in variables().items():
        lines.append(f"| `{name}` | {default_of(field)} | {field.description} |")
    return "\n".join(lines) + "\n"


def values() -> Mapping[str, str]:
    """The variables that are set, with their values; a key is not shown."""
    secret = {name for name, field in variables().items() if field.annotation is SecretStr}
    return {
        name: "***" if name in secret or "@" in os.environ[name] else os.environ[name]
        for name in variables()
        if os.environ.get(name)
    }


@lru_cache(maxsize=8)
def _read(ours: tuple[tuple[str, str], ...]) -> Config:
    known = variables()
    for name, _ in ours:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            logger.warning(
                f"{name} is no variable of this package and changes nothing: {hint}"
                "`proactivebench info` lists them all"
            )
    try:
        return Config()
    except ValidationError as error:
        raise ConfigError("; ".join(map(_fault, error.errors(include_url=False)))) from None


def _fault(error: Any) -> str:
    name = f"{PREFIX}{str(error['loc'][0]).upper()}"
    return f"{name} is {error['input']!r:.80}; expected {_extra(variables()[name], 'expected')}"


def _extra(field: FieldInfo, key: str) -> str:
    extra = field.json_schema_extra
    assert isinstance(extra, dict)
    return str(extra[key])
