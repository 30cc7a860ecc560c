"""MVP-N: a package whose front, which shows the product, is turned away at first."""

from collections.abc import Callable, Mapping

from proactivebench_tasks.demo.case import Case, Scene
from proactivebench_tasks.demo.draw import INK, Canvas, Colour, arc, mix

WIDTH, HEIGHT = 160, 120
LABEL: Colour = (252, 250, 244)
QUESTIONS = (
    "Which product does this package hold?",
    "What is printed on the front of this package?",
    "What is sold in this package?",
)
SUGGESTIONS = (
    "Rotate it.",
    "Show its other view.",
    "Try another angle.",
    "Change its orientation.",
    "Take a different look at it.",
)
Painter = Callable[[Canvas, Colour], None]


def scene(case: Case) -> Scene:
    """Blank views one after another, then the front."""
    count = 2 + case.index % 4
    views = case.look.choice(PACKAGES)
    paint = case.look.choice(case.paints)
    table = case.look.choice(case.backdrops)
    blank = case.look.sample(sorted(set(views) - {"front"}), count - 1)
    numbers = case.look.sample(range(1, 100), count)
    images = {}
    for number, view in zip(numbers, [*blank, "front"], strict=True):
        canvas = Canvas(WIDTH, HEIGHT, table)
        canvas.rectangle((0, 84, WIDTH, HEIGHT), mix(table, (110, 100, 110), 0.3))
        views[view](canvas, paint)
        if view == "front":
            canvas.thing(case.drawing, WIDTH / 2, LABEL_Y, 23)
        images[_path(case, view == "front", number)] = canvas.image()
    return case.scene(
        images,
        QUESTIONS,
        case.deal.sample(SUGGESTIONS, case.deal.choice((1, 2))),
        image_template=f"{case.folder}/{{informative}}_{{image}}.png",
        first_image=numbers[0],
        num_images=count,
        reference_image=numbers[-1],
        valid_images=numbers,
    )


def _path(case: Case, informative: bool, number: int) -> str:
    return f"{case.folder}/{int(informative)}_{number:04d}.png"


MID = WIDTH / 2
LABEL_Y = 62


def _stripes(canvas: Canvas, x: float, y: float, colour: Colour = INK) -> None:
    """A bar code."""
    canvas.rectangle((x - 2, y - 2, x + 28, y + 16), LABEL)
    for left, width in ((0, 2), (4, 1), (7, 3), (12, 1), (15, 2), (19, 1), (22, 4)):
        canvas.rectangle((x + left, y, x + left + width, y + 14), colour)


def _text(canvas: Canvas, x: float, y: float, lines: int, width: float) -> None:
    """Print that is too small to read."""
    for i in range(lines):
        end = x + width * (0.6 if i == lines - 1 else 1)
        canvas.line([(x, y + 5 * i), (end, y + 5 * i)], mix(INK, LABEL, 0.35), 1.4)


def _card_front(canvas: Canvas, paint: Colour) -> None:
    canvas.rectangle((MID - 40, 16, MID + 40, 108), paint, 1.5)
    canvas.rectangle((MID - 30, LABEL_Y - 28, MID + 30, LABEL_Y + 28), LABEL, 1)


def _card_back(canvas: Canvas, paint: Colour) -> None:
    canvas.rectangle((MID - 40, 16, MID + 40, 108), paint, 1.5)
    canvas.rectangle((MID - 32, 26, MID + 32, 66), mix(paint, LABEL, 0.8))
    _text(canvas, MID - 26, 34, 6, 50)
    _stripes(canvas, MID + 4, 84)


def _card_side(canvas: Canvas, paint: Colour) -> None:
    canvas.rectangle((MID - 18, 16, MID + 18, 108), mix(paint, INK, 0.25), 1.5)
    for x in (MID - 7, MID + 7):
        canvas.line([(x, 50), (x, 32)], LABEL, 2)
        canvas.line([(x - 4, 37), (x, 32), (x + 4, 37)], LABEL, 2)
    _text(canvas, MID - 11, 78, 3, 22)


def _card_top(canvas: Canvas, paint: Colour) -> None:
    canvas.rectangle((MID - 42, 42, MID + 42, 82), mix(paint, LABEL, 0.2), 1.5)
    canvas.line([(MID - 42, 62), (MID + 42, 62)], INK, 1)
    canvas.rectangle((MID - 42, 57, MID + 42, 67), (226, 204, 160))


def _card_corner(canvas: Canvas, paint: Colour) -> None:
    dark, light = mix(paint, INK, 0.25), mix(paint, LABEL, 0.2)
    canvas.polygon([(MID - 44, 34), (MID + 4, 44), (MID + 4, 110), (MID - 44, 96)], paint, 1.5)
    canvas.polygon([(MID + 4, 44), (MID + 36, 32), (MID + 36, 92), (MID + 4, 110)], dark, 1.5)
    lid = [(MID - 44, 34), (MID - 8, 24), (MID + 36, 32), (MID + 4, 44)]
    canvas.polygon(lid, light, 1.5)


