"""JudgeSettings: which judge marks open-ended answers, and how it is reached.

One place reads the environment, and one error says what is missing from it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from proactivebench_tasks.errors import JudgeError

PREFIX = "PROACTIVEBENCH_JUDGE"
OFFICIAL_MODEL = "Qwen/Qwen3-8B"
#: The published evaluation's limit on what the judge writes, thinking included.
OFFICIAL_MAX_TOKENS = 2**15


class Kind(str, Enum):
    """The judges there are."""

    OPENAI = "openai"  # any server that speaks the OpenAI chat protocol
    HF = "hf"  # transformers, in this process
    LEXICAL = "lexical"  # no model: stems and synonyms, comparable to nothing
    LATER = "later"  # none now: `proactivebench judge RESULTS_DIR` when one is at hand


@dataclass(frozen=True)
class JudgeSettings:
    """What the environment says, over what the task says, over these defaults."""

    kind: Kind
    model: str = OFFICIAL_MODEL
    url: str = ""
    key: str = field(default="", repr=False)
    #: Requests under way at once.
    concurrency: int = 32
    #: Seconds that a server may stay silent.
    timeout: float = 600.0
    #: How often a request is sent again before its question stays without a verdict.
    retries: int = 6
    #: ``None``: the server's own limit; for ``hf``, the published evaluation's.
    max_tokens: int | None = None
    batch_size: int = 8
    device: str = ""

    @classmethod
    def resolve(cls, kind: str, env: Mapping[str, str] = os.environ) -> JudgeSettings:
        """The settings for a task whose YAML asks for ``kind`` (may be empty).

        Raises ``JudgeError`` when there is no judge, or a variable holds no such value.
        """
        named = env.get(PREFIX) or kind
        if not named:
            raise JudgeError(
                "open-ended answers need a judge, and none is configured. Set one of\n"
                f"  {PREFIX}=openai {PREFIX}_URL=http://HOST:PORT/v1   a server, for instance of "
                f"`vllm serve {OFFICIAL_MODEL}`\n"
                f"  {PREFIX}=hf        transformers in this process, after the model is freed\n"
                f"  {PREFIX}=later     none now; judge with `proactivebench judge RESULTS_DIR`\n"
                f"  {PREFIX}=lexical   no model, for smoke tests only: comparable to nothing\n"
                "(README, Judge)"
            )
        if named not in {k.value for k in Kind}:
            raise JudgeError(
                f"{PREFIX} is {named!r}; expected one of {', '.join(k.value for k in Kind)}"
            )
        url, key = _server(env)
        settings = cls(
            kind=Kind(named),
            model=env.get(f"{PREFIX}_MODEL") or cls.model,
            url=url,
            key=key,
            concurrency=_whole(env, "CONCURRENCY", cls.concurrency),
            timeout=_seconds(env, "TIMEOUT", cls.timeout),
            retries=_whole(env, "RETRIES", cls.retries, least=0),
            max_tokens=_whole(env, "MAX_TOKENS", 0) or None,
            batch_size=_whole(env, "BATCH_SIZE", cls.batch_size),
            device=env.get(f"{PREFIX}_DEVICE", ""),
        )
        if settings.kind is Kind.OPENAI:
            _check_url(url)
        return settings

    def redact(self, text: str) -> str:
        """``text``, for instance a server's complaint, without the key."""
        return text.replace(self.key, "***") if self.key else text


def _server(env: Mapping[str, str]) -> tuple[str, str]:
    """URL and key. They go together: a key is never sent to a server that it was not set for."""
    if url := env.get(f"{PREFIX}_URL", ""):
        return url, env.get(f"{PREFIX}_KEY", "")
    key = env.get(f"{PREFIX}_KEY") or env.get("OPENAI_API_KEY", "")
    return env.get("OPENAI_BASE_URL", ""), key


def _check_url(url: str) -> None:
    if not url:
        raise JudgeError(
            f"{PREFIX} is openai, but there is no server: set {PREFIX}_URL (or OPENAI_BASE_URL) to "
            "its address, such as http://127.0.0.1:8000/v1"
        )
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise JudgeError(f"{PREFIX}_URL is {url!r:.60}; expected http(s)://HOST[:PORT]/v1")
    if parts.username or parts.password or parts.query:
        # Not shown: it may hold a secret, and so would every message of the client that names it.
        raise JudgeError(
            f"{PREFIX}_URL holds a user or a query; expected http(s)://HOST[:PORT]/v1 alone, and "
            f"the key in {PREFIX}_KEY"
        )


def _whole(env: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = env.get(f"{PREFIX}_{name}", "")
    if text and (not text.isdecimal() or int(text) < least):
        raise JudgeError(f"{PREFIX}_{name} is {text!r}; expected a whole number from {least} on")
    return int(text) if text else default


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(f"{PREFIX}_{name}", "")
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise JudgeError(f"{PREFIX}_{name} is {text!r}; expected a number of seconds above 0")
    return seconds
