"""Records: what was written once can be read, scored and written again; anything else is refused.

``records/`` holds records that were written by earlier versions of this package (see its README).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fakes import world
from hypothesis import given, settings
from hypothesis import strategies as st
from lmms_eval import evaluator
from lmms_eval.api.reasoning import strip_reasoning_tags
from pydantic import BaseModel, ValidationError

from proactivebench_tasks import errors
from proactivebench_tasks.data import rows
from proactivebench_tasks.demo import DATA
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.errors import RecordError
from proactivebench_tasks.model_patches import reasoning_tags
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.results import metrics, scoring
from proactivebench_tasks.transcripts.answer import Answer, Origin
from proactivebench_tasks.transcripts.conversation import Exchange
from proactivebench_tasks.transcripts.open_ended import Judgement, OpenEnded
from proactivebench_tasks.transcripts.reader import read
from proactivebench_tasks.transcripts.record import Provenance, Record
from proactivebench_tasks.transcripts.transcript import Transcript
from proactivebench_tasks.transcripts.variant import Variant

Line = dict[str, Any]

FOLDER = Path(__file__).parent / "records"


def lines(name: str) -> list[Line]:
    """The lines of a file of records: ``case``, ``record`` (text) and ``metrics`` of each."""
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


OLD_MULTIPLE_CHOICE, OLD_OPEN_ENDED = lines("multiple_choice"), lines("open_ended")
MULTIPLE_CHOICE, OPEN_ENDED = lines("multiple_choice_2"), lines("open_ended_2")
OLD, NEW = OLD_MULTIPLE_CHOICE + OLD_OPEN_ENDED, MULTIPLE_CHOICE + OPEN_ENDED
#: One whole record of each kind, to spoil.
WHOLE: dict[type[Record], str] = {
    Transcript: MULTIPLE_CHOICE[0]["record"],
    OpenEnded: OPEN_ENDED[0]["record"],
}


def each(lines: list[Line]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("line", lines, ids=[str(line["case"]) for line in lines])


both_kinds = pytest.mark.parametrize("kind", WHOLE, ids=lambda kind: kind.__name__)


@cache
def demo_samples(dataset: Dataset) -> dict[int, Sample]:
    return {row.sample.id: row.sample for row in rows.read(DATA / "test" / dataset.jsonl, dataset)}


def sample_of(text: str) -> Sample:
    """The demo's sample that a record is of."""
    record = json.loads(text)
    return demo_samples(Dataset(record["dataset"]))[record["id"]]


def scored(record: Transcript | OpenEnded, sample: Sample) -> dict[str, float]:
    if isinstance(record, OpenEnded):
        return metrics.open_ended(record)
    return metrics.multiple_choice(record, record.replay(sample, BUILTIN))


def raised(record: Transcript | OpenEnded) -> Exception | None:
    """The error that a record tells of."""
    if record.error is None:
        return None
    name, _, message = record.error.partition(": ")
    return getattr(errors, name)(message)  # type: ignore[no-any-return]


def origin(record: Transcript | OpenEnded) -> Provenance:
    """Where a record says that it came from."""
    shown = [*record.examples, *record.turns] if isinstance(record, Transcript) else [record]
    files = {each.image: str(each.file) for each in shown}
    row, tags = str(record.row), record.reasoning_tags
    return Provenance(record.suite, row, record.variant, tags, files.__getitem__)


def spoiled(kind: type[Record], /, **fields: object) -> str:
    """A whole record with some of its fields replaced."""
    return json.dumps(json.loads(WHOLE[kind]) | fields)


def refusal(kind: type[Record], text: str, sample: Sample | None = None) -> str:
    """Why a text is refused."""
    with pytest.raises(RecordError) as error:
        kind.from_json(text, sample)
    return str(error.value)


# What is written


@each(NEW)
def test_record_is_written_as_it_was_read(line: Line) -> None:
    text = line["record"]
    assert read(text).to_json() == text


@each(OLD + NEW)
def test_record_scores_as_it_did(line: Line) -> None:
    sample = sample_of(line["record"])
    found = scored(read(line["record"]), sample)
    assert {name: found[name] for name in line["metrics"]} == line["metrics"]


@each(NEW)
def test_record_scores_alike_by_the_sample_that_it_holds(line: Line) -> None:
    record = read(line["record"])
    assert scored(record, record.own_sample()) == line["metrics"]


