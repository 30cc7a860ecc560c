"""Conformance: recorded decisions of the published package, compared with ours field by field.

A file holds one JSON object a line: an episode as the published package played it, or its judge's
verdict on an open-ended answer. Every recorded field counts; ``docs/baselines.md`` lists them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.errors import DataError, LineError
from proactivebench_tasks.files import read_jsonl
from proactivebench_tasks.judge import verdict
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset


@dataclass(frozen=True)
class Difference:
    """One field that came out otherwise. ``step`` is ``None`` for fields of the whole row.

    ``field`` is ``None`` where the row could not be compared on; ``ours`` is then the reason.
    ``dataset`` is ``None`` where the row does not tell.
    """

    dataset: str | None
    line: int
    step: int | None
    field: str | None
    recorded: object
    ours: object

    def __str__(self) -> str:
        where = f"line {self.line}" if self.dataset is None else f"{self.dataset}, line {self.line}"
        if self.step is not None:
            where += f", step {self.step}"
        if self.field is None:
            return f"{where}, cannot be compared: {self.ours}"
        return f"{where}, {self.field}: recorded {self.recorded!r}, ours {self.ours!r}"


@dataclass(frozen=True)
class ReplayOutcome:
    """The outcome for one file. ``differences`` holds the first one of each differing row. What is
    no recorded verdict counts as an episode."""

    episodes: int
    verdicts: int
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        kinds = {"episodes": self.episodes, "verdicts": self.verdicts}
        rows = [f"{count} {kind}" for kind, count in kinds.items() if count] or ["0 episodes"]
        return f"{', '.join(rows)}, {len(self.differences)} differ"


def replay(path: Path, wording: bool = True) -> ReplayOutcome:
    """Replay a .jsonl or .jsonl.gz file. ``wording=False`` leaves the hashes of texts out.

    A row that cannot be compared is one difference, whatever is wrong with it, and the others are
    compared all the same. Raises ``DataError`` for a file that is missing or cannot be read;
    ``ProtocolError`` when the official wording is needed and cannot be had.
    """
    protocol = published.load() if wording else BUILTIN
    differences: list[Difference] = []
    broken: list[LineError] = []
    episodes = verdicts = 0
    try:
        for line, record in read_jsonl(path, broken.append):
            is_verdict = isinstance(record, dict) and "verdict" in record
            verdicts += is_verdict
            episodes += not is_verdict
            compare = _verdict if is_verdict else _episode
            try:
                differences += islice(compare(line, record, protocol, wording), 1)
            except Exception as error:  # of this row alone
                dataset = record.get("dataset") if isinstance(record, dict) else None
                named = dataset if isinstance(dataset, str) else None
                differences.append(Difference(named, line, None, None, None, _reason(error)))
    except FileNotFoundError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    differences += [Difference(None, each.line, None, None, None, each.reason) for each in broken]
    differences.sort(key=lambda each: each.line)
    return ReplayOutcome(episodes + len(broken), verdicts, tuple(differences))


def _episode(line: int, record: object, protocol: Protocol, wording: bool) -> Iterator[Difference]:
    dataset = Dataset.parse(_field(record, "dataset"))
    sample = parse_sample(dataset, _field(record, "sample"))
    mode = Mode(_field(record, "mode"))
    episode = Episode(sample, protocol, mode, own_options=True)
    check = partial(_check, dataset, line)

    normal = mode is Mode.NORMAL
    answers = episode.environment.open_ended_answers() if normal else None
    yield from check(None, record, {"open_ended_answers": answers})
    for number, step in enumerate(_field(record, "steps")):
        if episode.done:
            yield Difference(dataset.value, line, number, "stop", False, True)
            return
        try:
            yield from check(number, step, _played(episode, _field(step, "answer"), wording))
        except Exception as error:  # of this step
            yield Difference(dataset.value, line, number, None, None, _reason(error))
            return
    summary = episode.summary()
    totals = {
        "num_turns": summary.num_turns,
        "correct_prediction": summary.correct_prediction,
        "reached_max_steps": summary.reached_max_turns,
        "image_ids": [turn.image_id for turn in episode.turns],
    }
    yield from check(None, record, totals)


def _played(episode: Episode, answer: object, wording: bool) -> dict[str, object]:
    """Our fields of a step in which this is the answer; the episode is then one turn further."""
    if not isinstance(answer, str):
        raise DataError(f"field 'answer': expected a text, found {answer!r:.60}")
    hashes = _hashes(episode) if wording else {}
    turn = episode.step(answer)
    return {
        **hashes,
        "image": turn.image_path,
        "crop": turn.crop and turn.crop.to_list(),
        "options": list(turn.options),
        "action_verdict": turn.suggestion.value,
        "category_verdict": turn.category.value,
        "stop": turn.stop is not None,
    }


def _hashes(episode: Episode) -> dict[str, str]:
    seen = episode.observe()
    reference = episode.mode is Mode.REFERENCE
    hinted = episode.protocol.prompt(episode.sample, reference=reference, hint=True)
    return {
        "prompt_sha256": _sha256(seen.prompt),
        "hint_prompt_sha256": _sha256(hinted),
        "mcqa_prompt_sha256": _sha256(seen.text),
    }


def _verdict(line: int, record: object, protocol: Protocol, wording: bool) -> Iterator[Difference]:
    dataset = Dataset.parse(_field(record, "dataset"))
    episode = Episode(parse_sample(dataset, _field(record, "sample")), protocol)
    valid_answers = episode.environment.open_ended_answers()
    yield from _check(dataset, line, None, record, {"valid_answers": valid_answers})
    if wording:
        prompt, generated = _field(record, "prompt"), _field(record, "generated")
        messages = protocol.judge_messages(prompt, valid_answers, generated)
        hashes = {f"{m['role']}_sha256": _sha256(m["content"]) for m in messages}
        yield from _check(dataset, line, None, record, hashes)
    try:
        marks = verdict.marks(_field(record, "raw"), valid_answers)
    except verdict.Unusable:  # the official protocol knows no unscored answers
        marks = None
    score = verdict.score(marks, dataset)
    ours = {
        "proactive_suggestion": int(score.suggestion),
        "category_prediction": int(score.category),
        "aggregate": int(score.aggregate),
    }
    yield from _check(dataset, line, None, record, {"verdict": ours})


def _check(
    dataset: Dataset, line: int, step: int | None, recorded: object, ours: Mapping[str, object]
) -> Iterator[Difference]:
    for field, value in ours.items():
        if (theirs := _field(recorded, field)) != value:
            yield Difference(dataset.value, line, step, field, theirs, value)


def _field(record: object, name: str) -> Any:
    """What a recording says under this name; ``DataError`` if it says nothing."""
    if not isinstance(record, dict):
        raise DataError(f"expected a JSON object, found {record!r:.60}")
    if name not in record:
        raise DataError(f"field {name!r} is missing")
    return record[name]


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
