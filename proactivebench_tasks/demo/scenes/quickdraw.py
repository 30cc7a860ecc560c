"""QD: a sketch of which only the first strokes are there."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from PIL import Image

from proactivebench_tasks.demo.case import Case, Scene
from proactivebench_tasks.demo.draw import INK, Canvas, Drawing, Part, Point, extent

SIZE = 128
HALF = 54
PEN = 2.2
WOBBLE = 1.6  # pixels
FIRST_SHARE = 0.1  # of the ink
SPECK = 0.05  # shorter strokes, in unit coordinates, are left out
PAPER = (255, 255, 255)
QUESTIONS = (
    "What is being sketched?",
    "What will this be when it is finished?",
    "Which thing is somebody drawing here?",
)
SUGGESTIONS = (
    "Add more details.",
    "Continue the drawing.",
    "Go on with the sketch.",
)


def scene(case: Case) -> Scene:
    """Image ``first_image`` has the first strokes, the last of ``num_images`` the whole sketch."""
    count = 2 + (case.index * 3 + 1) % 7
    first = case.deal.choice((0, 0, 1))
    strokes = list(_strokes(case.drawing))
    wobble = [case.look.uniform(0, math.tau) for _ in range(4)]
    total = sum(map(_length, strokes))
    images = {}
    for i in range(count):
        share = FIRST_SHARE + (1 - FIRST_SHARE) * i / (count - 1)
        images[f"{case.folder}/{first + i:04d}.png"] = _draw(strokes, share * total, wobble)
    return case.scene(
        images,
        QUESTIONS,
        (case.deal.choice(SUGGESTIONS),),
        image_template=f"{case.folder}/{{image}}.png",
        first_image=first,
        num_images=count,
        reference_image=first + count - 1,
    )


def _draw(strokes: Sequence[Sequence[Point]], ink: float, wobble: Sequence[float]) -> Image.Image:
    canvas = Canvas(SIZE, SIZE, PAPER)
    for stroke in strokes:
        part = _beginning(stroke, ink)
        if len(part) > 1:
            canvas.line([_by_hand(point, wobble) for point in part], INK, PEN)
        ink -= _length(stroke)
    return canvas.image()


def _by_hand(point: Point, wobble: Sequence[float]) -> Point:
    """Pixel of a point in unit coordinates, off by what a hand would be."""
    x, y = (SIZE / 2 + HALF * value for value in point)
    return (
        x + WOBBLE * (math.sin(y / 9 + wobble[0]) + math.sin(x / 17 + wobble[1])),
        y + WOBBLE * (math.sin(x / 9 + wobble[2]) + math.sin(y / 17 + wobble[3])),
    )


def _strokes(drawing: Drawing) -> Iterator[list[Point]]:
    """The outlines of a drawing as far as later parts leave them visible, the largest part first.

    Small parts (whiskers, a handle) tell most, so they come late.
    """
    for i, part in sorted(enumerate(drawing), key=lambda numbered: -_size(numbered[1])):
        closed = part.width is None
        outline = list(_fine([*part.points, part.points[0]] if closed else part.points))
        stroke: list[Point] = []
        for point in outline:
            if any(_covers(later, point) for later in drawing[i + 1 :]):
                if _length(stroke) > SPECK:
                    yield stroke
                stroke = []
            else:
                stroke.append(point)
        if _length(stroke) > SPECK:
            yield stroke


def _size(part: Part) -> float:
    left, top, right, bottom = extent((part,))
    return (right - left) * (bottom - top)


def _fine(points: Sequence[Point], step: float = 0.04) -> Iterator[Point]:
    for (ax, ay), (bx, by) in pairwise(points):
        pieces = max(1, math.ceil(math.hypot(bx - ax, by - ay) / step))
        for i in range(pieces):
            yield ax + (bx - ax) * i / pieces, ay + (by - ay) * i / pieces
    yield points[-1]


def _covers(part: Part, point: Point) -> bool:
    """Whether the point lies inside the part's filled area."""
    if part.width is not None:
        return False
    inside = False
    x, y = point
    for (ax, ay), (bx, by) in zip(part.points, part.points[1:] + part.points[:1], strict=True):
        if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
            inside = not inside
    return inside


def _length(stroke: Sequence[Point]) -> float:
    return sum(map(math.dist, stroke, stroke[1:]))


def _beginning(stroke: Sequence[Point], ink: float) -> list[Point]:
    """As much of the stroke as the ink lasts for."""
    part = list(stroke[:1])
    for a, b in pairwise(stroke):
        ink -= math.dist(a, b)
        if ink < 0:
            break
        part.append(b)
    return part
