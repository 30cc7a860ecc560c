"""Random input: a jsonl, a row, a transcript, a recording is read or refused, nothing else."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from fakes import world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proactivebench_tasks.conformance import replay
from proactivebench_tasks.data.suite import read
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.transcripts import transcript as transcripts

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


@fuzz
@given(content=st.binary(max_size=400))
def test_any_bytes_are_rows_or_a_data_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    try:
        assert list(read(path, Dataset.ROD)) == [] or b"{" in content
    except DataError as error:
        assert str(path) in str(error)


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


@fuzz
@given(dataset=datasets, answers=st.lists(st.text(), max_size=4), broken=st.data())
def test_a_spoiled_transcript_is_scored_or_a_value_error(
    dataset: Dataset, answers: list[str], broken: st.DataObject
) -> None:
    sample = parse_sample(dataset, a_row(dataset, 3))
    episode = Episode(sample, BUILTIN)
    for answer in answers:
        if not episode.done:
            episode.step(answer)
    outputs = tuple(turn.answer for turn in episode.turns)
    text = transcripts.Transcript(episode, outputs, (False,) * len(outputs)).to_json()
    record = json.loads(text)
    for field in broken.draw(st.lists(st.sampled_from(sorted(record)), max_size=2)):
        record[field] = broken.draw(values)
    text = json.dumps(record)[: broken.draw(st.integers(0, len(text) * 2))]
    try:
        summary = transcripts.score(text, dataset, sample, BUILTIN)
    except ValueError:
        return
    assert summary is None or summary.num_turns <= episode.environment.max_turns


@fuzz
@given(records=st.lists(values, max_size=3))
def test_any_json_is_a_recording_or_a_data_error(tmp_path: Path, records: list[Any]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    try:
        replay(path, wording=False)
    except DataError as error:
        assert str(path) in str(error)


@pytest.mark.parametrize("depth", [100_000])
def test_deep_nesting_is_refused(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("[" * depth + "]" * depth)
    with pytest.raises(DataError, match="line 1"):
        list(read(path, Dataset.ROD))
