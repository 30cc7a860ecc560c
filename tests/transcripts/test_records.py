"""Records: what was written once can be read, scored and written again; anything else is refused.

``records/`` holds records that were written by the first version of this package (see its README).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from proactivebench_tasks import errors
from proactivebench_tasks.data import rows
from proactivebench_tasks.demo import DATA
from proactivebench_tasks.environments.environment import Box, Mode
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.environments.random_mode import as_played
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.results import metrics
from proactivebench_tasks.transcripts.conversation import Exchange
from proactivebench_tasks.transcripts.open_ended import Judgement, OpenEnded
from proactivebench_tasks.transcripts.record import Record
from proactivebench_tasks.transcripts.transcript import Transcript

Line = dict[str, Any]

FOLDER = Path(__file__).parent / "records"


def lines(name: str) -> list[Line]:
    """The lines of a file of records: ``case``, ``record`` (text) and ``metrics`` of each."""
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


MULTIPLE_CHOICE, OPEN_ENDED = lines("multiple_choice"), lines("open_ended")


def case(line: Line) -> str:
    return str(line["case"])


each_multiple_choice = pytest.mark.parametrize("line", MULTIPLE_CHOICE, ids=case)
each_open_ended = pytest.mark.parametrize("line", OPEN_ENDED, ids=case)

#: One whole record of each kind, to spoil.
WHOLE = {Transcript: MULTIPLE_CHOICE[0]["record"], OpenEnded: OPEN_ENDED[0]["record"]}
both_kinds = pytest.mark.parametrize("kind", WHOLE, ids=lambda kind: kind.__name__)


@cache
def demo_samples(dataset: Dataset) -> dict[int, Sample]:
    return {row.sample.id: row.sample for row in rows.read(DATA / "test" / dataset.jsonl, dataset)}


def sample_of(text: str) -> Sample:
    """The demo's sample that a record is of."""
    record = json.loads(text)
    return demo_samples(Dataset(record["dataset"]))[record["id"]]


def raised(record: Transcript | OpenEnded) -> Exception | None:
    """The error that a record tells of."""
    if record.error is None:
        return None
    name, _, message = record.error.partition(": ")
    return getattr(errors, name)(message)  # type: ignore[no-any-return]


def spoiled(kind: type[Record], **fields: object) -> str:
    """A whole record with some of its fields replaced."""
    return json.dumps(json.loads(WHOLE[kind]) | fields)


def refusal(kind: type[Record], text: str, sample: Sample | None = None) -> str:
    """Why a text is refused."""
    with pytest.raises(ValueError) as error:
        kind.from_json(text, sample)
    return str(error.value)


# What the first version wrote


@each_multiple_choice
def test_multiple_choice_record_is_written_as_it_was_read(line: Line) -> None:
    text = line["record"]
    assert Transcript.from_json(text, sample_of(text)).to_json() == text


@each_open_ended
def test_open_ended_record_is_written_as_it_was_read(line: Line) -> None:
    text = line["record"]
    assert OpenEnded.from_json(text, sample_of(text)).to_json() == text


@each_multiple_choice
def test_multiple_choice_record_scores_as_it_did(line: Line) -> None:
    sample = sample_of(line["record"])
    transcript = Transcript.from_json(line["record"], sample)
    summary = transcript.score(sample, BUILTIN)
    assert metrics.multiple_choice(summary, transcript.reused) == line["metrics"]


@each_open_ended
def test_open_ended_record_scores_as_it_did(line: Line) -> None:
    record = OpenEnded.from_json(line["record"], sample_of(line["record"]))
    assert metrics.open_ended(record) == line["metrics"]


@each_multiple_choice
def test_playing_the_same_answers_writes_the_same_record(line: Line) -> None:
    sample = sample_of(line["record"])
    kept = Transcript.from_json(line["record"], sample)
    played = as_played(sample, kept.mode, kept.seed)
    episode = Episode(played, BUILTIN, kept.mode, kept.seed, kept.hint)
    for turn in kept.turns:
        episode.step(turn.answer)
    outputs = [turn.answer if turn.output is None else turn.output for turn in kept.turns]
    reused = [turn.reused for turn in kept.turns]
    examples = [
        Exchange(each.image, Box(*each.crop) if each.crop else None, "", each.answer)
        for each in kept.examples
    ]
    written = Transcript.of(episode, outputs, reused, raised(kept), kept.variant, examples)
    assert written.to_json() == line["record"]


@each_open_ended
def test_giving_the_same_answer_writes_the_same_record(line: Line) -> None:
    sample = sample_of(line["record"])
    kept = OpenEnded.from_json(line["record"], sample)
    episode = Episode(sample, BUILTIN)
    seen = replace(episode.observe(), options=(), text=kept.prompt)
    output = kept.generated if kept.output is None else kept.output
    written = OpenEnded.of(episode, seen, kept.generated, output, kept.judge.kind, raised(kept))
    assert written.judged(kept.judge).to_json() == line["record"]


