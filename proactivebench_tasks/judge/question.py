"""Question: what a judge is asked about one open-ended answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from proactivebench_tasks.protocol import versions
from proactivebench_tasks.protocol.protocol import Protocol, split_answers
from proactivebench_tasks.transcripts.open_ended import JudgeIdentity, OpenEnded


@dataclass(frozen=True)
class Question:
    """``valid_answers`` is the benchmark's comma-separated text of them."""

    protocol: Protocol
    prompt: str
    valid_answers: str
    generated: str

    @classmethod
    def of(cls, record: OpenEnded) -> Question:
        """The question about a recorded sample; ``ProtocolError`` if its wording is not at hand."""
        return cls(
            versions.of(record.protocol),
            record.prompt,
            record.valid_answers,
            encodable(record.generated),
        )

    @property
    def answers(self) -> list[str]:
        return split_answers(self.valid_answers)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat: a system and a user message."""
        return self.protocol.judge_messages(self.prompt, self.valid_answers, self.generated)

    def key(self, judge: JudgeIdentity) -> str:
        """What a reply to it is kept under: a digest of everything that the reply depends on."""
        parts = [judge.to_dict(), self.protocol.version, self.messages]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def encodable(text: str) -> str:
    """``text`` as UTF-8 can hold it: models and servers may return half a surrogate pair."""
    return text.encode("utf-8", "replace").decode()