@each(MULTIPLE_CHOICE)
def test_playing_the_same_answers_writes_the_same_record(line: Line) -> None:
    kept = Transcript.from_json(line["record"])
    variant = kept.variant
    episode = Episode(sample_of(line["record"]), BUILTIN, variant.mode, variant.seed, variant.hint)
    for turn in kept.turns:
        episode.step(turn.answer)
    answers = [
        Answer(
            turn.answer if turn.output is None else turn.output,
            Origin.EPISODE if turn.reused else Origin.MODEL,
        )
        for turn in kept.turns
    ]
    examples = [
        Exchange(each.image, each.crop, str(each.text), each.answer) for each in kept.examples
    ]
    written = Transcript.of(episode, answers, origin(kept), kept.costs, raised(kept), examples)
    assert written.to_json() == line["record"]


@each(OPEN_ENDED)
def test_giving_the_same_answer_writes_the_same_record(line: Line) -> None:
    kept = OpenEnded.from_json(line["record"])
    episode = Episode(sample_of(line["record"]), BUILTIN)
    seen = replace(episode.observe(), options=(), text=kept.prompt)
    answer = None if kept.error else Answer(kept.output or kept.generated)
    written = OpenEnded.of(episode, seen, answer, origin(kept), kept.costs, raised(kept))
    assert written.judge == Judgement(kind=kept.variant.judge)
    assert written.judged(kept.judge).to_json() == line["record"]


@each(OLD_MULTIPLE_CHOICE + MULTIPLE_CHOICE)
def test_record_says_of_its_sample_what_scoring_finds(line: Line) -> None:
    transcript = Transcript.from_json(line["record"])
    episode = transcript.replay(sample_of(line["record"]), BUILTIN)
    if episode is None:
        assert transcript.stop == "failed"
    else:
        summary = episode.summary()
        said = (transcript.num_turns, transcript.correct_prediction)
        assert said == (summary.num_turns, summary.correct_prediction)


def test_all_that_a_record_can_hold_is_among_them() -> None:
    """A guard on the files: with these cases gone, the tests above would prove less."""
    old = [Transcript.from_json(line["record"]) for line in OLD_MULTIPLE_CHOICE]
    new = [Transcript.from_json(line["record"]) for line in MULTIPLE_CHOICE]
    answered = [OpenEnded.from_json(line["record"]) for line in OLD_OPEN_ENDED + OPEN_ENDED]
    assert {each.dataset for each in old} == {each.dataset for each in answered} == set(Dataset)
    for played in (old, new):
        assert {each.variant.mode for each in played} == set(Mode)
        for name in ("hint", "history", "icl", "icl_generic", "cot", "seed"):
            assert any(getattr(each.variant, name) for each in played), name
        assert any(each.reasoning_tags for each in played)
        assert any(example.crop for each in played for example in each.examples)
        assert any(len(each.turns) > 2 for each in played)
        turns = [turn for each in played for turn in each.turns]
        assert any(turn.crop for turn in turns)
        assert any(turn.output is not None for turn in turns)
        assert any(turn.reused for turn in turns)
    assert {each.stop for each in old} == {
        "solved", "wrong", "mismatch", "max_turns", "out_of_range", "failed"
    }  # fmt: skip
    assert any(turn.cut for each in new for turn in each.turns)
    assert any(str(turn.file).startswith("zip://") for each in new for turn in each.turns)
    assert {each.judge.kind for each in answered} == {"", "later", "lexical", "hf", "openai"}
    assert any(each.crop for each in answered)
    assert any(each.output is not None for each in answered)
    assert any(each.cut for each in answered)
    assert any(each.error is not None for each in answered)
    assert any(each.judge.unscored is not None for each in answered)


def test_no_field_is_read_or_written_that_the_model_does_not_have() -> None:
    """Unknown fields are kept, so a misspelt one would be, too."""

    def unknown(value: object) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if isinstance(value, BaseModel):
            found |= value.model_extra or {}
            for name in type(value).model_fields:
                found |= unknown(getattr(value, name))
        if isinstance(value, tuple):
            for each in value:
                found |= unknown(each)
        return found

    assert [line["case"] for line in OLD + NEW if unknown(read(line["record"]))] == []


