"""JudgeSettings: which judge marks open-ended answers, and how it is reached."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from proactivebench_tasks import config
from proactivebench_tasks.config import JUDGE, OFFICIAL_JUDGE, Config, JudgeKind
from proactivebench_tasks.errors import ConfigError, JudgeError

#: The published evaluation's limit on what the judge writes, thinking included.
OFFICIAL_MAX_TOKENS = 2**15


def _default(name: str) -> Any:
    """The default of ``PROACTIVEBENCH_JUDGE_<name>``, which only ``Config`` knows."""
    return Config.model_fields[f"judge_{name}"].default


@dataclass(frozen=True)
class JudgeSettings:
    """One judge's settings. What each means, and its default, is in ``Config`` under ``judge_*``.

    A judge ignores the settings that are not for its kind.
    """

    kind: JudgeKind
    model: str = _default("model")
    url: str = ""
    key: str = field(default="", repr=False)
    concurrency: int = _default("concurrency")
    timeout: float = _default("timeout")
    retries: int = _default("retries")
    max_tokens: int | None = _default("max_tokens")
    batch_size: int = _default("batch_size")
    device: str = _default("device")
    official_parsing: bool = _default("official_parsing")

    @classmethod
    def resolve(cls, kind: str) -> JudgeSettings:
        """The settings of the judge that ``PROACTIVEBENCH_JUDGE`` names, or else of kind ``kind``,
        which is what the task's YAML asks for and may be empty.

        Raises ``JudgeError`` when neither names a judge, or the judge has no server to ask;
        ``ConfigError`` when a variable has a value that it cannot have.
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
        variable, url, key = _server(configured)
        rest = {each.name for each in fields(cls)} - {"kind", "url", "key"}
        values = {name: getattr(configured, f"judge_{name}") for name in rest}
        settings = cls(JudgeKind(named), url=url, key=key, **values)
        if settings.kind is JudgeKind.OPENAI:
            _check_url(variable, url)
            if not key.isascii() or len(key.split()) > 1:
                # It would be refused by a message that shows it.
                raise ConfigError(
                    f"the key for the server of {variable} holds a space or a letter that is not "
                    f"ASCII; set {JUDGE}_KEY to one key"
                )
        return settings

    def redact(self, text: str) -> str:
        """``text``, for instance a server's complaint, without the key."""
        return text.replace(self.key, "***") if self.key else text


def _server(configured: Config) -> tuple[str, str, str]:
    """The server: the variable that its address is from, the address, and the key.

    The key of OPENAI_API_KEY was set for the server of OPENAI_BASE_URL. It is sent to no other.
    """
    key = configured.judge_key.get_secret_value().strip()  # a key from a file ends in a new line
    if configured.judge_url:
        return f"{JUDGE}_URL", configured.judge_url, key
    url = os.environ.get("OPENAI_BASE_URL", "")
    return "OPENAI_BASE_URL", url, key or os.environ.get("OPENAI_API_KEY", "").strip()


def _check_url(variable: str, url: str) -> None:
    if not url:
        raise JudgeError(
            f"{JUDGE} is openai, but there is no server: set {JUDGE}_URL (or OPENAI_BASE_URL) to "
            "its address, such as http://127.0.0.1:8000/v1"
        )
    parts = urlsplit(url)
    if "@" in url or parts.query:
        # The value may hold a secret, so it is not shown here. It is refused because messages of
        # the client would show it.
        raise ConfigError(
            f"{variable} holds a user or a query; expected http(s)://HOST[:PORT]/v1 alone, and "
            f"the key in {JUDGE}_KEY"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{variable} is {url!r:.60}; expected http(s)://HOST[:PORT]/v1")