def _tin(canvas: Canvas, paint: Colour) -> None:
    metal = (190, 194, 200)
    canvas.ellipse(MID, 104, 36, 9, metal, 1.5)
    canvas.rectangle((MID - 36, 24, MID + 36, 104), paint)
    canvas.ellipse(MID, 101, 36, 8, paint)
    canvas.line([(MID - 36, 24), (MID - 36, 104)], INK, 1.5)
    canvas.line([(MID + 36, 24), (MID + 36, 104)], INK, 1.5)
    canvas.ellipse(MID, 22, 36, 9, metal, 1.5)
    canvas.ellipse(MID, 22, 29, 6, mix(metal, INK, 0.2))


def _tin_front(canvas: Canvas, paint: Colour) -> None:
    _tin(canvas, paint)
    canvas.ellipse(MID, LABEL_Y + 2, 32, 31, LABEL, 1)


def _tin_back(canvas: Canvas, paint: Colour) -> None:
    _tin(canvas, paint)
    canvas.rectangle((MID - 24, 42, MID + 24, 70), mix(paint, LABEL, 0.8))
    _text(canvas, MID - 19, 48, 4, 38)
    _stripes(canvas, MID - 13, 79)


def _tin_side(canvas: Canvas, paint: Colour) -> None:
    _tin(canvas, paint)
    canvas.rectangle((MID - 3, 32, MID + 1, 107), mix(paint, INK, 0.3))
    _text(canvas, MID + 8, 50, 7, 20)


def _tin_top(canvas: Canvas, paint: Colour) -> None:
    canvas.ellipse(MID, 60, 44, 44, paint, 1.5)
    for radius, shade in ((40, 0.0), (34, 0.12), (29, 0.02)):
        canvas.ellipse(MID, 60, radius, radius, mix((200, 204, 210), INK, shade))
    canvas.line(arc(MID + 8, 60, 12, 8, 0, 360), (120, 124, 132), 3)
    canvas.ellipse(MID - 8, 60, 4, 4, (120, 124, 132))


def _tin_bottom(canvas: Canvas, paint: Colour) -> None:
    canvas.ellipse(MID, 60, 44, 44, mix(paint, INK, 0.2), 1.5)
    canvas.ellipse(MID, 60, 38, 38, (176, 180, 188))
    _text(canvas, MID - 14, 56, 2, 28)


def _bag(canvas: Canvas, paint: Colour) -> None:
    canvas.line(arc(MID, 30, 16, 18, 180, 360), mix(paint, INK, 0.5), 2.5)
    canvas.polygon([(MID - 38, 28), (MID + 38, 28), (MID + 42, 108), (MID - 42, 108)], paint, 1.5)


def _bag_front(canvas: Canvas, paint: Colour) -> None:
    _bag(canvas, paint)
    canvas.ellipse(MID, LABEL_Y, 32, 30, LABEL)


def _bag_back(canvas: Canvas, paint: Colour) -> None:
    _bag(canvas, paint)
    canvas.line([(MID, 30), (MID, 92)], mix(paint, INK, 0.3), 1.5)
    _text(canvas, MID + 8, 94, 2, 24)


def _bag_side(canvas: Canvas, paint: Colour) -> None:
    dark = mix(paint, INK, 0.25)
    canvas.polygon([(MID - 12, 28), (MID + 12, 28), (MID + 24, 108), (MID - 24, 108)], dark, 1.5)
    canvas.line([(MID, 28), (MID, 84), (MID - 22, 107)], INK, 1)
    canvas.line([(MID, 84), (MID + 22, 107)], INK, 1)


def _bag_top(canvas: Canvas, paint: Colour) -> None:
    canvas.rectangle((MID - 44, 42, MID + 44, 80), mix(paint, LABEL, 0.15), 1.5)
    canvas.rectangle((MID - 38, 47, MID + 38, 75), mix(paint, INK, 0.75))
    for y in (44, 78):
        canvas.line([(MID - 18, y), (MID + 18, y)], mix(paint, INK, 0.5), 2.5)


def _bag_bottom(canvas: Canvas, paint: Colour) -> None:
    canvas.rectangle((MID - 46, 38, MID + 46, 82), mix(paint, INK, 0.12), 1.5)
    canvas.line([(MID - 46, 38), (MID - 24, 60), (MID + 24, 60), (MID + 46, 38)], INK, 1)
    canvas.line([(MID - 46, 82), (MID - 24, 60)], INK, 1)
    canvas.line([(MID + 46, 82), (MID + 24, 60)], INK, 1)


PACKAGES: tuple[Mapping[str, Painter], ...] = (
    {
        "front": _card_front,
        "back": _card_back,
        "side": _card_side,
        "top": _card_top,
        "corner": _card_corner,
    },
    {
        "front": _tin_front,
        "back": _tin_back,
        "side": _tin_side,
        "top": _tin_top,
        "bottom": _tin_bottom,
    },
    {
        "front": _bag_front,
        "back": _bag_back,
        "side": _bag_side,
        "top": _bag_top,
        "bottom": _bag_bottom,
    },
)