@pytest.mark.parametrize("dataset", Dataset)
@pytest.mark.parametrize("mode", Mode)
def test_own_sample_is_the_one_that_was_played(dataset: Dataset, mode: Mode) -> None:
    for row in world.rows(dataset, list(range(6))):
        sample = parse_sample(dataset, row)
        variant = Variant(mode=mode, seed=3)
        episode = Episode(sample, BUILTIN, mode, seed=3)
        while not episode.done:
            asked = episode.correct_suggestions[:1] or episode.correct_categories[:1]
            episode.step(asked[0] if asked else "?")
        answers = [Answer(turn.answer) for turn in episode.turns]
        origin = Provenance("demo", "x-1", variant, (), str)
        text = Transcript.of(episode, answers, origin).to_json()
        record = Transcript.from_json(text, sample)
        assert record.own_sample() == episode.sample
        replayed = record.replay(record.own_sample(), BUILTIN)
        assert replayed is not None
        assert replayed.turns == episode.turns


# Records of schema 1


@each(OLD)
def test_record_of_schema_1_is_written_in_schema_2_without_loss(line: Line) -> None:
    record = read(line["record"])
    text = record.to_json()
    assert json.loads(text)["schema"] == 2
    assert read(text) == record
    assert read(text).to_json() == text
    before, after = json.loads(line["record"]), json.loads(text)
    beside = {"schema", "setting", "mode", "hint", "seed"}  # which the variant says now
    assert {name: after[name] for name in before if name not in beside} == {
        name: before[name] for name in before if name not in beside
    }


@each(OLD_MULTIPLE_CHOICE)
def test_record_of_schema_1_says_what_the_task_asked_for(line: Line) -> None:
    before, record = json.loads(line["record"]), read(line["record"])
    assert (record.kind, record.suite) == ("multiple_choice", "demo")
    variant = record.variant
    told = (variant.mode.value, variant.hint, variant.seed)
    assert told == (before["mode"], before["hint"], before["seed"])
    stripped = before["setting"].pop("strip_thinking", False)
    assert variant.asked_for() == before["setting"]
    assert record.reasoning_tags == ((("<think>", "</think>"),) if stripped else ())


@each(OLD_OPEN_ENDED)
def test_open_ended_record_of_schema_1_says_what_it_is(line: Line) -> None:
    record = read(line["record"])
    assert (record.kind, record.suite) == ("open_ended", "demo")
    assert record.variant.asked_for() == {"open_ended": True}
    assert bool(record.reasoning_tags) == ("output" in json.loads(line["record"]))


def test_record_of_schema_1_of_the_official_data_is_official() -> None:
    text = OLD[0]["record"].replace("builtin-1", "proactivebench-0.1.1")
    assert read(text).suite == "official"


@pytest.mark.parametrize("line", [OLD_MULTIPLE_CHOICE[0], OLD_OPEN_ENDED[0]])
def test_record_of_schema_1_holds_no_sample(line: Line) -> None:
    with pytest.raises(RecordError) as error:
        read(line["record"]).own_sample()
    assert str(error.value) == "the record holds no sample: it is of schema 1"


def test_records_own_sample_may_be_malformed() -> None:
    sample = json.loads(WHOLE[Transcript])["sample"] | {"answer": "A whale."}
    with pytest.raises(RecordError, match=r"^the record's sample: answer 'A whale\.' is not among"):
        read(spoiled(Transcript, sample=sample)).own_sample()


@pytest.mark.parametrize("setting", [None, 3, "hint", ["hint"]])
def test_mistyped_setting_of_schema_1_is_quoted(setting: object) -> None:
    text = json.dumps(json.loads(OLD[0]["record"]) | {"setting": setting})
    assert refusal(Transcript, text) == (
        f"not a whole record: setting: expected an object, found {setting!r}"
    )


# What is refused


@both_kinds
@pytest.mark.parametrize("text", ["", "A", "{", "not JSON", '{"schema": 2', '{"schema": 2}{}'])
def test_text_that_is_not_json_is_refused(kind: type[Record], text: str) -> None:
    message = refusal(kind, text)
    assert message.startswith("not JSON: Expecting ") or message.startswith("not JSON: Extra data")


@both_kinds
@pytest.mark.parametrize("text", [None, 3, ["A"]])
def test_response_that_is_no_text_is_refused(kind: type[Record], text: Any) -> None:
    assert refusal(kind, text).startswith("not JSON: the JSON object must be str")


