"""Conformance: recorded decisions of the published package, compared with ours field by field.

A file holds one JSON object a line: an episode as the published package played it, or its judge's
verdict on an open-ended answer. Every recorded field counts; ``docs/baselines.md`` lists them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import read_jsonl
from proactivebench_tasks.judge import verdict as verdicts
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset


@dataclass(frozen=True)
class Difference:
    """One field that came out otherwise. ``step`` is ``None`` for fields of the whole episode."""

    dataset: str
    line: int
    step: int | None
    field: str
    recorded: object
    ours: object

    def __str__(self) -> str:
        where = f"{self.dataset}, line {self.line}"
        if self.step is not None:
            where += f", step {self.step}"
        return f"{where}, {self.field}: recorded {self.recorded!r}, ours {self.ours!r}"


@dataclass(frozen=True)
class Outcome:
    """The outcome for one file. ``differences`` holds the first one of each differing row; its
    field is ``error`` where the row could not be played on."""

    episodes: int
    verdicts: int
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        kinds = {"episodes": self.episodes, "verdicts": self.verdicts}
        rows = [f"{count} {kind}" for kind, count in kinds.items() if count] or ["0 episodes"]
        return f"{', '.join(rows)}, {len(self.differences)} differ"


def replay(path: Path, wording: bool = True) -> Outcome:
    """Replay a .jsonl or .jsonl.gz file. ``wording=False`` leaves the hashes of texts out.

    Raises ``DataError`` for a file that is missing, is no such recording, or has a broken line;
    ``ProtocolError`` when the official wording is needed and cannot be had.
    """
    protocol = published.load() if wording else BUILTIN
    differences, rows = [], Counter[str]()
    for line, record in _records(path):
        kind, compare = ("verdict", _verdict) if "verdict" in record else ("episode", _episode)
        rows[kind] += 1
        try:
            first = next(compare(line, record, protocol, wording), None)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}, line {line}: no recorded {kind} ({error!r})") from error
        except DataError as error:
            raise DataError(f"{path}, line {line}: {error}") from error
        if first is not None:
            differences.append(first)
    return Outcome(rows["episode"], rows["verdict"], tuple(differences))


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        for line, record in read_jsonl(path):
            if not isinstance(record, dict):
                raise DataError(f"{path}, line {line}: no recorded decision: {record!r:.60}")
            yield line, record
    except FileNotFoundError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def _episode(
    line: int, record: Mapping[str, Any], protocol: Protocol, wording: bool
) -> Iterator[Difference]:
    dataset = Dataset.parse(record["dataset"])
    sample = parse_sample(dataset, record["sample"])
    mode = Mode(record["mode"])
    episode = Episode(sample, protocol, mode, own_options=True)
    check = partial(_check, dataset, line)

    normal = mode is Mode.NORMAL
    answers = episode.environment.open_ended_answers() if normal else None
    yield from check(None, record, {"open_ended_answers": answers})
    for number, step in enumerate(record["steps"]):
        if episode.done:
            yield Difference(dataset.value, line, number, "stop", False, True)
            return
        if not isinstance(answer := step["answer"], str):
            raise TypeError(f"answer {answer!r:.60}")
        try:
            hashes = _hashes(episode) if wording else {}
            turn = episode.step(answer)
        except Exception as error:  # this row's difference; the others are still compared
            reason = f"{type(error).__name__}: {error}"
            yield Difference(dataset.value, line, number, "error", None, reason)
            return
        ours = {
            **hashes,
            "image": turn.image_path,
            "crop": turn.crop and turn.crop.to_list(),
            "options": list(turn.options),
            "action_verdict": turn.suggestion.value,
            "category_verdict": turn.category.value,
            "stop": turn.stop is not None,
        }
        yield from check(number, step, ours)
    summary = episode.summary()
    totals = {
        "num_turns": summary.num_turns,
        "correct_prediction": summary.correct_prediction,
        "reached_max_steps": summary.reached_max_turns,
        "image_ids": [turn.image_id for turn in episode.turns],
    }
    yield from check(None, record, totals)


def _hashes(episode: Episode) -> dict[str, str]:
    seen = episode.observe()
    reference = episode.mode is Mode.REFERENCE
    hinted = episode.protocol.prompt(episode.sample, reference=reference, hint=True)
    return {
        "prompt_sha256": _sha256(seen.prompt),
        "hint_prompt_sha256": _sha256(hinted),
        "mcqa_prompt_sha256": _sha256(seen.text),
    }


def _verdict(
    line: int, record: Mapping[str, Any], protocol: Protocol, wording: bool
) -> Iterator[Difference]:
    dataset = Dataset.parse(record["dataset"])
    episode = Episode(parse_sample(dataset, record["sample"]), protocol)
    valid_answers = episode.environment.open_ended_answers()
    yield from _check(dataset, line, None, record, {"valid_answers": valid_answers})
    if wording:
        messages = protocol.judge_messages(record["prompt"], valid_answers, record["generated"])
        hashes = {f"{m['role']}_sha256": _sha256(m["content"]) for m in messages}
        yield from _check(dataset, line, None, record, hashes)
    try:
        marks = verdicts.marks(record["raw"], valid_answers)
    except verdicts.Unusable:  # the official protocol knows no unscored answers
        marks = None
    score = verdicts.score(marks, dataset)
    ours = {
        "proactive_suggestion": int(score.suggestion),
        "category_prediction": int(score.category),
        "aggregate": int(score.aggregate),
    }
    yield from _check(dataset, line, None, record, {"verdict": ours})


def _check(
    dataset: Dataset,
    line: int,
    step: int | None,
    recorded: Mapping[str, Any],
    ours: Mapping[str, Any],
) -> Iterator[Difference]:
    for field, value in ours.items():
        if recorded[field] != value:
            yield Difference(dataset.value, line, step, field, recorded[field], value)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
