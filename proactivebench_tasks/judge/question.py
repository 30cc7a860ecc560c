"""Question: what a judge is asked about one open-ended answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proactivebench_tasks.errors import ProtocolError
from proactivebench_tasks.protocol import protocol as protocols
from proactivebench_tasks.protocol.protocol import Protocol, split_answers


@dataclass(frozen=True)
class Question:
    """``valid_answers`` is the benchmark's comma-separated text of them."""

    protocol: Protocol
    prompt: str
    valid_answers: str
    generated: str

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Question:
        """The question about a recorded sample; ``ProtocolError`` if its wording is not at hand."""
        return cls(
            _protocol(record["protocol"]),
            record["prompt"],
            record["valid_answers"],
            encodable(record["generated"]),
        )

    @property
    def answers(self) -> list[str]:
        return split_answers(self.valid_answers)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat: a system and a user message."""
        return self.protocol.judge_messages(self.prompt, self.valid_answers, self.generated)

    def key(self, identity: Mapping[str, Any]) -> str:
        """What a reply to it is kept under: a digest of everything that the reply depends on."""
        parts = [identity, self.protocol.version, self.messages]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def encodable(text: str) -> str:
    """``text`` as UTF-8 can hold it: models and servers may return half a surrogate pair."""
    return text.encode("utf-8", "replace").decode()


def _protocol(version: str) -> Protocol:
    """The protocol that a sample was played by."""
    found = protocols.get("builtin" if version.startswith("builtin") else "official")
    if found.version != version:
        raise ProtocolError(
            f"the sample was played by protocol {version}, but {found.version} is installed: judge "
            "it with the release of this package that played it"
        )
    return found
