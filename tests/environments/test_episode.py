"""An episode, turn by turn: what ends it, what a turn records, what the summary says."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import world
from hypothesis import given, settings
from hypothesis import strategies as st

from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.environment import Mode, derived_seed
from proactivebench_tasks.environments.episode import Episode, Observation, Stop
from proactivebench_tasks.environments.grading import Grade
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.transcripts.answer import Answer
from proactivebench_tasks.transcripts.record import Provenance
from proactivebench_tasks.transcripts.transcript import Transcript
from proactivebench_tasks.transcripts.variant import Variant


def vsod(turns: int = 3, **fields: Any) -> Episode:
    """Options: A. Wait, B. Rewind, C. refusal, D to G. categories, of which D is right."""
    row = world.rows(Dataset.VSOD, [7])[0] | {"num_images": turns} | fields
    return Episode(parse_sample(Dataset.VSOD, row), BUILTIN)


@pytest.mark.parametrize(
    ("answer", "stop", "suggestion", "category"),
    [
        ("A", None, Grade.CORRECT, Grade.MISMATCH),
        ("Rewind the video.", None, Grade.CORRECT, Grade.MISMATCH),
        ("C", Stop.WRONG, Grade.WRONG, Grade.MISMATCH),
        ("D", Stop.SOLVED, Grade.MISMATCH, Grade.CORRECT),
        ("An apple.", Stop.SOLVED, Grade.MISMATCH, Grade.CORRECT),
        ("E", Stop.WRONG, Grade.MISMATCH, Grade.WRONG),
        ("H", Stop.MISMATCH, Grade.MISMATCH, Grade.MISMATCH),
        ("", Stop.MISMATCH, Grade.MISMATCH, Grade.MISMATCH),
        # Each list is graded by itself: letter A of a suggestion, text of a category.
        ("A. A boat.", None, Grade.CORRECT, Grade.WRONG),  # the suggestion counts
        ("A. An apple.", Stop.SOLVED, Grade.CORRECT, Grade.CORRECT),
        ("D. Wait for the bus.", Stop.SOLVED, Grade.CORRECT, Grade.CORRECT),
    ],
)
def test_answer_is_graded_as_a_suggestion_and_as_a_category(
    answer: str, stop: Stop | None, suggestion: Grade, category: Grade
) -> None:
    turn = vsod().step(answer)
    assert (turn.suggestion, turn.category, turn.stop) == (suggestion, category, stop)


def test_turn_records_what_was_shown_before_the_answer() -> None:
    played = vsod()
    for answer in ("A", "B"):
        seen = played.observe()
        turn = played.step(answer)
        assert (turn.image_path, turn.crop) == (seen.image_path, seen.crop)
        assert (turn.options, turn.answer) == (seen.options, answer)


def test_turn_records_the_image_id() -> None:
    played = vsod(5, first_image=3)
    assert [played.step(answer).image_id for answer in "AAB"] == [3, 4, 0]


def test_turn_records_the_window_of_coco() -> None:
    row = world.rows(Dataset.COCO, [7])[0] | {"granularity": 3}
    played = Episode(parse_sample(Dataset.COCO, row), BUILTIN)
    crops = [played.step("Move the camera to the left.").crop for _ in range(2)]
    assert [crop and crop.left for crop in crops] == [56.0, 48.0]


def test_all_turns_are_kept_in_order() -> None:
    played = vsod()
    turns = [played.step(answer) for answer in ("A", "B", "D")]
    assert played.turns == turns


def test_text_is_the_prompt_and_the_lettered_list() -> None:
    seen = vsod().observe()
    assert seen.text == BUILTIN.multiple_choice(seen.prompt, seen.options)
    assert "\nD. An apple.\n" in seen.text


def test_hint_run_adds_the_hint_to_every_turn() -> None:
    plain = vsod()
    hinted = Episode(plain.sample, BUILTIN, hint=True)
    for played in (plain, hinted):
        played.step("A")
    added = f" {BUILTIN.hint['vsod']}"
    assert hinted.observe().prompt == plain.observe().prompt + added


def test_observing_changes_nothing() -> None:
    played = vsod()
    assert played.observe() == played.observe()
    assert played.turns == []


def test_suggestion_in_the_last_turn_ends_the_episode() -> None:
    played = vsod(2)
    assert [played.step(answer).stop for answer in "AA"] == [None, Stop.MAX_TURNS]


def test_category_in_the_last_turn_solves_the_episode() -> None:
    played = vsod(2)
    assert [played.step(answer).stop for answer in "AD"] == [None, Stop.SOLVED]


@pytest.mark.parametrize("answers", ["D", "E", "H", "AD", "AAA"])
def test_no_step_after_the_end(answers: str) -> None:
    played = vsod()
    for answer in answers:
        assert not played.done
        played.step(answer)
    assert played.done
    with pytest.raises(ValueError, match="sample 7: the episode is over"):
        played.step("A")
    assert len(played.turns) == len(answers)


@pytest.mark.parametrize(
    ("answers", "turns", "solved", "used_all", "mismatch"),
    [
        ("D", 1, True, False, False),
        ("E", 1, False, False, False),
        ("H", 1, False, False, True),
        ("AD", 2, True, False, False),
        ("AH", 2, False, False, True),
        ("AAA", 3, False, True, False),
        ("ABD", 3, True, True, False),
        ("ABE", 3, False, True, False),
        ("ABH", 3, False, True, True),
    ],
)
def test_summary(answers: str, turns: int, solved: bool, used_all: bool, mismatch: bool) -> None:
    played = vsod()
    for answer in answers:
        played.step(answer)
    summary = played.summary()
    assert (summary.num_turns, summary.correct_prediction) == (turns, solved)
    assert (summary.reached_max_turns, summary.mismatch) == (used_all, mismatch)
    assert summary.num_suggestions == turns - 1


def test_episode_of_one_turn_uses_all_of_them() -> None:
    played = vsod(1)
    played.step("D")
    assert played.summary().reached_max_turns


def test_derived_seed_is_the_same_on_every_machine() -> None:
    assert derived_seed(0, "coco2014", 7, 1) == 0x21B746127C82E065


@pytest.mark.parametrize("other", [(1, "a", 2, 3), (0, "b", 2, 3), (0, "a", 23), (0, "a2", 3)])
def test_derived_seed_depends_on_each_part_and_where_it_ends(other: tuple[object, ...]) -> None:
    assert derived_seed(0, "a", 2, 3) != derived_seed(*other)


# Whatever is answered

ROWS = [(dataset, row) for dataset in Dataset for row in world.rows(dataset, list(range(12)))]
OPTIONS = sorted({o for _, row in ROWS for o in (*row["options"], *row["categories"])})
ANSWERS = st.lists(
    st.sampled_from("ABCDEFG") | st.sampled_from(OPTIONS) | st.text(max_size=12),
    min_size=8,
    max_size=8,
)


def play(dataset: Dataset, row: Any, mode: Mode, seed: int, answers: list[str]) -> Episode:
    """Play these answers up to the end of the episode."""
    played = Episode(parse_sample(dataset, row), BUILTIN, mode, seed)
    for answer in answers:
        if played.done:
            break
        played.step(answer)
    return played


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ROWS), st.sampled_from(Mode), st.integers(0, 9), ANSWERS)
def test_any_answers_end_within_the_maximum(
    which: tuple[Dataset, Any], mode: Mode, seed: int, answers: list[str]
) -> None:
    played = play(*which, mode, seed, answers)
    assert played.done
    assert 1 <= len(played.turns) <= played.environment.max_turns <= 7
    assert [turn.stop is not None for turn in played.turns].index(True) == len(played.turns) - 1


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ROWS), st.sampled_from(Mode), st.integers(0, 9), ANSWERS)
def test_any_transcript_replays_to_the_same_summary(
    which: tuple[Dataset, Any], mode: Mode, seed: int, answers: list[str]
) -> None:
    played = play(*which, mode, seed, answers)
    outputs = [Answer(turn.answer) for turn in played.turns]
    origin = Provenance("demo", "1", Variant(mode=mode, seed=seed), (), str)
    text = Transcript.of(played, outputs, origin).to_json()
    sample = parse_sample(*which)
    again = Transcript.from_json(text, sample).replay(sample, BUILTIN)
    assert again is not None
    assert again.summary() == played.summary()


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(ROWS), st.sampled_from(Mode), st.integers(0, 9), ANSWERS)
def test_any_observation_is_a_function_of_the_answers_before_it(
    which: tuple[Dataset, Any], mode: Mode, seed: int, answers: list[str]
) -> None:
    dataset, row = which
    sample = parse_sample(dataset, row)
    watched, unwatched = (Episode(sample, BUILTIN, mode, seed) for _ in range(2))
    seen: list[Observation] = []
    for answer in answers:
        if watched.done:
            break
        seen.append(watched.observe())
        watched.step(answer)
    for number, observation in enumerate(seen):
        assert unwatched.observe() == observation
        unwatched.step(answers[number])
    assert unwatched.turns == watched.turns
