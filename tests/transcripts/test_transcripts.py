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
from proactivebench_tasks.environments.environment import Box, Mode
from proactivebench_tasks.environments.episode import Episode, Summary
from proactivebench_tasks.environments.lenient import Mismatch
from proactivebench_tasks.errors import DataError, RecordError
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.results import metrics
from proactivebench_tasks.transcripts.answer import Answer, Cost, Origin
from proactivebench_tasks.transcripts.conversation import Exchange
from proactivebench_tasks.transcripts.open_ended import OpenEnded
from proactivebench_tasks.transcripts.record import Provenance
from proactivebench_tasks.transcripts.thinking import Tags, spoken
from proactivebench_tasks.transcripts.transcript import Transcript
from proactivebench_tasks.transcripts.variant import Variant

THINK: Tags = (("<think>", "</think>"),)


def sample(dataset: Dataset = Dataset.VSOD, **fields: Any) -> Sample:
    """VSOD options: A. Wait, B. Rewind, C. refusal, D to G. categories, of which D is right."""
    return parse_sample(dataset, world.rows(dataset, [7])[0] | {"num_images": 3} | fields)


def provenance(tags: Tags = (), **variant: Any) -> Provenance:
    return Provenance("demo", "0a1b-8", Variant(**variant), tags, "/data/{}".format)


def play(*answers: str, mode: Mode = Mode.NORMAL, hint: bool = False) -> Episode:
    episode = Episode(sample(), BUILTIN, mode, seed=5, hint=hint)
    for answer in answers:
        episode.step(answer)
    return episode


def transcript(
    *outputs: str, tags: Tags = (), error: Exception | None = None, **variant: Any
) -> Transcript:
    """The record of a sample in which the model gave these texts, one a turn."""
    episode = play(*(spoken(text, tags).text for text in outputs), **variant)
    answers = [Answer(text) for text in outputs]
    return Transcript.of(episode, answers, provenance(tags, seed=5, **variant), error=error)


def scored(text: str) -> Summary | None:
    episode = Transcript.from_json(text, sample()).replay(sample(), BUILTIN)
    return episode and episode.summary()


def altered(*answers: str, **fields: object) -> str:
    """A transcript with some of its fields replaced."""
    return json.dumps(json.loads(transcript(*answers).to_json()) | fields)


@pytest.mark.parametrize("answers", ["D", "E", "H", "AD", "ABE", "AAA", ("",), ("A", "<D>")])
def test_score_is_the_summary_of_what_was_played(answers: Sequence[str]) -> None:
    assert scored(transcript(*answers).to_json()) == play(*answers).summary()


def test_record_names_the_sample_and_how_it_was_played() -> None:
    record = json.loads(transcript("A", "D", tags=THINK, hint=True).to_json())
    turns = record.pop("turns")
    shown = record.pop("sample")
    assert record == {
        "schema": 2,
        "kind": "multiple_choice",
        "protocol": "builtin-1",
        "suite": "demo",
        "dataset": "OcclusionDataSet-MM20",
        "id": 7,
        "row": "0a1b-8",
        "variant": {"hint": True, "seed": 5},
        "reasoning_tags": [["<think>", "</think>"]],
        "error": None,
        "examples": [],
        "num_turns": 2,
        "correct_prediction": True,
        "stop": "solved",
        "costs": [],
    }
    assert [turn["answer"] for turn in turns] == ["A", "D"]
    assert shown == world.rows(Dataset.VSOD, [7])[0] | {"num_images": 3}


TURN = {
    "image": "OcclusionDataSet-MM20/0_0000.png",
    "file": "/data/OcclusionDataSet-MM20/0_0000.png",
    "image_id": 0,
    "crop": None,
    "options": ["Wait for the bus.", "Rewind the video.", world.REFUSAL, *world.CATEGORIES],
    "answer": "D",
    "suggestion": "mismatch",
    "category": "correct",
}


@pytest.mark.parametrize("hint", [False, True])
def test_turn_holds_all_that_a_reader_needs(hint: bool) -> None:
    (turn,) = json.loads(transcript("D", hint=hint).to_json())["turns"]
    assert turn == TURN | {"text": play(hint=hint).observe().text}


def test_text_of_each_turn_is_the_one_that_was_shown() -> None:
    """COCO withdraws a direction that has reached its limit, so the list gets shorter."""
    row = world.rows(Dataset.COCO, [7])[0] | {"direction": "left_up", "granularity": 2}
    episode = Episode(parse_sample(Dataset.COCO, row), BUILTIN)
    texts = []
    while not episode.done:
        texts.append(episode.observe().text)
        episode.step((episode.correct_suggestions or (row["answer"],))[0])
    answers = [Answer(turn.answer) for turn in episode.turns]
    record = Transcript.of(episode, answers, provenance())
    assert [turn.text for turn in record.turns] == texts
    assert len(set(texts)) > 1


def test_window_is_recorded_left_top_right_bottom() -> None:
    episode = Episode(sample(Dataset.COCO), BUILTIN)
    episode.step("A boat.")
    record = Transcript.of(episode, [Answer("A boat.")], provenance())
    assert json.loads(record.to_json())["turns"][0]["crop"] == [56.0, 16.0, 112.0, 96.0]