@both_kinds
def test_record_that_is_cut_short_is_refused(kind: type[Record]) -> None:
    for length in range(len(WHOLE[kind])):
        assert refusal(kind, WHOLE[kind][:length]).startswith("not JSON: ")


@both_kinds
def test_deep_nesting_is_refused(kind: type[Record]) -> None:
    nested = "[" * 100_000 + "]" * 100_000
    assert refusal(kind, nested).startswith("not JSON: ")


@both_kinds
@pytest.mark.parametrize("text", ["null", "3", '"text"', "[]", "true", '[{"schema": 2}]'])
def test_json_that_is_no_object_is_refused(kind: type[Record], text: str) -> None:
    assert refusal(kind, text) == f"not a record: expected an object, found {text!r}"


@both_kinds
@pytest.mark.parametrize("schema", [0, 3, "1", "2", None, [2]], ids=repr)
def test_other_schema_is_refused(kind: type[Record], schema: object) -> None:
    message = f"a record of schema {schema!r}; this version reads 1 and 2"
    assert refusal(kind, spoiled(kind, schema=schema)) == message


@both_kinds
@pytest.mark.parametrize("text", ["{}", '{"answer": "A"}'])
def test_object_without_a_schema_is_refused(kind: type[Record], text: str) -> None:
    assert refusal(kind, text) == "a record of schema None; this version reads 1 and 2"


@both_kinds
@pytest.mark.parametrize("other", ["chess", "", None, ["multiple_choice"], {}], ids=repr)
def test_other_kind_is_refused(kind: type[Record], other: object) -> None:
    text = spoiled(kind, kind=other)
    assert refusal(kind, text) == f"a record of kind {other!r}, not {kind.KIND.value!r}"
    with pytest.raises(RecordError) as error:
        read(text)
    known = "neither 'multiple_choice' nor 'open_ended'"
    assert str(error.value) == f"a record of kind {other!r}, {known}"


def test_record_without_a_kind_is_refused() -> None:
    record = json.loads(WHOLE[Transcript])
    del record["kind"]
    message = "a record of kind None, not 'multiple_choice'"
    assert refusal(Transcript, json.dumps(record)) == message


@pytest.mark.parametrize(
    ("multiple_choice", "open_ended"),
    [(MULTIPLE_CHOICE[0], OPEN_ENDED[0]), (OLD_MULTIPLE_CHOICE[0], OLD_OPEN_ENDED[0])],
    ids=["schema 2", "schema 1"],
)
def test_record_of_the_other_kind_is_refused(multiple_choice: Line, open_ended: Line) -> None:
    message = "a record of kind 'open_ended', not 'multiple_choice'"
    assert refusal(Transcript, open_ended["record"]) == message
    message = "a record of kind 'multiple_choice', not 'open_ended'"
    assert refusal(OpenEnded, multiple_choice["record"]) == message


@both_kinds
@pytest.mark.parametrize("fields", [{"id": 99}, {"dataset": "ImageNet-C", "id": 99}], ids=repr)
def test_record_of_another_sample_is_refused(kind: type[Record], fields: Line) -> None:
    sample = sample_of(WHOLE[kind])
    found = fields.get("dataset", sample.dataset.value)
    assert refusal(kind, spoiled(kind, **fields), sample) == (
        f"a record of {found} 99, not of {sample.dataset.value} {sample.id}"
    )


@both_kinds
def test_record_of_a_sample_with_the_same_number_in_another_dataset_is_refused(
    kind: type[Record],
) -> None:
    sample = sample_of(WHOLE[kind])
    assert refusal(kind, spoiled(kind, dataset="coco2014"), sample) == (
        f"a record of coco2014 {sample.id}, not of {sample.dataset.value} {sample.id}"
    )


@both_kinds
def test_record_of_any_sample_is_read_where_none_is_given(kind: type[Record]) -> None:
    assert kind.from_json(spoiled(kind, id=99)).id == 99


OPTIONAL = (
    "schema",
    "kind",
    "row",
    "sample",
    "file",
    "costs",
)  # the first two are looked at before
MISSING = [
    (kind, field) for kind, text in WHOLE.items() for field in json.loads(text).keys() - OPTIONAL
]


