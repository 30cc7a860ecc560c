"""Play: an episode in play, between the harness's request for it and the transcript it returns."""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import dataclass, field

from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts

from proactivebench_tasks.documents import Document
from proactivebench_tasks.environments.base import Episode, Observation
from proactivebench_tasks.transcripts import Transcript


@dataclass(eq=False)
class Play:
    """An episode in play: its request in the harness, its answers so far, what went wrong."""

    request: Instance
    doc: Document
    episode: Episode
    outputs: list[str] = field(default_factory=list)
    reused: list[bool] = field(default_factory=list)
    answered: dict[Observation, str] = field(default_factory=dict)
    tokens: Counter[str] = field(default_factory=Counter)
    error: Exception | None = None

    @property
    def over(self) -> bool:
        return self.episode.done or self.error is not None

    @functools.cached_property
    def seen(self) -> Observation:
        """What the model sees now; forgotten with each answer."""
        return self.episode.observe()

    def answer(self, output: str, strip_thinking: bool, reused: bool = False) -> None:
        self.answered[self.seen] = output
        try:
            self.episode.step(without_thinking(output) if strip_thinking else output)
        except Exception as error:  # malformed data: this sample's failure, not the run's
            self.error = error
            return
        self.outputs.append(output)
        self.reused.append(reused)
        del self.seen
        if self.over:
            self.answered.clear()  # a finished play is kept to the end of the task: keep it small

    def response(self) -> GenerationResult:
        error = f"{type(self.error).__name__}: {self.error}" if self.error else None
        transcript = Transcript(self.episode, tuple(self.outputs), tuple(self.reused), error)
        counts = TokenCounts(**self.tokens) if self.tokens else None
        return GenerationResult(transcript.to_json(), counts)


def without_thinking(text: str) -> str:
    """The answer after a model's thinking. Thinking that never ends leaves no answer."""
    return re.sub(r"<think>.*", "", text.rpartition("</think>")[2], flags=re.DOTALL).strip()
