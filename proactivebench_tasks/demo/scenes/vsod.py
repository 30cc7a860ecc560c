"""VSOD: on a street, something passes between the camera and a thing on the pavement."""

from collections.abc import Callable, Mapping

from proactivebench_tasks.demo.case import Case, Scene
from proactivebench_tasks.demo.draw import INK, Canvas, Colour, mix

WIDTH, HEIGHT = 192, 144
HALF = 22  # of the thing
# Number of frames: pixels between two frames, and the frames that may hide the thing.
PACES = {4: (92, (1, 2)), 5: (72, (2,)), 6: (52, (2, 3)), 7: (42, (2, 3, 4)), 8: (32, (3, 4))}
QUESTIONS = (
    "Which thing is on the pavement?",
    "What is being blocked from view on the pavement?",
    "What has somebody left on the pavement?",
)
GLASS: Colour = (58, 74, 92)
SKIN: Colour = (224, 178, 142)


def scene(case: Case, *, strong: bool = True) -> Scene:
    """The first frame hides the thing, or only a part of it where ``strong`` is false."""
    count = 4 + case.index % 5
    pace, hidden = PACES[count]
    first = case.look.choice(hidden)
    passer = case.look.choice(sorted(PASSERS))
    paint = case.look.choice(case.paints)
    wall = case.look.choice(case.backdrops)
    thing_x = WIDTH / 2 + case.look.uniform(-14, 14)
    start = thing_x + (0 if strong else 54)
    heading = case.look.choice((-1, 1))
    images = {}
    for frame in range(count):
        canvas = _street(wall)
        canvas.thing(case.drawing, thing_x, 84, HALF)
        PASSERS[passer](canvas, start + heading * pace * (frame - first), heading, paint)
        images[f"{case.folder}/{frame:04d}.png"] = canvas.image()
    return case.scene(
        images,
        QUESTIONS,
        ("Rewind the video.", f"Wait for the {passer} to go past."),
        image_template=f"{case.folder}/{{image}}.png",
        first_image=first,
        num_images=count,
        reference_image=max(range(count), key=lambda frame: abs(frame - first)),
        strong_occlusions=strong,
    )


def _street(wall: Colour) -> Canvas:
    canvas = Canvas(WIDTH, HEIGHT, mix(wall, (190, 140, 110), 0.4))
    for x in range(10, WIDTH, 46):
        canvas.rectangle((x, 6, x + 26, 40), mix(wall, GLASS, 0.45))
        canvas.rectangle((x, 40, x + 26, 43), (250, 248, 240))
    canvas.rectangle((0, 92, WIDTH, 112), (196, 194, 190))
    canvas.rectangle((0, 112, WIDTH, HEIGHT), (104, 106, 112))
    for x in range(-8, WIDTH, 48):
        canvas.rectangle((x, 132, x + 24, 135), (236, 232, 220))
    return canvas


def _wheels(canvas: Canvas, *places: float) -> None:
    for x in places:
        canvas.ellipse(x, 122, 10, 10, INK)
        canvas.ellipse(x, 122, 4, 4, (170, 172, 176))


def _bus(canvas: Canvas, x: float, heading: int, paint: Colour) -> None:
    canvas.rectangle((x - 62, 46, x + 62, 120), paint, 1.5)
    for left in range(-56, 50, 22):
        canvas.rectangle((x + left, 54, x + left + 18, 76), GLASS)
    canvas.rectangle((x - 62, 92, x + 62, 97), mix(paint, (255, 255, 255), 0.7))
    canvas.ellipse(x + heading * 58, 106, 3, 4, (255, 236, 150))
    _wheels(canvas, x - 38, x + 38)


def _lorry(canvas: Canvas, x: float, heading: int, paint: Colour) -> None:
    cab, nose = x + heading * 42, x + heading * 66
    canvas.rectangle((min(cab, nose), 66, max(cab, nose), 120), mix(paint, INK, 0.35), 1.5)
    window = sorted((cab + heading * 8, nose - heading * 2))
    canvas.rectangle((window[0], 72, window[1], 90), GLASS)
    body = sorted((x - heading * 62, cab))
    canvas.rectangle((body[0], 42, body[1], 116), mix(paint, (255, 255, 255), 0.75), 1.5)
    canvas.rectangle((body[0] + 2, 74, body[1] - 2, 86), paint)
    _wheels(canvas, x - heading * 40, x + heading * 30, x + heading * 54)


def _person(canvas: Canvas, x: float, heading: int, paint: Colour) -> None:
    canvas.ellipse(x, 26, 19, 22, SKIN, 1.5)
    canvas.polygon(
        [(x - 21, 24), (x - 17, 6), (x, 0), (x + 17, 6), (x + 21, 24), (x, 12)], (84, 60, 44)
    )
    canvas.ellipse(x + heading * 12, 26, 2, 3, INK)
    shoulders = [(x - 28, 52), (x - 14, 44), (x + 14, 44), (x + 28, 52)]
    canvas.polygon([*shoulders, (x + 40, HEIGHT), (x - 40, HEIGHT)], paint, 1.5)
    canvas.line([(x - 20, 62), (x - 30, 110)], mix(paint, INK, 0.5), 2)
    canvas.line([(x + 20, 62), (x + 30, 110)], mix(paint, INK, 0.5), 2)
    for y in (70, 92, 114):
        canvas.ellipse(x + heading * 6, y, 2.5, 2.5, INK)


PASSERS: Mapping[str, Callable[[Canvas, float, int, Colour], None]] = {
    "bus": _bus,
    "lorry": _lorry,
    "person": _person,
}
