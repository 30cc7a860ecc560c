"""Rollout: an episode in play, between the harness's request for it and the record it returns."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts

from proactivebench_tasks.environments.episode import Episode, Observation
from proactivebench_tasks.environments.lenient import Mismatch
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.rollout import documents, icl
from proactivebench_tasks.rollout.documents import Document
from proactivebench_tasks.transcripts.answer import Answer, Cost, Origin
from proactivebench_tasks.transcripts.conversation import Exchange, interleaved
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.thinking import Tags, spoken
from proactivebench_tasks.transcripts.transcript import Transcript, why_off_list
from proactivebench_tasks.transcripts.variant import Variant


@dataclass(frozen=True)
class Failure:
    """Why there is no answer, and what it cost to find out."""

    error: Exception
    cost: Cost = field(default_factory=Cost)


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
    tags: Tags = ()  # between which the model thinks
    examples: tuple[Exchange, ...] = ()
    past: list[Exchange] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    answered: dict[tuple[Exchange, ...], str] = field(default_factory=dict)
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
        return None if text is None else Answer(text, Origin.EPISODE)

    # How it goes on.

    def take(self, outcome: Outcome) -> None:
        """Go on with what came of the present turn. A failure ends it."""
        self.costs.append(outcome.cost)
        if isinstance(outcome, Failure):
            self.error = outcome.error
            return
        self._step(outcome.text)
        if self.error is None:
            self.answers.append(outcome)
            self._prove()

    def _prove(self) -> None:
        """Make the next observation. One that cannot be made, because the sample's suggestions led
        to no image, is this sample's failure."""
        try:
            _ = self.over or self.seen
        except DataError as error:
            self.error = error

    def _step(self, output: str) -> None:
        conversation = self.conversation
        self.answered[conversation] = output
        answer = spoken(output, self.tags).text
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
            "suggestions": summary.num_suggestions,
        }

    def mismatch(self) -> Mismatch | None:
        """Why the last answer of a finished episode was no option, if it was none."""
        if not self.answers or self.error is not None or not self.episode.turns:
            return None
        return why_off_list(self.episode.turns[-1], spoken(self.answers[-1].text, self.tags))

    def response(self) -> GenerationResult:
        """The record of it, with the tokens of all turns."""
        tokens: Counter[str] = Counter()
        for cost in self.costs:
            tokens.update(cost.tokens)
        return GenerationResult(self._record(), TokenCounts(**tokens) if tokens else None)

    def _record(self) -> str:
        origin = documents.provenance(self.doc, self.variant, self.tags)
        record = Transcript.of(
            self.episode, self.answers, origin, self.costs, self.error, self.examples
        )
        return record.to_json()


class OpenEndedRollout(Rollout):
    """Open-ended generation: image and question, no list, one turn, judged later."""

    @property
    def turns_left(self) -> int:
        return 0 if self.over else 1

    @property
    def over(self) -> bool:
        return bool(self.answers) or self.error is not None

    def _step(self, output: str) -> None:
        pass  # there is nothing to grade before the judge has seen it

    def tally(self) -> dict[str, int]:
        return {"turns": 1}

    def _record(self) -> str:
        origin = documents.provenance(self.doc, self.variant, self.tags)
        answer = self.answers[0] if self.answers else None
        record = OpenEnded.of(self.episode, self.seen, answer, origin, self.costs, self.error)
        return record.to_json()


def start(
    request: Instance,
    repeat: int,
    doc: Document,
    variant: Variant,
    pool: Sequence[Document],
    tags: Tags = (),
) -> Rollout:
    """A fresh rollout of a document, of the kind that the variant asks for.

    ``pool`` holds the documents of the task, from which worked examples are taken.
    """
    kind = OpenEndedRollout if variant.open_ended else Rollout
    worked = icl.choose(doc, pool, variant)
    return kind(request, repeat, doc, documents.episode(doc, variant), variant, tags, worked)
