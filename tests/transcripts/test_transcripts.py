"""Transcripts: they hold what happened, survive the harness, and score to the same result.

Reading records of earlier versions, and all that is refused as a record, is in ``test_records.py``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from fakes import world

from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode, Summary
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.results import metrics
from proactivebench_tasks.transcripts.transcript import Transcript


def sample(dataset: Dataset = Dataset.VSOD, **fields: Any) -> Sample:
    """VSOD options: A. Wait, B. Rewind, C. refusal, D to G. categories, of which D is right."""
    return parse_sample(dataset, world.rows(dataset, [7])[0] | {"num_images": 3} | fields)


def play(*answers: str, mode: Mode = Mode.NORMAL, hint: bool = False) -> Episode:
    episode = Episode(sample(), BUILTIN, mode, seed=5, hint=hint)
    for answer in answers:
        episode.step(answer)
    return episode


def transcript(*answers: str, error: Exception | None = None, hint: bool = False) -> Transcript:
    return Transcript.of(play(*answers, hint=hint), answers, [False] * len(answers), error)


def scored(text: str) -> Summary | None:
    return Transcript.from_json(text, sample()).score(sample(), BUILTIN)


def altered(*answers: str, **fields: object) -> str:
    """A transcript with some of its fields replaced."""
    return json.dumps(json.loads(transcript(*answers).to_json()) | fields)


def without(field: str) -> str:
    record = json.loads(transcript("D").to_json())
    del record[field]
    return json.dumps(record)


@pytest.mark.parametrize("answers", ["D", "E", "H", "AD", "ABE", "AAA", ("",), ("A", "<D>")])
def test_score_is_the_summary_of_what_was_played(answers: Sequence[str]) -> None:
    assert scored(transcript(*answers).to_json()) == play(*answers).summary()


def test_record_names_the_sample_and_how_it_was_played() -> None:
    record = json.loads(transcript("A", "D", hint=True).to_json())
    turns = record.pop("turns")
    assert record == {
        "schema": 1,
        "protocol": "builtin-1",
        "dataset": "OcclusionDataSet-MM20",
        "id": 7,
        "mode": "normal",
        "hint": True,
        "seed": 5,
        "setting": {},
        "examples": [],
        "num_turns": 2,
        "correct_prediction": True,
        "stop": "solved",
        "error": None,
    }
    assert [turn["answer"] for turn in turns] == ["A", "D"]


def test_turn_holds_all_that_a_reader_needs() -> None:
    (turn,) = json.loads(transcript("D").to_json())["turns"]
    assert turn == {
        "image": "OcclusionDataSet-MM20/0_0000.png",
        "image_id": 0,
        "crop": None,
        "options": ["Wait for the bus.", "Rewind the video.", world.REFUSAL, *world.CATEGORIES],
        "answer": "D",
        "suggestion": "mismatch",
        "category": "correct",
    }


def test_window_is_recorded_left_top_right_bottom() -> None:
    episode = Episode(sample(Dataset.COCO), BUILTIN)
    episode.step("A boat.")
    (turn,) = json.loads(Transcript.of(episode, ["A boat."], [False]).to_json())["turns"]
    assert turn["crop"] == [56.0, 16.0, 112.0, 96.0]


def test_raw_output_is_kept_where_the_answer_was_taken_out_of_it() -> None:
    outputs = ["A", "<think>?</think>D"]
    record = json.loads(Transcript.of(play("A", "D"), outputs, [False, False]).to_json())
    assert [turn.get("output") for turn in record["turns"]] == [None, "<think>?</think>D"]


def test_reused_answer_is_marked() -> None:
    played = Transcript.of(play("A", "D"), ["A", "D"], [False, True])
    record = json.loads(played.to_json())
    assert [turn.get("reused", False) for turn in record["turns"]] == [False, True]
    assert played.reused == 1


@pytest.mark.parametrize(
    ("answers", "stop"),
    [("D", "solved"), ("E", "wrong"), ("H", "mismatch"), ("AAA", "max_turns"), ("A", None)],
)
def test_reason_of_the_stop_is_recorded(answers: str, stop: str | None) -> None:
    assert json.loads(transcript(*answers).to_json())["stop"] == stop


@pytest.mark.parametrize("tag", ["<think>so</think>", "</think>", "<|im_end|>", "<a href='x'>"])
def test_no_tag_is_left_for_the_harness_to_strip(tag: str) -> None:
    text = transcript("A", f"{tag} D").to_json()
    assert "<" not in text
    assert json.loads(text)["turns"][1]["answer"] == f"{tag} D"


def test_error_is_free_of_tags_too() -> None:
    text = transcript("A", error=ValueError("<b>bad</b>")).to_json()
    assert "<" not in text
    assert json.loads(text)["error"] == "ValueError: <b>bad</b>"


def test_backslash_before_a_tag_stays_a_backslash() -> None:
    text = transcript("\\<\\u003c").to_json()
    assert json.loads(text)["turns"][0]["answer"] == "\\<\\u003c"


def test_other_scripts_stay_readable() -> None:
    assert "猫" in transcript("猫").to_json()


def test_transcript_can_be_written_whatever_was_answered() -> None:
    assert transcript("\ud83d").to_json().encode("utf-8")


def test_answers_and_flags_of_another_number_of_turns_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        Transcript.of(play("A", "D"), ["A"], [False])


# Failed samples


@pytest.mark.parametrize("answers", ["", "A", "AB"])
def test_failed_sample_has_no_result(answers: str) -> None:
    text = transcript(*answers, error=DataError("no image")).to_json()
    assert scored(text) is None


def test_failed_sample_says_why_and_keeps_its_turns() -> None:
    record = json.loads(transcript("A", error=DataError("no image")).to_json())
    assert (record["stop"], record["error"]) == ("failed", "DataError: no image")
    assert len(record["turns"]) == record["num_turns"] == 1


# What scoring trusts


def test_only_the_answers_count() -> None:
    text = altered("E", correct_prediction=True, stop="solved", num_turns=9)
    assert scored(text) == play("E").summary()


def test_grades_in_the_record_count_for_nothing() -> None:
    record = json.loads(transcript("E").to_json())
    record["turns"][0] |= {"category": "correct", "options": [], "image": "?"}
    assert scored(json.dumps(record)) == play("E").summary()


def test_raw_output_counts_for_nothing() -> None:
    text = Transcript.of(play("E"), ["D"], [False]).to_json()
    assert scored(text) == play("E").summary()


def test_mode_of_the_record_is_played_again() -> None:
    played = play("A", mode=Mode.REFERENCE)
    summary = scored(Transcript.of(played, ["A"], [False]).to_json())
    assert summary == played.summary()
    assert summary is not None and summary.correct_prediction


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A",
        "null",
        "[]",
        "3",
        "{}",
        '{"schema": 0}',
        '{"schema": "1"}',
        transcript("D").to_json()[:-1],
        transcript("A", "D").to_json()[:80],
        transcript("D").to_json() + transcript("D").to_json(),
    ],
)
def test_text_that_is_no_transcript_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        scored(text)


@pytest.mark.parametrize(
    "fields", [{"id": 8}, {"id": "7"}, {"dataset": "ChangeIt"}, {"dataset": None}]
)
def test_transcript_of_another_sample_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not of this sample"):
        scored(altered("D", **fields))


@pytest.mark.parametrize("answers", ["", "A", "AB"])
def test_unfinished_transcript_is_refused(answers: str) -> None:
    with pytest.raises(ValueError, match="ends before the episode does"):
        scored(transcript(*answers).to_json())


def test_transcript_that_goes_on_after_the_end_is_refused() -> None:
    turns = json.loads(transcript("A", "D").to_json())["turns"]
    with pytest.raises(ValueError, match="is over"):
        scored(altered("D", turns=[*turns, *turns]))


def test_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="oracle"):
        scored(altered("D", mode="oracle"))


@pytest.mark.parametrize("field", ["dataset", "id", "error", "mode", "seed", "turns"])
def test_transcript_without_a_field_is_refused(field: str) -> None:
    with pytest.raises(ValueError):
        scored(without(field))


@pytest.mark.parametrize("turns", [None, 3, [3], [{}], [{"answer": None}]], ids=repr)
def test_transcript_with_mistyped_turns_is_refused(turns: object) -> None:
    with pytest.raises(ValueError):
        scored(altered("D", turns=turns))


# What a result is worth


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ("D", (100, 0, 0, 0, 0, 0)),
        ("E", (0, 0, 0, 0, 0, 0)),
        ("H", (0, 0, 0, 0, 100, 0)),
        ("AD", (100, 1, 100, 0, 0, 0)),
        ("ABD", (100, 2, 100, 100, 0, 0)),
        ("ABA", (0, 2, 100, 100, 0, 0)),
        ("ABH", (0, 2, 100, 100, 100, 0)),
    ],
)
def test_metrics_of_a_sample(answers: str, expected: tuple[int, ...]) -> None:
    result = metrics.multiple_choice(play(*answers).summary(), reused=3)
    assert result.pop("reused") == 3
    assert result == dict(
        zip(["acc", "ps", "asked", "max_steps", "mismatch", "failed"], expected, strict=True)
    )


def test_failed_sample_counts_as_zero_and_is_counted() -> None:
    result = metrics.multiple_choice(None)
    assert result.pop("failed") == 100
    assert set(result.values()) == {0.0}
    whole = metrics.multiple_choice(play("D").summary())
    assert result.keys() == whole.keys() - {"failed"}
