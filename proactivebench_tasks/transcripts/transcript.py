"""Transcript: the record of one played sample, as JSON in the harness's samples file.

It holds everything a reader needs to follow the sample. Scoring a multiple-choice one trusts only
its answers: it plays them again through the same ``Episode``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode, Observation, Summary
from proactivebench_tasks.environments.random_mode import as_played
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.transcripts.conversation import Exchange
from proactivebench_tasks.transcripts.variant import Setting

SCHEMA = 1


@dataclass(frozen=True)
class Transcript:
    """``outputs`` are the model's raw texts, one a turn; ``error`` says why a sample failed."""

    episode: Episode
    outputs: tuple[str, ...]
    reused: tuple[bool, ...]  # answered before in this episode, so the model was not called
    error: str | None = None
    setting: Setting = field(default_factory=Setting)
    examples: tuple[Exchange, ...] = ()  # shown before the first turn

    def to_json(self) -> str:
        episode, summary = self.episode, self.episode.summary()
        turns = []
        for turn, output, reused in zip(episode.turns, self.outputs, self.reused, strict=True):
            entry: dict[str, Any] = {
                "image": turn.image,
                "image_id": turn.image_id,
                "crop": turn.crop and turn.crop.to_list(),
                "options": turn.options,
                "answer": turn.answer,
                "suggestion": turn.suggestion.value,
                "category": turn.category.value,
            }
            if output != turn.answer:
                entry["output"] = output
            if reused:
                entry["reused"] = True
            turns.append(entry)
        stop = episode.turns[-1].stop if episode.turns else None
        record = _head(episode) | {
            "mode": episode.mode.value,
            "hint": episode.hint,
            "seed": episode.seed,
            "setting": self.setting.asked_for(),
            "examples": [
                {"image": e.image, "crop": e.crop and e.crop.to_list(), "answer": e.answer}
                for e in self.examples
            ],
            "turns": turns,
            "num_turns": summary.num_turns,
            "correct_prediction": summary.correct_prediction,
            "stop": "failed" if self.error else stop and stop.value,
            "error": self.error,
        }
        return dumps(record)


@dataclass(frozen=True)
class OpenEnded:
    """An open-ended sample. ``generated`` is what the judge reads, ``output`` the raw text."""

    episode: Episode
    seen: Observation
    generated: str
    output: str
    setting: Setting
    error: str | None = None

    def to_json(self) -> str:
        record = _head(self.episode) | {
            "image": self.seen.image,
            "crop": self.seen.crop and self.seen.crop.to_list(),
            "prompt": self.seen.text,
            "valid_answers": self.episode.environment.open_ended_answers(),
            "generated": self.generated,
            "error": self.error,
            # Which judge the task asks for; the judge stage adds what it said.
            "judge": {"kind": self.setting.judge},
        }
        if self.output != self.generated:
            record["output"] = self.output
        return dumps(record)


def _head(episode: Episode) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "protocol": episode.protocol.version,
        "dataset": episode.dataset.value,
        "id": episode.sample.id,
    }


def dumps(record: Mapping[str, Any]) -> str:
    """A transcript as text that any file can hold."""
    text = json.dumps(record, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as a cut answer may hold
        text = json.dumps(record)
    # The harness may strip reasoning tags from the whole response; escaped, none is seen.
    return text.replace("<", "\\u003c")


def loads(text: str, dataset: Dataset, sample_id: int) -> dict[str, Any]:
    """Read a transcript back; ``ValueError`` when the text is none of this sample."""
    record = json.loads(text)
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise ValueError(f"not a transcript of schema {SCHEMA}")
    whose = (record.get("dataset"), record.get("id"))
    if whose != (dataset.value, sample_id):
        raise ValueError(f"transcript of {whose[0]} {whose[1]}, not of this sample")
    return record


def reused(text: str) -> int:
    """How many of a whole transcript's turns were answered without a call of the model."""
    return sum(bool(turn.get("reused")) for turn in json.loads(text)["turns"])


def score(text: str, dataset: Dataset, sample: Sample, protocol: Protocol) -> Summary | None:
    """Play a transcript's answers through a fresh episode; ``None`` if the sample failed.

    Raises ``ValueError`` when the text is no whole transcript of this sample.
    """
    record = loads(text, dataset, sample.id)
    try:
        if record["error"] is not None:
            return None
        mode, seed = Mode(record["mode"]), record["seed"]
        episode = Episode(dataset, as_played(dataset, sample, mode, seed), protocol, mode, seed)
        for turn in record["turns"]:
            episode.step(turn["answer"])
    except (KeyError, TypeError, AttributeError, DataError) as error:
        raise ValueError(f"not a whole transcript: {error!r}") from error
    if not episode.done:
        raise ValueError("the transcript ends before the episode does")
    return episode.summary()