@pytest.mark.parametrize(("kind", "field"), sorted(MISSING, key=str))
def test_missing_field_is_named(kind: type[Record], field: str) -> None:
    record = json.loads(WHOLE[kind])
    del record[field]
    assert refusal(kind, json.dumps(record)) == f"not a whole record: {field}: Field required"


@pytest.mark.parametrize("field", ["image", "image_id", "options", "answer", "category"])
def test_missing_field_of_a_turn_is_named_with_its_position(field: str) -> None:
    turns = json.loads(WHOLE[Transcript])["turns"]
    del turns[-1][field]
    assert refusal(Transcript, spoiled(Transcript, turns=turns)) == (
        f"not a whole record: turns.{len(turns) - 1}.{field}: Field required"
    )


@pytest.mark.parametrize(
    ("kind", "fields", "found"),
    [
        (Transcript, {"dataset": "COCO"}, "dataset: .* found 'COCO'"),
        (Transcript, {"dataset": None}, "dataset: .* found None"),
        (Transcript, {"id": "seven"}, "id: .* found 'seven'"),
        (Transcript, {"protocol": None}, "protocol: .* found None"),
        (Transcript, {"suite": 3}, "suite: .* found 3"),
        (Transcript, {"sample": [1]}, r"sample: .* found \[1\]"),
        (Transcript, {"variant": None}, "variant: .* found None"),
        (Transcript, {"variant": {"hints": True}}, r"variant\.hints: .* found True"),
        (Transcript, {"variant": {"mode": "oracle"}}, r"variant\.mode: .* found 'oracle'"),
        (Transcript, {"variant": {"hint": "perhaps"}}, r"variant\.hint: .* found 'perhaps'"),
        (Transcript, {"variant": {"icl": -1}}, r"variant\.icl: .* found -1"),
        (Transcript, {"reasoning_tags": "<think>"}, "reasoning_tags: .* found '<think>'"),
        (Transcript, {"reasoning_tags": [["<think>"]]}, r"reasoning_tags\.0\.1: Field required"),
        (Transcript, {"examples": None}, "examples: .* found None"),
        (Transcript, {"turns": 3}, "turns: .* found 3"),
        (Transcript, {"turns": [3]}, r"turns\.0: .* found 3"),
        (Transcript, {"num_turns": 1.5}, r"num_turns: .* found 1\.5"),
        (Transcript, {"stop": 1}, "stop: .* found 1"),
        (Transcript, {"error": 3}, "error: .* found 3"),
        (Transcript, {"costs": [{"calls": "many"}]}, r"costs\.0\.calls: .* found 'many'"),
        (Transcript, {"costs": [{"tokens": 3}]}, r"costs\.0\.tokens: .* found 3"),
        (OpenEnded, {"image": None}, "image: .* found None"),
        (OpenEnded, {"crop": [1, 2, 3]}, r"crop: .* found \[1, 2, 3\]"),
        (OpenEnded, {"crop": "abcd"}, "crop: .* found 'abcd'"),
        (OpenEnded, {"crop": [1, 2, "x", 4]}, r"crop\.right: .* found 'x'"),
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
    with pytest.raises(RecordError, match=f"^not a whole record: {found}"):
        kind.from_json(spoiled(kind, **fields))


@pytest.mark.parametrize("answer", [None, 3, ["A"], {}])
def test_mistyped_answer_of_a_turn_is_named_with_its_position(answer: object) -> None:
    turns = json.loads(WHOLE[Transcript])["turns"]
    turns[-1]["answer"] = answer
    message = refusal(Transcript, spoiled(Transcript, turns=turns))
    assert message.startswith(f"not a whole record: turns.{len(turns) - 1}.answer: ")


def test_all_faults_are_named_at_once() -> None:
    message = refusal(OpenEnded, spoiled(OpenEnded, generated=1, prompt=2))
    assert "generated: " in message and "prompt: " in message


# What later versions may write


@both_kinds
def test_field_of_a_later_version_is_kept(kind: type[Record]) -> None:
    text = spoiled(kind, later={"a": 1})
    assert json.loads(kind.from_json(text).to_json()) == json.loads(text)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (MULTIPLE_CHOICE[0], "turns"),
        (MULTIPLE_CHOICE[0], "costs"),
        (MULTIPLE_CHOICE[2], "examples"),
        (OPEN_ENDED[0], "costs"),
    ],
)
def test_field_of_a_later_version_is_kept_in_every_part(line: Line, part: str) -> None:
    value = json.loads(line["record"])
    for each in value[part]:
        each["later"] = [1]
    assert value[part]
    assert json.loads(read(json.dumps(value)).to_json()) == value


