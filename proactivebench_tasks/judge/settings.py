"""JudgeSettings: which judge marks open-ended answers, and how it is reached."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from proactivebench_tasks import config
from proactivebench_tasks.config import JUDGE, OFFICIAL_JUDGE, Config, JudgeKind
from proactivebench_tasks.errors import JudgeError

#: The published evaluation's limit on what the judge writes, thinking included.
OFFICIAL_MAX_TOKENS = 2**15


def _default(name: str) -> Any:
    """The default of a ``PROACTIVEBENCH_JUDGE_*`` variable."""
    return Config.model_fields[f"judge_{name}"].default


@dataclass(frozen=True)
class JudgeSettings:
    """What the environment says, over what the task says, over these defaults."""

    kind: JudgeKind
    model: str = OFFICIAL_JUDGE
    url: str = ""
    key: str = field(default="", repr=False)
    #: Requests under way at once.
    concurrency: int = _default("concurrency")
    #: Seconds that a server may stay silent.
    timeout: float = _default("timeout")
    #: How often a request is sent again before its question stays without a verdict.
    retries: int = _default("retries")
    #: ``None``: the server's own limit; for ``hf``, the published evaluation's.
    max_tokens: int | None = None
    batch_size: int = _default("batch_size")
    device: str = ""

    @classmethod
    def resolve(cls, kind: str) -> JudgeSettings:
        """The settings for a task whose YAML asks for ``kind`` (may be empty).

        Raises ``JudgeError`` when there is no judge, ``ConfigError`` when a variable holds what it
        cannot hold.
        """
        configured = config.get()
        named = configured.judge.value if configured.judge else kind
        if not named:
            raise JudgeError(
                "open-ended answers need a judge, and none is configured. Set one of\n"
                f"  {JUDGE}=openai {JUDGE}_URL=http://HOST:PORT/v1   a server, for instance of "
                f"`vllm serve {OFFICIAL_JUDGE}`\n"
                f"  {JUDGE}=hf        transformers in this process, after the model is freed\n"
                f"  {JUDGE}=later     none now; judge with `proactivebench judge RESULTS_DIR`\n"
                f"  {JUDGE}=lexical   no model, for smoke tests only: comparable to nothing\n"
                "(docs/judge.md)"
            )
        if named not in {k.value for k in JudgeKind}:
            raise JudgeError(
                f"the task asks for judge {named!r}; expected one of "
                f"{', '.join(k.value for k in JudgeKind)}"
            )
        url, key = _server(configured)
        settings = cls(
            kind=JudgeKind(named),
            model=configured.judge_model,
            url=url,
            key=key,
            concurrency=configured.judge_concurrency,
            timeout=configured.judge_timeout,
            retries=configured.judge_retries,
            max_tokens=configured.judge_max_tokens,
            batch_size=configured.judge_batch_size,
            device=configured.judge_device,
        )
        if settings.kind is JudgeKind.OPENAI:
            _check_url(url)
        return settings

    def redact(self, text: str) -> str:
        """``text``, for instance a server's complaint, without the key."""
        return text.replace(self.key, "***") if self.key else text


def _server(configured: Config) -> tuple[str, str]:
    """URL and key. They go together: a key is never sent to a server that it was not set for."""
    key = configured.judge_key.get_secret_value()
    if configured.judge_url:
        return configured.judge_url, key
    return os.environ.get("OPENAI_BASE_URL", ""), key or os.environ.get("OPENAI_API_KEY", "")


def _check_url(url: str) -> None:
    if not url:
        raise JudgeError(
            f"{JUDGE} is openai, but there is no server: set {JUDGE}_URL (or OPENAI_BASE_URL) to "
            "its address, such as http://127.0.0.1:8000/v1"
        )
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise JudgeError(f"{JUDGE}_URL is {url!r:.60}; expected http(s)://HOST[:PORT]/v1")
    if parts.username or parts.password or parts.query:
        # Not shown: it may hold a secret, and so would every message of the client that names it.
        raise JudgeError(
            f"{JUDGE}_URL holds a user or a query; expected http(s)://HOST[:PORT]/v1 alone, and "
            f"the key in {JUDGE}_KEY"
        )
