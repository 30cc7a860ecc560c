"""Random input: a jsonl, a row, a record or a recording is read, or refused as it should be."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes import world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proactivebench_tasks import file_kinds
from proactivebench_tasks.conformance import replay
from proactivebench_tasks.data.rows import Row, read
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.errors import DataError, RecordError
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.results import metrics
from proactivebench_tasks.transcripts.answer import Answer
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.reader import read as read_record
from proactivebench_tasks.transcripts.record import Provenance, Record
from proactivebench_tasks.transcripts.transcript import Transcript
from proactivebench_tasks.transcripts.variant import Variant

fuzz = settings(
    max_examples=300,
    deadline=2000,  # ms: nothing hangs
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
datasets = st.sampled_from(list(Dataset))


def a_row(dataset: Dataset, number: int) -> dict[str, Any]:
    return world.rows(dataset, list(range(6)))[number % 6]


@st.composite
def spoiled_rows(draw: st.DrawFn) -> tuple[Dataset, dict[str, Any]]:
    """A valid row with up to three fields replaced or removed."""
    dataset = draw(datasets)
    row = a_row(dataset, draw(st.integers(0, 5)))
    for field in draw(st.lists(st.sampled_from(sorted(row)), min_size=1, max_size=3)):
        if draw(st.booleans()):
            row.pop(field, None)
        else:
            row[field] = draw(values)
    return dataset, row


@st.composite
def spoiled_jsonls(draw: st.DrawFn) -> tuple[Dataset, list[str], set[int]]:
    """Lines of all sorts for a dataset's jsonl, and the numbers of those that are valid rows."""
    dataset = draw(datasets)
    texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))
    spoiled = spoiled_rows().map(lambda each: json.dumps(each[1]))  # of any dataset
    others = spoiled | values.map(json.dumps) | texts | st.sampled_from(["", " ", "\t", "{", "{}"])
    lines: list[str] = []
    valid: set[int] = set()
    for is_valid in draw(st.lists(st.booleans(), max_size=8)):
        if is_valid:
            lines.append(json.dumps(a_row(dataset, draw(st.integers(0, 5)))))
            valid.add(len(lines))
        else:
            lines.append(draw(others))
    return dataset, lines, valid


def read_and_check(
    path: Path, dataset: Dataset, lines: Sequence[str]
) -> tuple[list[Row], list[DataError]]:
    """The rows and the faults of a jsonl with these lines.

    Each line that is not blank must be one or the other; a row must be what its line says.
    """
    faults: list[DataError] = []
    rows = list(read(path, dataset, faults.append))
    for row in rows:
        assert row.sample == parse_sample(dataset, json.loads(lines[row.line - 1]))
    places = [re.match(rf"{re.escape(str(path))}, line (\d+): .", str(fault)) for fault in faults]
    told = [row.line for row in rows] + [int(place[1]) for place in places if place]
    assert sorted(told) == [n for n, line in enumerate(lines, start=1) if line.strip()]
    assert len(told) == len(rows) + len(faults)
    return rows, faults


@fuzz
@given(content=st.binary(max_size=400))
def test_any_bytes_are_rows_and_faults_or_a_data_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    try:
        lines = list(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig"))
    except UnicodeDecodeError:
        with pytest.raises(DataError, match=f"^{re.escape(str(path))}: cannot be read: "):
            list(read(path, Dataset.ROD, lambda fault: None))
    else:
        try:
            read_and_check(path, Dataset.ROD, lines)
        except DataError:  # it looks like another kind of file altogether
            assert file_kinds.recognised(content) is not None


@settings(fuzz, max_examples=100)  # each has several lines
@given(jsonl=spoiled_jsonls())
def test_valid_rows_are_found_among_any_other_lines(
    tmp_path: Path, jsonl: tuple[Dataset, list[str], set[int]]
) -> None:
    dataset, lines, valid = jsonl
    path = tmp_path / "x.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8-sig"))
    rows, faults = read_and_check(path, dataset, lines)
    assert valid <= {row.line for row in rows}
    if not faults:
        assert [row.line for row in read(path, dataset)] == [row.line for row in rows]
        return
    with pytest.raises(DataError) as first:  # where there is nobody to be told of faults
        list(read(path, dataset))
    assert str(first.value) == str(faults[0])