@each_multiple_choice
def test_record_says_of_its_sample_what_scoring_finds(line: Line) -> None:
    sample = sample_of(line["record"])
    transcript = Transcript.from_json(line["record"], sample)
    summary = transcript.score(sample, BUILTIN)
    if summary is None:
        assert transcript.stop == "failed"
    else:
        said = (transcript.num_turns, transcript.correct_prediction)
        assert said == (summary.num_turns, summary.correct_prediction)


def test_all_that_a_record_can_hold_is_among_them() -> None:
    """A guard on the files: with these cases gone, the tests above would prove less."""
    played = [Transcript.from_json(line["record"]) for line in MULTIPLE_CHOICE]
    turns = [turn for transcript in played for turn in transcript.turns]
    answered = [OpenEnded.from_json(line["record"]) for line in OPEN_ENDED]
    assert {each.dataset for each in played} == {each.dataset for each in answered} == set(Dataset)
    assert {each.mode for each in played} == set(Mode)
    assert {each.stop for each in played} == {
        "solved", "wrong", "mismatch", "max_turns", "out_of_range", "failed"
    }  # fmt: skip
    variants = [each.variant for each in played]
    for name in ("hint", "history", "icl", "icl_generic", "cot", "strip_thinking", "seed"):
        assert any(getattr(variant, name) for variant in variants), name
    assert any(example.crop for each in played for example in each.examples)
    assert any(turn.crop for turn in turns)
    assert any(turn.output is not None for turn in turns)
    assert any(turn.reused for turn in turns)
    assert {each.judge.kind for each in answered} == {"", "later", "lexical", "hf", "openai"}
    assert any(each.crop for each in answered)
    assert any(each.output is not None for each in answered)
    assert any(each.error is not None for each in answered)
    assert any(each.judge.unscored is not None for each in answered)


# What is refused


@both_kinds
@pytest.mark.parametrize("text", ["", "A", "{", "not JSON", '{"schema": 1'])
def test_text_that_is_not_json_is_refused(kind: type[Record], text: str) -> None:
    assert "Expecting" in refusal(kind, text)  # json's own words


@both_kinds
def test_record_that_is_cut_short_is_refused(kind: type[Record]) -> None:
    for length in range(len(WHOLE[kind])):
        assert refusal(kind, WHOLE[kind][:length])


@both_kinds
def test_deep_nesting_is_refused(kind: type[Record]) -> None:
    nested = "[" * 100_000 + "]" * 100_000
    assert refusal(kind, nested).startswith("not JSON: ")


@both_kinds
@pytest.mark.parametrize("text", ["null", "3", '"text"', "[]", "true", "{}"])
def test_json_that_is_no_record_is_refused(kind: type[Record], text: str) -> None:
    assert refusal(kind, text) == "not a transcript of schema 1"


@both_kinds
@pytest.mark.parametrize("schema", [0, 2, "1", None, [1]])
def test_other_schema_is_refused(kind: type[Record], schema: object) -> None:
    assert refusal(kind, spoiled(kind, schema=schema)) == "not a transcript of schema 1"


@both_kinds
def test_record_of_another_sample_is_refused(kind: type[Record]) -> None:
    sample = sample_of(WHOLE[kind])
    other_id = spoiled(kind, id=99)
    assert refusal(kind, other_id, sample) == (
        f"transcript of {sample.dataset.value} 99, not of this sample"
    )
    other_dataset = spoiled(kind, dataset="coco2014")
    assert refusal(kind, other_dataset, sample) == (
        f"transcript of coco2014 {sample.id}, not of this sample"
    )


@both_kinds
def test_record_of_any_sample_is_read_where_none_is_given(kind: type[Record]) -> None:
    assert kind.from_json(spoiled(kind, id=99)).id == 99


MISSING = [
    (kind, field)
    for kind, text in WHOLE.items()
    for field in json.loads(text)
    if field != "schema"  # without it, it is another schema
]


@pytest.mark.parametrize(("kind", "field"), MISSING)
def test_missing_field_is_named(kind: type[Record], field: str) -> None:
    record = json.loads(WHOLE[kind])
    del record[field]
    assert refusal(kind, json.dumps(record)).startswith(
        f"not a whole transcript: {field}: Field required"
    )