def test_worked_examples_are_recorded_as_they_were_shown() -> None:
    shown = [
        Exchange("coco2014/1.png", Box(1, 2, 3, 4), "What is it?", "Move the camera up."),
        Exchange("coco2014/1.png", None, "And now?", "A boat."),
    ]
    record = Transcript.of(play("D"), [Answer("D")], provenance(icl=1), examples=shown)
    image = {"image": "coco2014/1.png", "file": "/data/coco2014/1.png"}
    assert json.loads(record.to_json())["examples"] == [
        {**image, "crop": [1, 2, 3, 4], "text": "What is it?", "answer": "Move the camera up."},
        {**image, "crop": None, "text": "And now?", "answer": "A boat."},
    ]


def test_raw_output_is_kept_where_the_answer_was_taken_out_of_it() -> None:
    record = json.loads(transcript("A", "<think>?</think>D", tags=THINK).to_json())
    assert [turn.get("output") for turn in record["turns"]] == [None, "<think>?</think>D"]
    assert [turn["answer"] for turn in record["turns"]] == ["A", "D"]


def test_without_tags_an_answer_is_recorded_as_it_is() -> None:
    (turn,) = json.loads(transcript("<think>?</think>D").to_json())["turns"]
    assert turn["answer"] == "<think>?</think>D"
    assert "output" not in turn


@pytest.mark.parametrize(
    ("output", "is_cut"),
    [
        ("D", False),
        ("<think>?</think>D", False),
        ("<think>D", True),
        ("D <think>was it", True),
        ("<think>a</think><think>", True),
    ],
)
def test_answer_that_was_cut_off_while_thinking_is_marked(output: str, is_cut: bool) -> None:
    (turn,) = transcript(output, tags=THINK).turns
    assert turn.cut == is_cut
    assert ("cut" in transcript(output, tags=THINK).to_dict()["turns"][0]) == is_cut
    answered = OpenEnded.of(play(), play().observe(), Answer(output), provenance(THINK))
    assert answered.cut == is_cut


def test_reused_answer_is_marked() -> None:
    answers = [Answer("A", Origin.CACHE), Answer("D", Origin.EPISODE)]
    record = json.loads(Transcript.of(play("A", "D"), answers, provenance()).to_json())
    assert [turn.get("reused", False) for turn in record["turns"]] == [False, True]


def test_costs_are_recorded_turn_by_turn() -> None:
    costs = [Cost(calls=1, seconds=0.5, tokens={"input_tokens": 9}), Cost(calls=2)]
    record = Transcript.of(play("A"), [Answer("A")], provenance(), costs, DataError("no image"))
    assert json.loads(record.to_json())["costs"] == [
        {"calls": 1, "seconds": 0.5, "tokens": {"input_tokens": 9}},
        {"calls": 2, "seconds": 0.0, "tokens": {}},
    ]


@pytest.mark.parametrize(
    ("answers", "stop"),
    [("D", "solved"), ("E", "wrong"), ("H", "mismatch"), ("AAA", "max_turns"), ("A", None)],
)
def test_reason_of_the_stop_is_recorded(answers: str, stop: str | None) -> None:
    assert json.loads(transcript(*answers).to_json())["stop"] == stop


#: Answers that are no option, and why.
MISMATCHES = [
    (Mismatch.NOTHING, ["", " ", "\n", "<think>D</think>", "<think></think>\n"]),
    (Mismatch.CUT, ["<think>", "<think>It may be D", "<think>a</think><think>b"]),
    (
        Mismatch.OTHER_FORM,
        ["(D)", "**D**", "D)", "\\boxed{D}", "*an apple*", "<think>?</think>(D)"],
    ),
    (Mismatch.TEXT_BEFORE, ["Answer: D", "The correct option is D", "My answer is an apple"]),
    (Mismatch.TEXT_AFTER, ["D) It has a stalk", "An apple, as it has a stalk", "(D) because"]),
    (Mismatch.SEVERAL, ["D or E", "A, B", "D) A boat."]),
    (Mismatch.NO_SUCH_LETTER, ["Z", "(H)", "**X**", "Answer: H"]),
    (Mismatch.OTHER_SCRIPT, ["\u732b", "\u043a\u043e\u0442.", "(\u7b54\u6848)"]),
    (Mismatch.OTHER, ["I see a thing", "I am not sure", "?", "42", "I see <think>that it"]),
]


@pytest.mark.parametrize(
    ("why", "output"), [(why, output) for why, outputs in MISMATCHES for output in outputs]
)
def test_turn_says_why_its_answer_is_no_option(why: Mismatch, output: str) -> None:
    (turn,) = transcript(output, tags=THINK).turns
    assert turn.mismatch is why


def test_each_reason_of_a_mismatch_is_tried() -> None:
    assert [why for why, _ in MISMATCHES] == list(Mismatch)


@pytest.mark.parametrize("answer", ["D", "D.", "An apple.", "D. An apple.", "E", "A", "B", "C"])
def test_answer_that_is_an_option_has_no_mismatch(answer: str) -> None:
    (turn,) = transcript(answer).turns
    assert turn.mismatch is None
    assert "mismatch" not in transcript(answer).to_dict()["turns"][0]


