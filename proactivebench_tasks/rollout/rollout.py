"""Play: an episode in play, between the harness's request for it and the transcript it returns."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts

from proactivebench_tasks.environments.episode import Episode, Observation
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.rollout import icl as examples
from proactivebench_tasks.rollout.documents import Document
from proactivebench_tasks.transcripts.conversation import Exchange, interleaved
from proactivebench_tasks.transcripts.transcript import OpenEnded, Transcript
from proactivebench_tasks.transcripts.variant import Setting


@dataclass(eq=False)
class Play:
    """A multiple-choice episode: answers until it is done, or until something goes wrong."""

    request: Instance
    repeat: int  # how many times this document was played before in this run
    doc: Document
    episode: Episode
    setting: Setting
    examples: tuple[Exchange, ...] = ()
    past: list[Exchange] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    reused: list[bool] = field(default_factory=list)
    answered: dict[tuple[Exchange, ...], str] = field(default_factory=dict)
    tokens: Counter[str] = field(default_factory=Counter)
    error: Exception | None = None

    @property
    def over(self) -> bool:
        return self.episode.done or self.error is not None

    @property
    def turns_left(self) -> int:
        """How many more turns there can be."""
        return self.episode.environment.max_turns - len(self.episode.turns)

    @functools.cached_property
    def seen(self) -> Observation:
        """What the model sees now; forgotten with each answer."""
        return documents.observe(self.episode, self.setting)

    @functools.cached_property
    def conversation(self) -> tuple[Exchange, ...]:
        """All that the model sees now: worked examples, earlier turns, the present one."""
        now = Exchange(self.seen.image, self.seen.crop, self.seen.text)
        return (*self.examples, *self.past, now)

    @property
    def text(self) -> str:
        """The present turn's text; with several pictures, all texts and where the pictures go."""
        return self.seen.text if len(self.conversation) == 1 else interleaved(self.conversation)

    def answer(self, output: str, reused: bool = False) -> None:
        """Take the model's text for the present turn."""
        self.answered[self.conversation] = output
        answer = self._said(output)
        try:
            self.episode.step(answer)
        except Exception as error:  # malformed data: this sample's failure, not the run's
            self.error = error
            return
        self.outputs.append(output)
        self.reused.append(reused)
        if self.setting.history:
            self.past.append(replace(self.conversation[-1], answer=answer))
        del self.seen, self.conversation
        if self.over:
            self.answered.clear()  # a finished play is kept to the end of the task: keep it small

    def tally(self) -> dict[str, int]:
        """What a finished play adds to the running figures."""
        summary = self.episode.summary()
        if self.error is not None:
            return {"turns": summary.num_turns}
        return {
            "turns": summary.num_turns,
            "solved": summary.correct_prediction,
            "suggestions": summary.suggestions,
        }

    def response(self) -> GenerationResult:
        """The transcript, with the tokens of all turns."""
        counts = TokenCounts(**self.tokens) if self.tokens else None
        return GenerationResult(self._transcript(), counts)

    def _transcript(self) -> str:
        outputs, reused = tuple(self.outputs), tuple(self.reused)
        return Transcript(
            self.episode, outputs, reused, self._complaint, self.setting, self.examples
        ).to_json()

    def _said(self, output: str) -> str:
        return without_thinking(output) if self.setting.strip_thinking else output

    @property
    def _complaint(self) -> str | None:
        return f"{type(self.error).__name__}: {self.error}" if self.error else None


class OpenEndedPlay(Play):
    """Open-ended generation: picture and question, no list, one turn, judged later."""

    @property
    def over(self) -> bool:
        return bool(self.outputs) or self.error is not None

    def answer(self, output: str, reused: bool = False) -> None:
        self.outputs.append(output)
        self.reused.append(reused)

    def tally(self) -> dict[str, int]:
        return {"turns": 1}

    def _transcript(self) -> str:
        output = self.outputs[0] if self.outputs else ""
        return OpenEnded(
            self.episode, self.seen, self._said(output), output, self.setting, self._complaint
        ).to_json()


def start(
    request: Instance, repeat: int, doc: Document, setting: Setting, pool: Sequence[Document]
) -> Play:
    """A fresh play of a document, of the kind that the setting asks for.

    ``pool`` holds the documents of the task, from which worked examples are taken.
    """
    kind = OpenEndedPlay if setting.open_ended else Play
    worked = examples.choose(doc, pool, setting)
    return kind(request, repeat, doc, documents.episode(doc, setting), setting, worked)


def without_thinking(text: str) -> str:
    """The answer after a model's thinking. Thinking that never ends leaves no answer."""
    return re.sub(r"<think>.*", "", text.rpartition("</think>")[2], flags=re.DOTALL).strip()
