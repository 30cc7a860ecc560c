"""COCO: one image of several things, seen through a crop that shows too little of one."""

import math
from dataclasses import dataclass

from PIL import Image

from proactivebench_tasks.demo.case import Case, Scene
from proactivebench_tasks.demo.draw import Canvas, extent, mix
from proactivebench_tasks.demo.things import THINGS

WIDTH, HEIGHT = 320, 240
HALF = 52  # of the thing that is asked for
OTHER_HALF = 29
MARGIN = 6  # at least, around the thing in the last crop
ROOM = 44  # beside the thing, where the first crop lies
PEEP = 15  # half a side of a zoom's first crop
PIECE = {1: 0.07, 2: 0.17}  # number of directions: share of the thing in the first crop
AIM = 12  # how far a zoom's middle may be from the thing's
DIRECTIONS = ("left", "right", "up", "down", "zoom", "up_left", "right_up", "zoom")
SUGGESTIONS = {
    "left": "Move the camera to the left.",
    "right": "Move the camera to the right.",
    "up": "Move the camera up.",
    "down": "Move the camera down.",
    "zoom": "Move farther from the object.",
}
QUESTIONS = (
    "What is the largest thing on this wall?",
    "Which thing on the wall is the biggest?",
    "What large thing hangs on this wall?",
)


@dataclass(frozen=True)
class View:
    """One axis of the camera: the sample's two ``crop`` numbers, its step, and the last crop."""

    near: int
    far: int
    step: int
    last: tuple[int, int]


def scene(case: Case) -> Scene:
    """The last crop shows the thing whole and nothing else that is a thing."""
    direction = DIRECTIONS[case.index % len(DIRECTIONS)]
    ways = direction.split("_")
    x = case.look.randint(HALF + ROOM, WIDTH - HALF - ROOM)
    y = case.look.randint(HALF + ROOM, HEIGHT - HALF - ROOM)
    if direction == "zoom":
        granularity = case.look.randint(5, 7)
        across, along = (
            _zoomed(middle + case.look.randint(-AIM, AIM), granularity) for middle in (x, y)
        )
    else:
        granularity = case.look.randint(2, 8 // len(ways))
        left, top, right, bottom = (round(HALF * edge) for edge in extent(case.drawing))
        share = PIECE[len(ways)]
        across = _moved(x + left, x + right, "left" in ways, "right" in ways, share, granularity)
        along = _moved(y + top, y + bottom, "up" in ways, "down" in ways, share, granularity)
    path = f"{case.folder}.png"
    return case.scene(
        {path: _draw(case, x, y, across, along)},
        QUESTIONS,
        [SUGGESTIONS[way] for way in ways],
        image_template=path,
        first_image=0,
        num_images=1,
        reference_image=0,
        direction=direction,
        granularity=granularity,
        horizontal_step=across.step,
        vertical_step=along.step,
        crop={"top": along.near, "left": across.near, "height": along.far, "width": across.far},
    )


def _moved(
    near: int, far: int, to_near: bool, to_far: bool, share: float, granularity: int
) -> View:
    """The first crop holds a ``share`` of the thing; ``granularity - 1`` moves bring in the rest.

    The engine adds one step before the first move, so the sample's edge lies one step back.
    """
    if not (to_near or to_far):
        return View(near - MARGIN, far + MARGIN, 0, (near - MARGIN, far + MARGIN))
    piece = round((far - near) * share)
    step = math.ceil((far - near - piece + MARGIN) / (granularity - 1))
    way = step * (granularity - 1)
    if to_near:
        first = far - piece
        return View(first + step, far + ROOM, step, (first - way, far + ROOM))
    first = near + piece
    return View(near - ROOM, first - step, step, (near - ROOM, first + way))


def _zoomed(middle: int, granularity: int) -> View:
    """A first crop of ``PEEP`` around the middle that ``granularity`` moves widen on both sides."""
    step = math.ceil((HALF + AIM + MARGIN - PEEP) / granularity)
    reach = PEEP + step * granularity
    near = middle - PEEP + step
    return View(near, middle + PEEP - step - near, step, (middle - reach, middle + reach))


def _draw(case: Case, x: int, y: int, across: View, along: View) -> Image.Image:
    wall = case.look.choice(case.backdrops)
    dots = mix(wall, case.look.choice(case.paints), 0.3)
    canvas = Canvas(WIDTH, HEIGHT, wall)
    for row in range(HEIGHT // 24 + 1):
        for column in range(WIDTH // 32 + 1):
            canvas.ellipse(8 + 32 * column + 16 * (row % 2), 6 + 24 * row, 3, 3, dots)
    canvas.thing(case.drawing, x, y, HALF)
    taken = [(across.last[0], along.last[0], across.last[1], along.last[1])]
    asked = {category[:1].lower() + category[1:-1] for category in case.categories}
    others = case.look.sample(sorted(set(THINGS[case.split]) - asked), 3)
    for name in others:
        for _ in range(200):
            ox = case.look.randint(OTHER_HALF + 2, WIDTH - OTHER_HALF - 2)
            oy = case.look.randint(OTHER_HALF + 2, HEIGHT - OTHER_HALF - 2)
            place = (ox - OTHER_HALF, oy - OTHER_HALF, ox + OTHER_HALF, oy + OTHER_HALF)
            if not any(
                place[0] < t[2] and t[0] < place[2] and place[1] < t[3] and t[1] < place[3]
                for t in taken
            ):
                canvas.thing(THINGS[case.split][name], ox, oy, OTHER_HALF)
                taken.append(place)
                break
    return canvas.image()