@pytest.mark.parametrize(
    ("kind", "fields", "found"),
    [
        (Transcript, {"dataset": "COCO"}, "dataset: .* found 'COCO'"),
        (Transcript, {"id": "seven"}, "id: .* found 'seven'"),
        (Transcript, {"protocol": None}, "protocol: .* found None"),
        (Transcript, {"mode": "oracle"}, "mode: .* found 'oracle'"),
        (Transcript, {"hint": "perhaps"}, "hint: .* found 'perhaps'"),
        (Transcript, {"seed": None}, "seed: .* found None"),
        (Transcript, {"setting": {"hints": True}}, r"setting\.hints: .* found True"),
        (Transcript, {"setting": {"icl": -1}}, r"setting\.icl: .* found -1"),
        (Transcript, {"examples": None}, "examples: .* found None"),
        (Transcript, {"examples": [{"crop": None}]}, r"examples\.0\.image: Field required"),
        (Transcript, {"turns": 3}, "turns: .* found 3"),
        (Transcript, {"turns": [3]}, r"turns\.0: .* found 3"),
        (Transcript, {"turns": [{"answer": "A"}]}, r"turns\.0\.image: Field required"),
        (Transcript, {"num_turns": 1.5}, r"num_turns: .* found 1\.5"),
        (Transcript, {"stop": 1}, "stop: .* found 1"),
        (Transcript, {"error": 3}, "error: .* found 3"),
        (OpenEnded, {"image": None}, "image: .* found None"),
        (OpenEnded, {"crop": [1, 2, 3]}, r"crop\.3: Field required"),
        (OpenEnded, {"valid_answers": ["Dog"]}, r"valid_answers: .* found \['Dog'\]"),
        (OpenEnded, {"generated": None}, "generated: .* found None"),
        (OpenEnded, {"error": 3}, "error: .* found 3"),
        (OpenEnded, {"judge": None}, "judge: .* found None"),
        (OpenEnded, {"judge": {}}, r"judge\.kind: Field required"),
        (OpenEnded, {"judge": {"kind": "hf", "verdict": "1, 0"}}, r"judge\.verdict: .*'1, 0'"),
    ],
)
def test_mistyped_field_is_named_and_quoted(
    kind: type[Record], fields: dict[str, object], found: str
) -> None:
    with pytest.raises(ValueError, match=f"^not a whole transcript: {found}"):
        kind.from_json(spoiled(kind, **fields))


@pytest.mark.parametrize("answer", [None, 3, ["A"], {}])
def test_mistyped_answer_of_a_turn_is_named_with_its_position(answer: object) -> None:
    turns = json.loads(WHOLE[Transcript])["turns"]
    turns[-1]["answer"] = answer
    message = refusal(Transcript, spoiled(Transcript, turns=turns))
    assert message.startswith(f"not a whole transcript: turns.{len(turns) - 1}.answer: ")


def test_all_faults_are_named_at_once() -> None:
    message = refusal(OpenEnded, spoiled(OpenEnded, generated=1, prompt=2))
    assert "generated: " in message and "prompt: " in message


def test_record_of_the_other_kind_is_refused() -> None:
    assert "turns: Field required" in refusal(Transcript, WHOLE[OpenEnded])
    assert "generated: Field required" in refusal(OpenEnded, WHOLE[Transcript])


@both_kinds
def test_field_of_a_later_version_is_kept(kind: type[Record]) -> None:
    record = kind.from_json(spoiled(kind, later={"a": 1}))
    assert json.loads(record.to_json())["later"] == {"a": 1}
    assert {**json.loads(record.to_json()), "later": 0} == {**json.loads(WHOLE[kind]), "later": 0}


# A record is a value


CHANGES: list[Callable[[Transcript, OpenEnded], None]] = [
    lambda transcript, _: setattr(transcript, "error", None),
    lambda transcript, _: setattr(transcript, "turns", ()),
    lambda transcript, _: setattr(transcript.turns[0], "answer", "A"),
    lambda transcript, _: setattr(transcript.variant, "hint", True),
    lambda _, record: setattr(record, "generated", "A dog."),
    lambda _, record: setattr(record, "judge", Judgement(kind="later")),
    lambda _, record: setattr(record.judge, "verdict", (1, 1)),
    lambda _, record: setattr(record.judge.identity, "model", "other"),
]


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
def test_records_cannot_be_changed(change: Callable[[Transcript, OpenEnded], None]) -> None:
    transcript = Transcript.from_json(WHOLE[Transcript])
    record = OpenEnded.from_json(WHOLE[OpenEnded])
    with pytest.raises(ValidationError, match="frozen"):
        change(transcript, record)
    assert (transcript.to_json(), record.to_json()) == (WHOLE[Transcript], WHOLE[OpenEnded])


def test_judged_record_is_another_one() -> None:
    record = OpenEnded.from_json(WHOLE[OpenEnded])
    judgement = Judgement(kind="later")
    assert record.judged(judgement).judge == judgement
    assert record.to_json() == WHOLE[OpenEnded]


def test_judged_record_differs_in_its_judgement_only() -> None:
    record = OpenEnded.from_json(WHOLE[OpenEnded])
    before, after = (
        json.loads(each.to_json()) for each in (record, record.judged(Judgement(kind="later")))
    )
    assert after == before | {"judge": {"kind": "later"}}
