"""Rollout: an episode in play, between the harness's request for it and the record it returns."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts

from proactivebench_tasks.environments.episode import Episode, Observation
from proactivebench_tasks.rollout import documents, icl
from proactivebench_tasks.rollout.documents import Document
from proactivebench_tasks.transcripts.conversation import Exchange, interleaved
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.transcript import Transcript
from proactivebench_tasks.transcripts.variant import Variant


@dataclass(frozen=True)
class Answer:
    """A model's text for one turn. ``tokens`` by kind; ``reused``: given before in this episode."""

    text: str
    tokens: Mapping[str, int] = field(default_factory=dict)
    reused: bool = False


@dataclass(frozen=True)
class Failure:
    """Why there is no answer."""

    error: Exception


#: What came of a turn.
Outcome = Answer | Failure


@dataclass(eq=False)
class Rollout:
    """A multiple-choice episode: it takes outcomes until it is done, or until one is a failure."""

    request: Instance
    repeat: int  # how many times this document was played before in this run
    doc: Document
    episode: Episode
    variant: Variant
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

    # What the model sees now; forgotten with each answer.

    @functools.cached_property
    def seen(self) -> Observation:
        return documents.observe(self.episode, self.variant)

    @functools.cached_property
    def conversation(self) -> tuple[Exchange, ...]:
        """All that the model sees: worked examples, earlier turns, the present one."""
        now = Exchange(self.seen.image_path, self.seen.crop, self.seen.text)
        return (*self.examples, *self.past, now)

    @property
    def text(self) -> str:
        """The present turn's text; with several images, all texts and where the images go."""
        return self.seen.text if len(self.conversation) == 1 else interleaved(self.conversation)

    def turn_id(self, gen_kwargs: Mapping[str, Any], sampled: bool) -> int:
        """What tells this turn from all others: 63 bits of a digest.

        The response cache's own key has the text of a turn, but neither its images nor its history,
        nor, as it is used here, the generation arguments. A sampled answer is kept like any other,
        so that a killed run resumes; the repeats of a document differ in it.
        """
        parts = [
            self.episode.protocol.version,
            [dataclasses.asdict(exchange) for exchange in self.conversation],
            [turn.answer for turn in self.episode.turns],
            self.variant.short_edge,
            dict(gen_kwargs),
            self.repeat if sampled else 0,
        ]
        text = json.dumps(parts, sort_keys=True, default=str)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    def known_answer(self) -> Answer | None:
        """The answer that was given to the same observation before in this episode, if there is."""
        text = self.answered.get(self.conversation)
        return None if text is None else Answer(text, reused=True)

    # How it goes on.

    def take(self, outcome: Outcome) -> None:
        """Go on with what came of the present turn. A failure ends it."""
        if isinstance(outcome, Failure):
            self.error = outcome.error
            return
        self.tokens.update(outcome.tokens)
        self._step(outcome.text)
        if self.error is None:
            self.outputs.append(outcome.text)
            self.reused.append(outcome.reused)

    def _step(self, output: str) -> None:
        conversation = self.conversation
        self.answered[conversation] = output
        answer = self._graded_text(output)
        try:
            self.episode.step(answer)
        except Exception as error:  # malformed data: this sample's failure, not the run's
            self.error = error
            return
        if self.variant.history:
            self.past.append(replace(conversation[-1], answer=answer))
        del self.seen, self.conversation
        if self.over:
            self.answered.clear()  # a finished rollout is kept to the end of its task

    def tally(self) -> dict[str, int]:
        """What a finished rollout adds to the running figures."""
        summary = self.episode.summary()
        if self.error is not None:
            return {"turns": summary.num_turns}
        return {
            "turns": summary.num_turns,
            "solved": summary.correct_prediction,
            "suggestions": summary.suggestions,
        }

    def response(self) -> GenerationResult:
        """The record of it, with the tokens of all turns."""
        counts = TokenCounts(**self.tokens) if self.tokens else None
        return GenerationResult(self._record(), counts)

    def _record(self) -> str:
        return Transcript.of(
            self.episode, self.outputs, self.reused, self.error, self.variant, self.examples
        ).to_json()

    def _graded_text(self, output: str) -> str:
        return without_thinking(output) if self.variant.strip_thinking else output


class OpenEndedRollout(Rollout):
    """Open-ended generation: image and question, no list, one turn, judged later."""

    @property
    def over(self) -> bool:
        return bool(self.outputs) or self.error is not None

    def _step(self, output: str) -> None:
        pass  # there is nothing to grade before the judge has seen it

    def tally(self) -> dict[str, int]:
        return {"turns": 1}

    def _record(self) -> str:
        output = self.outputs[0] if self.outputs else ""
        generated = self._graded_text(output)
        return OpenEnded.of(
            self.episode, self.seen, generated, output, self.variant.judge, self.error
        ).to_json()


def start(
    request: Instance, repeat: int, doc: Document, variant: Variant, pool: Sequence[Document]
) -> Rollout:
    """A fresh rollout of a document, of the kind that the variant asks for.

    ``pool`` holds the documents of the task, from which worked examples are taken.
    """
    kind = OpenEndedRollout if variant.open_ended else Rollout
    worked = icl.choose(doc, pool, variant)
    return kind(request, repeat, doc, documents.episode(doc, variant), variant, worked)


def without_thinking(text: str) -> str:
    """The answer after a model's thinking. Thinking that never ends leaves no answer."""
    return re.sub(r"<think>.*", "", text.rpartition("</think>")[2], flags=re.DOTALL).strip()