@fuzz
@given(spoiled=spoiled_rows())
def test_a_spoiled_row_is_a_sample_or_a_data_error(spoiled: tuple[Dataset, dict[str, Any]]) -> None:
    dataset, row = spoiled
    try:
        sample = parse_sample(dataset, row)
    except DataError as error:
        assert len(str(error)) < 5000
        return
    assert isinstance(sample, Sample)
    with contextlib.suppress(DataError):
        Episode(sample, BUILTIN).observe()


ANSWERS = st.text(st.characters())  # with halves of surrogate pairs
ORIGIN = Provenance("demo", "x-1", Variant(), (("<think>", "</think>"),), str)


def spoil(text: str, data: st.DataObject) -> str:
    """A record with up to two fields replaced, perhaps said to be of schema 1, or cut short."""
    record = json.loads(text)
    if data.draw(st.booleans()):
        record |= {"schema": 1, "setting": data.draw(values | st.just({}))}
    for field in data.draw(st.lists(st.sampled_from(sorted(record)), max_size=2)):
        record[field] = data.draw(values)
    return json.dumps(record)[: data.draw(st.integers(0, len(text) * 2))]


def check_is_written_as_it_was_read(record: Record) -> None:
    text = record.to_json()
    assert text.encode()
    assert type(record).from_json(text).to_json() == text
    assert json.dumps(record.to_row(), ensure_ascii=False).encode()


@fuzz
@given(value=values, text=st.text())
def test_any_text_is_a_record_or_a_record_error(value: Any, text: str) -> None:
    for other in (text, json.dumps(value), json.dumps({"schema": 1, "kind": value})):
        with pytest.raises(RecordError):
            read_record(other)


@fuzz
@given(dataset=datasets, answers=st.lists(ANSWERS, max_size=4), data=st.data())
def test_a_spoiled_transcript_is_scored_or_a_record_error(
    dataset: Dataset, answers: list[str], data: st.DataObject
) -> None:
    sample = parse_sample(dataset, a_row(dataset, 3))
    episode = Episode(sample, BUILTIN)
    for answer in answers:
        if not episode.done:
            episode.step(answer)
    given = [Answer(turn.answer) for turn in episode.turns]
    text = spoil(Transcript.of(episode, given, ORIGIN).to_json(), data)
    try:
        transcript = Transcript.from_json(text, sample)
    except RecordError:
        return
    check_is_written_as_it_was_read(transcript)
    try:
        replayed = transcript.replay(sample, BUILTIN)
    except RecordError:
        return
    assert replayed is None or len(replayed.turns) <= episode.environment.max_turns


@fuzz
@given(dataset=datasets, answer=ANSWERS, data=st.data())
def test_a_spoiled_open_ended_record_is_worth_something_or_a_record_error(
    dataset: Dataset, answer: str, data: st.DataObject
) -> None:
    sample = parse_sample(dataset, a_row(dataset, 3))
    episode = Episode(sample, BUILTIN)
    written = OpenEnded.of(episode, episode.observe(), Answer(answer), ORIGIN)
    try:
        record = OpenEnded.from_json(spoil(written.to_json(), data), sample)
    except RecordError:
        return
    check_is_written_as_it_was_read(record)
    assert set(metrics.open_ended(record).values()) <= {0.0, 100.0}


@fuzz
@given(records=st.lists(values, max_size=3))
def test_each_line_of_a_recording_counts_and_none_ends_it(
    tmp_path: Path, records: list[Any]
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    outcome = replay(path, wording=False)
    assert outcome.episodes + outcome.verdicts == len(records)
    assert [each.line for each in outcome.differences] == list(range(1, len(records) + 1))


@fuzz
@given(spoiled=spoiled_rows(), steps=values, verdict=st.booleans())
def test_a_recording_of_a_spoiled_row_is_one_difference_at_most(
    tmp_path: Path, spoiled: tuple[Dataset, dict[str, Any]], steps: Any, verdict: bool
) -> None:
    path = tmp_path / "x.jsonl"
    record = {"dataset": spoiled[0].value, "mode": "normal", "sample": spoiled[1], "steps": steps}
    if verdict:
        record |= {"verdict": steps, "raw": steps, "valid_answers": steps}
    path.write_text(json.dumps(record))
    outcome = replay(path, wording=False)
    assert (outcome.episodes, outcome.verdicts) == (not verdict, verdict)
    assert len(outcome.differences) <= 1


@pytest.mark.parametrize("depth", [100_000])
def test_deep_nesting_is_refused(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("[" * depth + "]" * depth)
    with pytest.raises(DataError, match="line 1"):
        list(read(path, Dataset.ROD))