def test_field_of_a_later_version_is_kept_in_a_judgement() -> None:
    judge = {"kind": "hf", "later": 1}
    text = spoiled(OpenEnded, judge=judge)
    assert json.loads(read(text).to_json())["judge"] == judge


# Texts that are hard to write, and what the harness does to texts


@pytest.mark.parametrize("answer", ["\ud83d", "\ude00 A", "A\ud83d\n"])
def test_half_a_surrogate_pair_survives(answer: str) -> None:
    turns = json.loads(WHOLE[Transcript])["turns"]
    turns[-1]["answer"] = answer
    record = Transcript.from_json(spoiled(Transcript, turns=turns))
    text = record.to_json()
    assert text.encode("utf-8")
    assert Transcript.from_json(text) == record
    assert record.turns[-1].answer == answer


@both_kinds
def test_row_of_a_samples_file_can_be_written_whatever_was_answered(kind: type[Record]) -> None:
    plain = kind.from_json(WHOLE[kind])
    assert plain.to_row() == json.loads(WHOLE[kind])
    row = kind.from_json(spoiled(kind, error="\ud83d 猫")).to_row()
    assert row == json.loads(spoiled(kind, error="? 猫"))
    assert json.dumps(row, ensure_ascii=False).encode("utf-8")


@each(MULTIPLE_CHOICE)
def test_scored_sample_can_be_written_whatever_was_answered(line: Line) -> None:
    text, sample = line["record"], sample_of(line["record"])
    row = scoring.multiple_choice([text, text], sample, BUILTIN, pytest.fail)
    assert json.dumps(row, ensure_ascii=False).encode("utf-8")
    assert row["transcript"] == [read(text).to_row()] * 2


@each(NEW)
def test_record_is_read_from_the_row_of_a_samples_file(line: Line) -> None:
    record = read(line["record"])
    again = type(record).from_dict(record.to_row())
    assert again.to_row() == record.to_row()


THINK = [["<think>", "</think>"]]


@each(OLD + NEW)
def test_harness_strips_no_tags_out_of_a_record(line: Line) -> None:
    reasoning_tags.apply()
    for tags in (THINK, [["A", "B"]], [['"', '"']], [["{", "}"], ["[", "]"]], [[" ", "answer"]]):
        assert evaluator.strip_reasoning_tags(line["record"], tags) == line["record"]


@settings(deadline=None)
@given(data=st.data())
def test_harness_strips_nothing_whatever_the_tags_are(data: st.DataObject) -> None:
    reasoning_tags.apply()
    text = data.draw(st.sampled_from(OLD + NEW))["record"]
    places = st.integers(0, len(text) - 1)
    tags = [
        [text[start : start + data.draw(st.integers(1, 20))] for start in pair]
        for pair in data.draw(st.lists(st.tuples(places, places), max_size=3))
    ]
    assert evaluator.strip_reasoning_tags(text, tags) == text


def test_harness_would_strip_without_the_patch_and_strips_other_texts() -> None:
    reasoning_tags.apply()
    thought = next(line["record"] for line in NEW if "</think>" in line["record"])
    assert strip_reasoning_tags(thought, THINK) != thought
    assert evaluator.strip_reasoning_tags("<think>a</think> F", THINK) == "F"


# A record is a value


CHANGES: list[Callable[[Transcript, OpenEnded], None]] = [
    lambda transcript, _: setattr(transcript, "error", None),
    lambda transcript, _: setattr(transcript, "turns", ()),
    lambda transcript, _: setattr(transcript.turns[0], "answer", "A"),
    lambda transcript, _: setattr(transcript.costs[0], "calls", 3),
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


def test_judged_record_differs_in_its_judgement_only() -> None:
    record = OpenEnded.from_json(WHOLE[OpenEnded])
    after = record.judged(Judgement(kind="later"))
    assert json.loads(after.to_json()) == json.loads(WHOLE[OpenEnded]) | {
        "judge": {"kind": "later"}
    }
    assert record.to_json() == WHOLE[OpenEnded]
