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
    """Which of these valid answers does the generated text make?"""

    protocol: Protocol  # words the question
    prompt: str  # what the evaluated model was asked
    valid_answers: str  # comma-separated, as the benchmark has them
    generated: str  # what the evaluated model answered

    @classmethod
    def of(cls, record: OpenEnded) -> Question:
        """The question about a recorded sample.

        Raises ``ProtocolError`` if the protocol that the sample was played by is not installed.
        """
        return cls(
            versions.of(record.protocol),
            record.prompt,
            record.valid_answers,
            encodable(record.generated),
        )

    @property
    def answers(self) -> list[str]:
        """The valid answers one by one, in the order of the verdict's marks."""
        return split_answers(self.valid_answers)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat that a judge model is sent: a system and a user message."""
        return self.protocol.judge_messages(self.prompt, self.valid_answers, self.generated)

    def key(self, judge: JudgeIdentity) -> str:
        """The key of this judge's reply in ``ReplyCache``: a digest of all that it depends on.

        Replies outlive releases of this package, so the form of what is digested must not change.
        """
        parts = [judge.to_dict(), self.protocol.version, self.messages]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def encodable(text: str) -> str:
    """``text`` with a ``?`` for each half of a surrogate pair, which UTF-8 cannot encode.

    Models and servers return such halves when they cut a text within a character.
    """
    return text.encode("utf-8", "replace").decode()
