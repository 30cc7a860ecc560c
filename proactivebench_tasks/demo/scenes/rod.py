"""ROD: coloured blocks stand before a thing and can be slid aside in steps."""

from PIL import Image

from proactivebench_tasks.demo.case import Case, Scene
from proactivebench_tasks.demo.draw import Canvas, Colour, mix

WIDTH, HEIGHT = 192, 144
HALF = 32  # of the thing
STEPS = {3: 100, 4: 80, 5: 52, 6: 44, 7: 34, 8: 28}  # number of images: pixels of one move
QUESTIONS = (
    "What is hidden behind the blocks?",
    "Which thing do the blocks conceal?",
    "What stands on the table behind the blocks?",
)
SUGGESTIONS = ("Slide the blocks to the left.", "Slide the blocks to the right.")


def scene(case: Case) -> Scene:
    """Images form a ring: from the hidden first one, left moves count down and right moves up."""
    count = 3 + case.index % 6
    first = case.look.randrange(count)
    wall = case.look.choice(case.backdrops)
    colours = case.look.sample(case.paints, 3)
    thing_x = WIDTH / 2 + case.look.uniform(-10, 10)
    images = {}
    for offset in range(-((count - 1) // 2), count // 2 + 1):
        number = (first + offset) % count
        blocks_x = thing_x + STEPS[count] * offset
        images[f"{case.folder}-s{number}.png"] = _draw(case, wall, colours, thing_x, blocks_x)
    return case.scene(
        images,
        QUESTIONS,
        SUGGESTIONS,
        image_template=f"{case.folder}-s{{image}}.png",
        first_image=first,
        num_images=count,
        reference_image=(first + count // 2) % count,
    )


def _draw(
    case: Case, wall: Colour, colours: list[Colour], thing_x: float, blocks_x: float
) -> Image.Image:
    canvas = Canvas(WIDTH, HEIGHT, wall)
    canvas.rectangle((0, 108, WIDTH, HEIGHT), mix(wall, (120, 90, 60), 0.6))
    canvas.thing(case.drawing, thing_x, 84, HALF)
    left = blocks_x - HALF - 5
    for i, colour in enumerate(colours):
        width = (22, 30, 22)[i]
        top = 46 - (0, 8, 3)[i]
        _block(canvas, left, top, width, 124 - top, colour)
        left += width
    return canvas.image()


def _block(
    canvas: Canvas, left: float, top: float, width: float, height: float, colour: Colour
) -> None:
    right, depth = left + width, 6
    roof = [(left, top), (left + depth, top - depth), (right + depth, top - depth), (right, top)]
    side = [
        (right, top),
        (right + depth, top - depth),
        (right + depth, top + height - depth),
        (right, top + height),
    ]
    canvas.polygon(roof, mix(colour, (255, 255, 255), 0.35))
    canvas.polygon(side, mix(colour, (0, 0, 0), 0.3))
    canvas.rectangle((left, top, right, top + height), colour)