def test_other_scripts_stay_readable() -> None:
    assert "\u732b" in transcript("\u732b").to_json()


def test_answers_of_another_number_of_turns_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        Transcript.of(play("A", "D"), [Answer("A")], provenance())


# Open-ended


def test_open_ended_record_holds_what_was_shown_and_said() -> None:
    episode, cost = play(), Cost(calls=1, seconds=0.5, tokens={"output_tokens": 3})
    answer = Answer("<think>?</think>An apple.")
    origin = provenance(THINK, open_ended=True, judge="hf")
    record = json.loads(OpenEnded.of(episode, episode.observe(), answer, origin, [cost]).to_json())
    assert record.pop("sample") == world.rows(Dataset.VSOD, [7])[0] | {"num_images": 3}
    assert record == {
        "schema": 2,
        "kind": "open_ended",
        "protocol": "builtin-1",
        "suite": "demo",
        "dataset": "OcclusionDataSet-MM20",
        "id": 7,
        "row": "0a1b-8",
        "variant": {"open_ended": True, "judge": "hf"},
        "reasoning_tags": [["<think>", "</think>"]],
        "error": None,
        "image": "OcclusionDataSet-MM20/0_0000.png",
        "file": "/data/OcclusionDataSet-MM20/0_0000.png",
        "crop": None,
        "prompt": episode.observe().text,
        "valid_answers": episode.environment.open_ended_answers(),
        "output": "<think>?</think>An apple.",
        "generated": "An apple.",
        "judge": {"kind": "hf"},
        "costs": [{"calls": 1, "seconds": 0.5, "tokens": {"output_tokens": 3}}],
    }


def test_failed_open_ended_sample_says_why() -> None:
    episode = play()
    error = DataError("no image")
    record = OpenEnded.of(episode, episode.observe(), None, provenance(), error=error)
    assert (record.error, record.generated, record.output) == ("DataError: no image", "", None)


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
    turns = json.loads(transcript("E").to_json())["turns"]
    turns[0]["output"] = "D"
    assert scored(altered("E", turns=turns)) == play("E").summary()


def test_mode_of_the_record_is_played_again() -> None:
    summary = scored(transcript("A", mode=Mode.REFERENCE).to_json())
    assert summary == play("A", mode=Mode.REFERENCE).summary()
    assert summary is not None and summary.correct_prediction


@pytest.mark.parametrize("answers", ["", "A", "AB"])
def test_unfinished_transcript_is_refused(answers: str) -> None:
    with pytest.raises(RecordError) as error:
        scored(transcript(*answers).to_json())
    assert str(error.value) == "the record ends before the episode does"


def test_transcript_that_goes_on_after_the_end_is_refused() -> None:
    turns = json.loads(transcript("A", "D").to_json())["turns"]
    with pytest.raises(RecordError) as error:
        scored(altered("D", turns=[*turns, *turns]))
    assert str(error.value) == "not a whole record: sample 7: the episode is over"


def test_transcript_of_a_sample_that_cannot_be_played_is_refused() -> None:
    spoiled = sample(options=["Sing.", "Dance.", world.REFUSAL])
    with pytest.raises(RecordError, match=r"^not a whole record: .*Sing\."):
        transcript("A", "D").replay(spoiled, BUILTIN)


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
    result = metrics.multiple_choice(transcript(*answers), play(*answers))
    names = ["acc", "ps", "asked", "max_steps", "mismatch", "failed"]
    assert {name: result[name] for name in names} == dict(zip(names, expected, strict=True))


def test_reused_turns_and_cut_answers_are_counted() -> None:
    outputs = ["A", "B", "<think>"]
    answers = [Answer(text, Origin.EPISODE if text == "B" else Origin.MODEL) for text in outputs]
    episode = play("A", "B", "")
    result = metrics.multiple_choice(Transcript.of(episode, answers, provenance(THINK)), episode)
    assert (result["reused"], result["cut"]) == (1, 100)
    result = metrics.multiple_choice(transcript("A", "B", "D"), play("A", "B", "D"))
    assert (result["reused"], result["cut"]) == (0, 0)


@pytest.mark.parametrize(
    ("answers", "acc_lenient"),
    [("D", 100), ("E", 0), (["(D)"], 100), (["(E)"], 0), (["A", "D) "], 100), (["(A)"], 0)],
)
def test_lenient_accuracy_counts_the_last_answer_in_another_form(
    answers: Sequence[str], acc_lenient: float
) -> None:
    result = metrics.multiple_choice(transcript(*answers), play(*answers))
    assert result["acc_lenient"] == acc_lenient


def test_failed_sample_counts_as_zero_and_is_counted() -> None:
    for result in (
        metrics.multiple_choice(None, None),
        metrics.multiple_choice(transcript("A", error=DataError("no image")), None),
    ):
        assert result.pop("failed") == 100
        assert set(result.values()) == {0.0}
        whole = metrics.multiple_choice(transcript("D"), play("D"))
        assert result.keys() == whole.keys() - {"failed"}
