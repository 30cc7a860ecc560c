"""The rules of each dataset, on samples that are small enough to work out by hand.

Each dataset has a function that makes an episode of a small sample (``rod``, ``vsod``, ...), and a
section of tests of what its module in ``proactivebench_tasks/environments`` does differently from
the others. What the modes change comes after these sections. Expected images, windows and options
are written out, so a test never repeats the computation that it checks.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from fakes import world

from proactivebench_tasks.environments import ENVIRONMENTS, parse_sample
from proactivebench_tasks.environments.environment import Action, Box, Environment, Mode
from proactivebench_tasks.environments.episode import Episode, Stop
from proactivebench_tasks.environments.grading import Grade
from proactivebench_tasks.environments.random_mode import meaningless
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset

REFUSAL = "I do not know."
CATEGORIES = ("Cat.", "Dog.")


def episode(dataset: Dataset, mode: Mode = Mode.NORMAL, seed: int = 0, **fields: Any) -> Episode:
    named = {"categories": CATEGORIES, "answer": "Dog."}
    row = world.rows(dataset, [7])[0] | named | fields
    return Episode(parse_sample(dataset, row), BUILTIN, mode, seed)


def walk(played: Episode, *answers: str) -> list[str]:
    """Paths of the images that the model sees on the way, that of the first turn included.

    None of the answers may end the episode.
    """
    image_paths = [played.observe().image_path]
    for answer in answers:
        assert played.step(answer).stop is None
        image_paths.append(played.observe().image_path)
    return image_paths


def rules(dataset: Dataset, **fields: Any) -> Environment[Any, Any]:
    return episode(dataset, **fields).environment


# What is on the list.


def test_refusals_are_options_that_help_nothing() -> None:
    options = ["Move it to the left.", "I CANNOT tell.", "I do not know.", "Do NOT ask.", "Nothing"]
    played = episode(Dataset.ROD, options=options)
    assert played.listed == tuple(options)
    assert played.correct_suggestions == ("Move it to the left.", "Nothing")


def test_list_is_the_options_and_then_the_categories() -> None:
    options = ["Move it to the right.", REFUSAL, "Move it to the left."]
    assert episode(Dataset.ROD, options=options).observe().options == (*options, *CATEGORIES)


# ROD


def rod(mode: Mode = Mode.NORMAL, **fields: Any) -> Episode:
    options = ["Push the blocks to the Left.", REFUSAL, "Push the blocks to the right."]
    given = {"options": options, "image_template": "s{image}.jpg", "num_images": 5}
    return episode(Dataset.ROD, mode, **given | fields)


def test_rod_left_goes_back_and_right_goes_on_around_the_series() -> None:
    assert walk(rod(first_image=1), "A", "A", "C", "C") == [
        "s1.jpg",
        "s0.jpg",
        "s4.jpg",
        "s0.jpg",
        "s1.jpg",
    ]


def test_rod_first_image_may_lie_outside_the_series() -> None:
    assert walk(rod(first_image=5), "C", "A") == ["s5.jpg", "s1.jpg", "s0.jpg"]


def test_rod_right_category_is_wrong_before_the_blocks_were_moved() -> None:
    turn = rod().step("Dog.")
    assert (turn.category, turn.stop) == (Grade.WRONG, Stop.WRONG)


def test_rod_right_category_counts_once_the_blocks_were_moved() -> None:
    played = rod()
    walk(played, "A")
    assert played.step("Dog.").stop is Stop.SOLVED


def test_rod_lasts_as_many_turns_as_there_are_images() -> None:
    played = rod(num_images=3)
    walk(played, "A", "A")
    assert played.step("A").stop is Stop.MAX_TURNS


BROKEN = "s6/natural_bluebl_greenr-banana-s{image}.jpg"


def test_rod_missing_image_is_skipped_to_the_left() -> None:
    played = rod(image_template=BROKEN, num_images=8, first_image=7)
    assert walk(played, "A")[1] == "s5/natural_bluebl_greenr-banana-s5.jpg"


def test_rod_missing_image_is_skipped_to_the_right() -> None:
    played = rod(image_template=BROKEN, num_images=8, first_image=5)
    assert walk(played, "C")[1] == "s7/natural_bluebl_greenr-banana-s7.jpg"


def test_rod_missing_image_at_the_start_is_the_one_to_the_right() -> None:
    assert walk(rod(image_template=BROKEN, first_image=6)) == [
        "s7/natural_bluebl_greenr-banana-s7.jpg"
    ]


def test_rod_missing_image_keeps_its_own_image_id() -> None:
    played = rod(image_template=BROKEN, num_images=8, first_image=7)
    walk(played, "A")
    assert played.step("A").image_id == 6
    assert played.observe().image_path == "s6/natural_bluebl_greenr-banana-s5.jpg"


def test_rod_missing_image_is_named_in_reference_mode() -> None:
    played = rod(Mode.REFERENCE, image_template=BROKEN, reference_image=6)
    assert walk(played) == ["s6/natural_bluebl_greenr-banana-s6.jpg"]


def test_rod_other_series_have_their_sixth_image() -> None:
    other = "natural_bluebl_greenr-mug-s{image}.jpg"
    assert walk(rod(image_template=other, first_image=6)) == [other.format(image=6)]


# VSOD


def vsod(mode: Mode = Mode.NORMAL, **fields: Any) -> Episode:
    options = ["Rewind the video.", "Wait for the bus to pass.", REFUSAL]
    given = {"options": options, "image_template": "v/{image}.png", "num_images": 3}
    return episode(Dataset.VSOD, mode, **given | fields)


def test_vsod_rewinds_and_waits_around_the_video_in_four_digits() -> None:
    assert walk(vsod(), "A", "B") == ["v/0000.png", "v/0002.png", "v/0000.png"]


def test_vsod_number_beyond_four_digits_is_written_in_full() -> None:
    assert walk(vsod(first_image=12345)) == ["v/12345.png"]


def test_vsod_is_answerable_at_once() -> None:
    assert vsod().step("Dog.").stop is Stop.SOLVED


def test_vsod_lasts_as_many_turns_as_there_are_images() -> None:
    played = vsod()
    walk(played, "B", "B")
    assert played.step("B").stop is Stop.MAX_TURNS


# MVP-N


def mvpn(mode: Mode = Mode.NORMAL, **fields: Any) -> Episode:
    given: dict[str, Any] = {
        "options": [REFUSAL, "Rotate the object."],
        "image_template": "{informative}/{image}.png",
        "num_images": 3,
        "first_image": 40,
        "valid_images": [41, 12, 9],
        "reference_image": 3,
    }
    return episode(Dataset.MVPN, mode, **given | fields)


def test_mvpn_shows_the_first_image_then_the_listed_views_the_last_one_informative() -> None:
    assert walk(mvpn(), "B", "B") == ["0/0040.png", "0/0012.png", "1/0009.png"]


def test_mvpn_only_view_is_informative() -> None:
    assert walk(mvpn(num_images=1)) == ["1/0040.png"]


def test_mvpn_views_beyond_the_number_of_images_are_not_shown() -> None:
    played = mvpn(num_images=2)
    walk(played, "B")
    assert played.step("B").stop is Stop.WRONG


def test_mvpn_reference_is_informative() -> None:
    assert walk(mvpn(Mode.REFERENCE)) == ["1/0003.png"]


@pytest.mark.parametrize("word", ["ROTATE", "view", "angle", "orientation", "different"])
def test_mvpn_suggestion_is_known_by_one_of_five_words(word: str) -> None:
    assert rules(Dataset.MVPN).action(f"Some {word} please") is Action.ROTATE


# ImageNet-C


def imagenetc(mode: Mode = Mode.NORMAL, **fields: Any) -> Episode:
    given: dict[str, Any] = {
        "options": ["Raise the contrast.", "Denoise it.", REFUSAL],
        "quality_answer": "Denoise it.",
        "image_template": "noise/{level}/a.JPEG",
        "num_images": 3,
        "first_image": 5,
    }
    return episode(Dataset.IMAGENETC, mode, **given | fields)


def test_imagenetc_repairs_go_down_one_level() -> None:
    assert walk(imagenetc(), "B", "B") == [f"noise/{level}/a.JPEG" for level in (5, 4, 3)]


def test_imagenetc_only_the_repair_that_fits_is_right() -> None:
    turn = imagenetc().step("Raise the contrast.")
    assert (turn.suggestion, turn.stop) == (Grade.WRONG, Stop.WRONG)


def test_imagenetc_any_suggestion_is_right_where_the_repair_is_not_listed() -> None:
    played = imagenetc(quality_answer="Deblur it.")
    assert played.correct_suggestions == ("Raise the contrast.", "Denoise it.")


@pytest.mark.parametrize(
    "word",
    [
        "brightness",
        "CONTRAST",
        "saturation",
        "deblur",
        "denoise",
        "compression",
        "resolution",
        "artifacts",
    ],
)
def test_imagenetc_suggestion_is_known_by_one_of_eight_words(word: str) -> None:
    assert rules(Dataset.IMAGENETC).action(f"Mind the {word}.") is Action.IMPROVE


# QuickDraw


def quickdraw(mode: Mode = Mode.NORMAL, **fields: Any) -> Episode:
    given: dict[str, Any] = {
        "options": ["Complete the drawing.", REFUSAL],
        "image_template": "q/{image}.png",
        "num_images": 3,
        "first_image": 8,
    }
    return episode(Dataset.QUICKDRAW, mode, **given | fields)


def test_quickdraw_goes_on_one_image_at_a_time_and_never_around() -> None:
    assert walk(quickdraw(), "A", "A") == ["q/0008.png", "q/0009.png", "q/0010.png"]


@pytest.mark.parametrize("word", ["details", "QuickDraw", "drawing", "sketch"])
def test_quickdraw_suggestion_is_known_by_one_of_four_words(word: str) -> None:
    assert rules(Dataset.QUICKDRAW).action(f"More {word}!") is Action.ADD_DETAILS


# The three whose suggestions run out

RUN_OUT = [(mvpn, "Rotate the object."), (imagenetc, "Denoise it."), (quickdraw, "A")]


@pytest.mark.parametrize(("make", "asking"), RUN_OUT)
def test_asking_in_the_last_turn_is_wrong(make: Any, asking: str) -> None:
    played = make(num_images=2)
    walk(played, asking)
    turn = played.step(asking)
    assert (turn.suggestion, turn.stop) == (Grade.WRONG, Stop.WRONG)


@pytest.mark.parametrize(("make", "asking"), RUN_OUT)
def test_suggestions_stay_on_the_list_in_the_last_turn(make: Any, asking: str) -> None:
    played = make(num_images=2)
    before = played.observe().options
    walk(played, asking)
    assert played.observe().options == before


@pytest.mark.parametrize(("make", "asking"), RUN_OUT)
def test_category_is_right_in_the_first_and_in_the_last_turn(make: Any, asking: str) -> None:
    played = make(num_images=2)
    walk(played, asking)
    assert played.step("Dog.").stop is make(num_images=2).step("Dog.").stop is Stop.SOLVED


# ChangeIt


def changeit(mode: Mode = Mode.NORMAL, seed: int = 0, **fields: Any) -> Episode:
    given: dict[str, Any] = {
        "options": ["Wait for the change.", "Rewind the video.", REFUSAL],
        "image_template": "c/{image}.jpg",
        "num_images": 20,
        "first_image": 9,
        "step_size": 5,
        "max_steps": 8,
    }
    return episode(Dataset.CHANGEIT, mode, seed, **given | fields)


WAIT, REWIND = "Wait for the change.", "Rewind the video."


def test_changeit_moves_by_its_step_size() -> None:
    assert walk(changeit(), WAIT, REWIND, REWIND) == [
        "c/9.jpg",
        "c/14.jpg",
        "c/9.jpg",
        "c/4.jpg",
    ]


@pytest.mark.parametrize(
    ("image_id", "listed"),
    [
        (0, (WAIT, REFUSAL)),
        (4, (WAIT, REFUSAL)),  # one image short of a step back
        (5, (WAIT, REWIND, REFUSAL)),
        (14, (WAIT, REWIND, REFUSAL)),
        (15, (REWIND, REFUSAL)),  # one image short of a step on
        (19, (REWIND, REFUSAL)),
    ],
)
def test_changeit_withdraws_the_move_that_leaves_the_video(
    image_id: int, listed: tuple[str, ...]
) -> None:
    played = changeit(first_image=image_id)
    assert played.listed == listed
    assert played.correct_suggestions == listed[:-1]


def test_changeit_withdrawal_follows_the_image() -> None:
    played = changeit()
    walk(played, REWIND)
    assert played.listed == (WAIT, REFUSAL)
    walk(played, WAIT)
    assert played.listed == (WAIT, REWIND, REFUSAL)


def test_changeit_withdrawal_shifts_the_categories_letters() -> None:
    assert changeit(first_image=0).step("D").stop is Stop.SOLVED
    assert changeit(first_image=5).step("E").stop is Stop.SOLVED


def test_changeit_withdrawn_suggestion_is_no_option() -> None:
    assert changeit(first_image=0).step(REWIND).stop is Stop.MISMATCH


def test_changeit_withdraws_the_first_way_to_wait_only() -> None:
    options = [REFUSAL, "Wait for the end.", "Wait for the change.", REWIND]
    played = changeit(first_image=15, options=options)
    assert played.listed == (REFUSAL, "Wait for the change.", REWIND)


def test_changeit_withdraws_one_move_where_both_leave_the_video() -> None:
    played = changeit(num_images=3, first_image=1, step_size=2)
    assert played.listed == (WAIT, REFUSAL)


@pytest.mark.parametrize(
    ("fields", "answer", "image_id"),
    [
        ({"num_images": 3, "first_image": 1, "step_size": 2}, WAIT, 3),
        ({"first_image": 30}, REWIND, 25),
        ({"first_image": -7}, WAIT, -2),
    ],
)
def test_changeit_frame_outside_the_video_is_malformed_data_when_it_is_to_be_shown(
    fields: dict[str, int], answer: str, image_id: int
) -> None:
    played = changeit(**fields)
    assert played.step(answer).stop is None
    before = (played.state, list(played.turns))
    wanted = rf"sample 7: .* to image {image_id} in turn 2, outside the \d+ images of num_images"
    with pytest.raises(DataError, match=wanted):
        played.observe()
    with pytest.raises(DataError, match=wanted):
        played.step("Dog.")
    assert (played.state, played.turns, played.done) == (*before, False)


@pytest.mark.parametrize(
    ("fields", "answers"),
    [
        ({"num_images": 3, "first_image": 1, "step_size": 2}, [WAIT]),
        ({"first_image": 30}, [REWIND]),
        ({"first_image": -7}, [WAIT]),
        ({"num_images": 4, "first_image": 4, "step_size": 3}, [REWIND, WAIT]),
        ({"num_images": 4, "first_image": -2, "step_size": 3}, [WAIT, WAIT]),
    ],
)
def test_changeit_last_move_is_counted_wherever_it_leads(
    fields: dict[str, int], answers: list[str]
) -> None:
    played = changeit(max_steps=len(answers), **fields)
    assert [played.step(answer).stop for answer in answers][-1] is Stop.MAX_TURNS
    assert not played.environment.in_range(played.state)
    assert played.summary().num_suggestions == len(answers) - 1


def test_changeit_move_may_end_in_the_first_and_in_the_last_image() -> None:
    assert walk(changeit(first_image=5), REWIND)[1] == "c/0.jpg"
    assert walk(changeit(first_image=14), WAIT)[1] == "c/19.jpg"


def test_changeit_lasts_as_many_turns_as_the_row_says() -> None:
    played = changeit(max_steps=2)
    walk(played, WAIT)
    assert played.step(REWIND).stop is Stop.MAX_TURNS


# COCO

LEFT, RIGHT = "Move the camera to the left.", "Move the camera to the right."
UP, DOWN = "Move the camera up.", "Move the camera down."
ZOOM = "Move farther from the object."
START = Box(left=100, top=50, right=180, bottom=130)


def coco(direction: str, mode: Mode = Mode.NORMAL, **fields: Any) -> Episode:
    given: dict[str, Any] = {
        "options": [LEFT, RIGHT, UP, DOWN, ZOOM, REFUSAL],
        "image_template": "coco/1.jpg",
        "direction": direction,
        "granularity": 3,
        "horizontal_step": 10,
        "vertical_step": 4,
        # Lower and right edge, called height and width in the rows.
        "crop": {"top": 50, "left": 100, "height": 130, "width": 180},
    }
    return episode(Dataset.COCO, mode, **given | fields)


@pytest.mark.parametrize(
    ("direction", "box"),
    [
        ("left", Box(90, 50, 180, 130)),
        ("right", Box(100, 50, 190, 130)),
        ("up", Box(100, 46, 180, 130)),
        ("down", Box(100, 50, 180, 134)),
        ("up_left", Box(90, 46, 180, 130)),
        ("left_up", Box(90, 46, 180, 130)),
        ("up_right", Box(100, 46, 190, 130)),
        ("down_left", Box(90, 50, 180, 134)),
        ("down_right", Box(100, 50, 190, 134)),
        # 130 + 4 + 50 and 180 + 10 + 100: in a zoom they are a height and a width.
        ("zoom", Box(90, 46, 290, 184)),
    ],
)
def test_coco_window_at_the_start(direction: str, box: Box) -> None:
    seen = coco(direction).observe()
    assert (seen.image_path, seen.crop) == ("coco/1.jpg", box)


@pytest.mark.parametrize(
    ("direction", "answers", "box"),
    [
        ("left", [LEFT, LEFT], Box(70, 50, 180, 130)),
        ("right", [RIGHT, RIGHT], Box(100, 50, 210, 130)),
        ("up", [UP, UP], Box(100, 38, 180, 130)),
        ("down", [DOWN, DOWN], Box(100, 50, 180, 142)),
        ("up_left", [UP, LEFT], Box(80, 42, 180, 130)),
        ("up_left", [UP, UP], Box(90, 38, 180, 130)),
        ("zoom", [ZOOM, ZOOM, ZOOM], Box(60, 34, 320, 196)),
        # A move to the wrong side widens the window on its sample's side all the same.
        ("left", [RIGHT], Box(80, 50, 180, 130)),
        ("zoom", [LEFT], Box(80, 46, 300, 184)),
        ("zoom", [UP], Box(90, 42, 290, 188)),
    ],
)
def test_coco_window_grows_by_whole_steps(direction: str, answers: list[str], box: Box) -> None:
    played = coco(direction)
    walk(played, *answers)
    assert played.observe().crop == box


def test_coco_zoom_option_in_another_direction_widens_both_sides() -> None:
    played = coco("up_left")
    walk(played, ZOOM)
    assert played.observe().crop == Box(80, 42, 180, 130)


def grown(step: float, moves: int) -> float:
    """A step after so many moves, in the order of the published package."""
    for k in range(1, moves + 1):
        step = step / k * (k + 1)
    return step


def test_coco_growth_divides_before_it_multiplies_in_floating_point() -> None:
    crop = {"top": 0, "left": 0, "height": 9, "width": 9}
    played = coco("left", granularity=9, horizontal_step=0.7, crop=crop)
    walk(played, *[LEFT] * 6)
    assert (
        len({4.899999999999999, 0.7 * 7, 0.7 * 2 / 1 * 3 / 2 * 4 / 3 * 5 / 4 * 6 / 5 * 7 / 6}) == 3
    )
    assert played.observe().crop == Box(-4.899999999999999, 0, 9, 9)


@pytest.mark.parametrize(
    ("direction", "answers", "gone"),
    [
        # A side that the direction does not have is never there.
        ("left", [], {UP, DOWN}),
        ("up", [], {LEFT, RIGHT}),
        ("up_left", [], set()),
        ("zoom", [], set()),
        # Three steps (granularity) wide, the window is whole.
        ("left", [LEFT], {UP, DOWN}),
        ("left", [LEFT, LEFT], {LEFT, RIGHT, UP, DOWN}),
        ("left", [LEFT, RIGHT], {LEFT, RIGHT, UP, DOWN}),
        ("down", [DOWN, DOWN], {LEFT, RIGHT, UP, DOWN}),
        ("down_right", [DOWN, DOWN], {UP, DOWN}),
        ("down_right", [RIGHT, RIGHT], {LEFT, RIGHT}),
        ("down_right", [RIGHT, DOWN, RIGHT, DOWN], {LEFT, RIGHT, UP, DOWN}),
        # A zoom has one more step, and withdraws itself alone.
        ("zoom", [ZOOM, ZOOM], set()),
        ("zoom", [ZOOM, ZOOM, ZOOM], {ZOOM}),
        ("zoom", [LEFT, LEFT, LEFT], {ZOOM}),
        ("zoom", [UP, UP, UP], set()),  # its limit is horizontal
    ],
)
def test_coco_withdraws_the_moves_that_show_no_more(
    direction: str, answers: list[str], gone: set[str]
) -> None:
    played = coco(direction)
    walk(played, *answers)
    assert set(played.sample.options) - set(played.listed) == gone
    assert set(played.correct_suggestions) == {LEFT, RIGHT, UP, DOWN, ZOOM} - gone


def test_coco_only_step_is_withdrawn_at_once() -> None:
    assert coco("left", granularity=1).listed == (ZOOM, REFUSAL)


@pytest.mark.parametrize("step", [0.7, 0.1])  # just below the limit, and just beyond it
def test_coco_zoom_limit_is_met_by_an_equal_float_only(step: float) -> None:
    assert grown(step, 6) != step * 7  # or this would prove nothing
    played = coco("zoom", granularity=6, horizontal_step=step)
    walk(played, *[ZOOM] * 6)
    assert ZOOM in played.listed


@pytest.mark.parametrize(
    ("direction", "turns"), [("left", 3), ("down", 3), ("up_left", 6), ("zoom", 4)]
)
def test_coco_number_of_turns_depends_on_the_direction(direction: str, turns: int) -> None:
    assert coco(direction).environment.max_turns == turns


def test_coco_zoom_ends_with_its_last_turn() -> None:
    played = coco("zoom", options=[UP, REFUSAL])
    walk(played, UP, UP, UP)
    assert played.step(UP).stop is Stop.MAX_TURNS


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Go to the LEFT now", Action.LEFT),
        ("to the right", Action.RIGHT),
        ("Up!", Action.UP),
        ("Look down.", Action.DOWN),
        ("Step farther away.", Action.ZOOM_OUT),
    ],
)
def test_coco_suggestion_is_known_by_its_words(text: str, action: Action) -> None:
    assert rules(Dataset.COCO).action(text) is action


# Suggestions that name nothing


@pytest.mark.parametrize("dataset", Dataset)
def test_suggestion_that_names_no_action_is_malformed_data(dataset: Dataset) -> None:
    fields = {"options": ["Whistle.", REFUSAL], "num_images": 2, "max_steps": 2, "granularity": 2}
    if dataset is Dataset.MVPN:
        fields["valid_images"] = [0, 1]
    played = episode(dataset, **fields)
    state = played.state
    with pytest.raises(DataError, match=r"sample 7: suggestion 'Whistle.' names no action"):
        played.step("A")
    assert (played.state, played.turns, played.done) == (state, [], False)


# Reference mode


@pytest.mark.parametrize("dataset", Dataset)
def test_reference_mode_lists_the_categories_alone(dataset: Dataset) -> None:
    assert episode(dataset, Mode.REFERENCE).observe().options == CATEGORIES


@pytest.mark.parametrize("dataset", Dataset)
def test_reference_mode_is_answerable_at_once_from_letter_a(dataset: Dataset) -> None:
    turn = episode(dataset, Mode.REFERENCE).step("B")
    assert (turn.suggestion, turn.stop) == (Grade.MISMATCH, Stop.SOLVED)


@pytest.mark.parametrize("dataset", Dataset)
@pytest.mark.parametrize(
    ("answer", "stop"), [("A", Stop.WRONG), ("C", Stop.MISMATCH), ("", Stop.MISMATCH)]
)
def test_reference_mode_ends_with_any_answer(dataset: Dataset, answer: str, stop: Stop) -> None:
    long = {"num_images": 6, "valid_images": list(range(6)), "max_steps": 6, "granularity": 6}
    assert episode(dataset, Mode.REFERENCE, **long).step(answer).stop is stop


def test_reference_mode_knows_no_suggestions() -> None:
    played = rod(Mode.REFERENCE)
    assert played.step("Push the blocks to the left.").suggestion is Grade.MISMATCH


@pytest.mark.parametrize(
    ("dataset", "image_path"),
    [
        (Dataset.ROD, "Realistic-Occlusion-Dataset/0_3.png"),
        (Dataset.VSOD, "OcclusionDataSet-MM20/0_0003.png"),
        (Dataset.MVPN, "MVP-N/0_1_0003.png"),
        (Dataset.IMAGENETC, "ImageNet-C/0_3.png"),
        (Dataset.QUICKDRAW, "QuickDraw/0_0003.png"),
        (Dataset.CHANGEIT, "ChangeIt/0_3.png"),
        (Dataset.COCO, "coco2014/0.png"),
    ],
)
def test_reference_mode_shows_the_reference_image(dataset: Dataset, image_path: str) -> None:
    assert episode(dataset, Mode.REFERENCE, reference_image=3).observe().image_path == image_path


def test_reference_mode_shows_the_whole_image_of_coco() -> None:
    assert coco("left", Mode.REFERENCE).observe().crop is None


# Random mode


@pytest.mark.parametrize("dataset", Dataset)
def test_random_mode_lists_meaningless_suggestions_and_takes_no_refusal(dataset: Dataset) -> None:
    fields = {"num_images": 2, "valid_images": [0, 1], "granularity": 2}
    played = episode(dataset, Mode.RANDOM, options=["Clap.", REFUSAL, "Sing."], **fields)
    first, refusal, last = played.listed
    assert refusal == REFUSAL
    assert {first, last} <= set(meaningless(dataset))
    assert played.correct_suggestions == (first, last)


@pytest.mark.parametrize("make", [mvpn, imagenetc, quickdraw])
def test_random_mode_takes_nothing_in_the_last_turn_where_suggestions_run_out(make: Any) -> None:
    played = make(Mode.RANDOM, num_images=2)
    walk(played, played.correct_suggestions[0])
    assert played.correct_suggestions == ()


def test_random_mode_withdraws_nothing_in_changeit() -> None:
    sample = changeit(first_image=0).sample
    played = Episode(sample, BUILTIN, Mode.RANDOM, own_options=True)
    assert played.listed == (WAIT, REWIND, REFUSAL)


def test_random_mode_withdraws_nothing_in_coco() -> None:
    sample = coco("left", granularity=1).sample
    played = Episode(sample, BUILTIN, Mode.RANDOM, own_options=True)
    assert played.listed == sample.options == (*played.correct_suggestions, REFUSAL)


@pytest.mark.parametrize(
    ("make", "fields", "image_paths"),
    [
        (rod, {"first_image": 0}, {"s4.jpg", "s1.jpg"}),
        (vsod, {}, {"v/0002.png", "v/0001.png"}),
        (changeit, {}, {"c/4.jpg", "c/14.jpg"}),
        (mvpn, {}, {"0/0012.png"}),
        (imagenetc, {}, {"noise/4/a.JPEG"}),
        (quickdraw, {}, {"q/0009.png"}),
    ],
)
def test_random_mode_draws_every_action_of_the_dataset_and_no_other(
    make: Any, fields: dict[str, Any], image_paths: set[str]
) -> None:
    played = (make(Mode.RANDOM, id=i, **fields) for i in range(30))
    assert {walk(each, each.correct_suggestions[0])[1] for each in played} == image_paths


def test_random_mode_draws_each_action_about_as_often() -> None:
    moves = [walk(rod(Mode.RANDOM, id=i, first_image=0), "A")[1] for i in range(400)]
    assert 160 < moves.count("s1.jpg") < 240  # four standard errors


def test_random_mode_draws_from_all_five_actions_of_coco() -> None:
    boxes = set()
    for i in range(60):
        played = coco("up_left", Mode.RANDOM, id=i)
        walk(played, "A")
        boxes.add(played.observe().crop)
    # A horizontal move, a vertical one, a zoom.
    assert boxes == {Box(80, 46, 180, 130), Box(90, 42, 180, 130), Box(80, 42, 180, 130)}


def test_random_mode_draws_the_same_again_with_the_same_seed() -> None:
    def path(seed: int) -> list[str]:
        return walk(changeit(Mode.RANDOM, seed, num_images=999, first_image=500), *["A"] * 7)

    assert path(3) == path(3)
    assert len({tuple(path(seed)) for seed in range(20)}) > 10


def test_random_mode_draws_anew_in_each_turn() -> None:
    played = changeit(Mode.RANDOM, 0, num_images=999, first_image=500, max_steps=50)
    image_ids = [int(image_path[2:-4]) for image_path in walk(played, *"A" * 40)]
    assert {after - before for before, after in itertools.pairwise(image_ids)} == {5, -5}


def test_random_mode_leaves_the_global_source_alone() -> None:
    random.seed(5)
    expected = random.Random(5).random()
    walk(rod(Mode.RANDOM), "A", "A")
    assert random.random() == expected


def test_random_mode_move_out_of_the_video_ends_the_episode() -> None:
    for seed in range(20):
        played = changeit(Mode.RANDOM, seed, first_image=2)
        turn = played.step("A")
        if turn.stop is not None:
            break
    assert turn.stop is Stop.OUT_OF_RANGE
    assert (turn.image_id, played.summary().num_turns) == (2, 1)
    assert not played.summary().correct_prediction


def test_random_mode_takes_the_right_category_as_every_mode_does() -> None:
    assert changeit(Mode.RANDOM).step("Dog.").stop is Stop.SOLVED


# Open-ended answers


@pytest.mark.parametrize(
    ("played", "answers", "suggestions"),
    [
        (rod(), "Move the blocks, Move the camera.", 2),
        (
            vsod(),
            "Wait for the occlusion to disappear, Rewind the video, Move the camera, Dog.",
            3,
        ),
        (mvpn(), "Rotate the object, Move the camera.", 2),
        (imagenetc(), "Denoise it, Dog.", 1),
        (quickdraw(), "Add more details to the drawing, Dog.", 1),
        (changeit(), "Wait for the change,Rewind the video,Rewind the video,Dog.", 2),
        (changeit(first_image=0), "Wait for the change,Rewind the video,Dog.", 2),
        (coco("left"), "Move the camera, Move farther from the object, Dog.", 2),
    ],
    ids=["rod", "vsod", "mvpn", "imagenetc", "quickdraw", "changeit", "changeit-start", "coco"],
)
def test_open_ended_answers_name_the_suggestions_then_the_category(
    played: Episode, answers: str, suggestions: int
) -> None:
    assert played.environment.open_ended_answers() == answers
    assert played.environment.num_open_ended_suggestions() == suggestions


def test_open_ended_category_loses_its_periods() -> None:
    played = quickdraw(categories=["St. Bernard."], answer="St. Bernard.")
    assert played.environment.open_ended_answers().endswith(", St Bernard.")


def test_every_dataset_has_its_rules() -> None:
    assert set(ENVIRONMENTS) == set(Dataset)


def test_coco_zoom_adds_the_step_before_the_corner() -> None:
    """The order of the additions decides the last bit of the sum, and so the pixel that the edge of
    the window is rounded to."""
    crop = {"top": 0.1, "left": 0.1, "height": 0.2, "width": 0.2}
    row = world.rows(Dataset.COCO, [1])[0]
    row |= {"direction": "zoom", "horizontal_step": 0.3, "vertical_step": 0.3, "crop": crop}
    environment = ENVIRONMENTS[Dataset.COCO](parse_sample(Dataset.COCO, row))
    box = environment.crop(environment.start())
    assert box is not None
    assert box.right == box.bottom == (0.2 + 0.3) + 0.1 != 0.2 + 0.1 + 0.3
