"""CIT: frames of a video in which something opens and shows what it holds, or closes over it."""

from collections.abc import Callable
from dataclasses import dataclass

from proactivebench_tasks.demo.case import Case, Scene
from proactivebench_tasks.demo.draw import INK, Canvas, Colour, Drawing, arc, mix

WIDTH, HEIGHT = 160, 120
MID = WIDTH / 2
HALF = 26  # of the thing
SAMPLES_PER_VIDEO = 2
MAX_TURNS = 8


def scene(case: Case) -> Scene:
    """The first frame is a closed one: at the start where the video opens, else at the end."""
    place = case.stage % len(PLACES)
    shows = PLACES[place]
    count = 7 + case.stage * 5 % 7
    opens = (case.stage // 2 + case.stage) % 2 == 0
    paint = case.look.choice(case.paints)
    wall = case.look.choice(case.backdrops)
    tail = 2 if count < 9 else 3  # frames that show the thing
    closed = count // 2
    images = {}
    for moment in range(count):
        share = min(1, max(0, (moment - closed + 1) / (count - tail - closed + 1)))
        canvas = Canvas(WIDTH, HEIGHT, wall)
        canvas.rectangle((0, 88, WIDTH, HEIGHT), mix(wall, (120, 90, 60), 0.5))
        shows.draw(canvas, case.drawing, share, paint)
        frame = moment if opens else count - 1 - moment
        images[f"{case.folder}/{frame}.png"] = canvas.image()
    ways = [
        (start, step)
        for step in range(1, tail + 1)
        for start in range(closed)
        if (count - 1 - start) // step < MAX_TURNS
    ]
    # Samples of one video start or move differently.
    start, step = case.deal.choice(ways[case.index % SAMPLES_PER_VIDEO :: SAMPLES_PER_VIDEO])
    moves = -(-(count - tail - start) // step)
    return case.scene(
        images,
        shows.questions,
        ("Rewind the video.", shows.wait),
        image_template=f"{case.folder}/{{image}}.png",
        first_image=start if opens else count - 1 - start,
        num_images=count,
        reference_image=count - 1 if opens else 0,
        step_size=step,
        max_steps=min(MAX_TURNS, moves + 1 + case.deal.randrange(2)),
    )


def _box(canvas: Canvas, drawing: Drawing, share: float, paint: Colour) -> None:
    """The lid goes up and aside, and the thing comes up."""
    dark = mix(paint, INK, 0.6)
    lift, aside = 46 * min(1, share * 1.6), 72 * max(0, share - 0.4) / 0.6
    canvas.rectangle((MID - 36, 58, MID + 36, 66), dark, 1.5)
    if share:
        canvas.thing(drawing, MID, 82 - 46 * share, HALF)
    canvas.rectangle((MID - 36, 62, MID + 36, 112), paint, 1.5)
    canvas.rectangle((MID - 5, 62, MID + 5, 112), mix(paint, (255, 255, 255), 0.6))
    lid = MID + aside
    canvas.rectangle((lid - 40, 52 - lift, lid + 40, 64 - lift), mix(paint, INK, 0.25), 1.5)


def _curtain(canvas: Canvas, drawing: Drawing, share: float, paint: Colour) -> None:
    """Two halves are drawn aside."""
    canvas.rectangle((14, 10, WIDTH - 14, 110), (226, 218, 204))
    canvas.ellipse(MID, 98, 40, 8, (176, 150, 120))
    canvas.thing(drawing, MID, 66, HALF)
    reach = (MID - 14) * (1 - 0.8 * share) + (1 if not share else 0)
    for side in (-1, 1):
        hem = MID - side * (MID - 14)
        edges = sorted((hem, hem + side * reach))
        canvas.rectangle((edges[0], 10, edges[1], 110), paint)
        for fold in range(1, 6):
            x = hem + side * reach * fold / 6
            canvas.line([(x, 14), (x, 109)], mix(paint, INK, 0.35), 1.5)
    canvas.rectangle((8, 4, WIDTH - 8, 12), mix(paint, INK, 0.6))


def _egg(canvas: Canvas, drawing: Drawing, share: float, paint: Colour) -> None:
    """A large toy egg: its upper half goes up and over."""
    shell, spots = mix(paint, (255, 255, 255), 0.55), paint
    lift = 66 * share
    if share:
        canvas.thing(drawing, MID, 84 - 36 * share, HALF - 2)
    crack = [(MID + 34 - 8.5 * i, 76 + (5 if i % 2 else -3)) for i in range(9)]
    canvas.polygon([*arc(MID, 76, 34, 36, 0, 180), *crack[::-1]], shell, 1.5)
    canvas.ellipse(MID - 14, 94, 5, 5, spots)
    canvas.ellipse(MID + 12, 98, 6, 5, spots)
    cap = [*arc(MID, 76, 34, 56, 180, 360), *crack]
    canvas.polygon([(x + lift * 0.9, y - lift * 0.5) for x, y in cap], shell, 1.5)
    canvas.ellipse(MID - 8 + lift * 0.9, 48 - lift * 0.5, 6, 6, spots)
    canvas.ellipse(MID + 14 + lift * 0.9, 60 - lift * 0.5, 5, 5, spots)


def _cover(canvas: Canvas, drawing: Drawing, share: float, paint: Colour) -> None:
    """A serving cover is lifted off a tray."""
    metal = (196, 202, 212)
    canvas.ellipse(MID, 100, 60, 9, mix(metal, INK, 0.3), 1.5)
    canvas.thing(drawing, MID, 74, HALF - 3)
    lift = 104 * share
    dome = [(x, y - lift) for x, y in arc(MID, 98, 48, 72, 180, 360)]
    canvas.polygon(dome, metal, 1.5)
    canvas.ellipse(MID, 22 - lift, 6, 6, paint, 1.5)
    canvas.line([(MID - 46, 92 - lift), (MID + 46, 92 - lift)], paint, 4)


def _cupboard(canvas: Canvas, drawing: Drawing, share: float, paint: Colour) -> None:
    """Two doors swing open."""
    canvas.rectangle((MID - 42, 12, MID + 42, 108), mix(paint, INK, 0.7), 1.5)
    canvas.rectangle((MID - 36, 18, MID + 36, 102), (238, 230, 214))
    canvas.thing(drawing, MID, 72, HALF)
    canvas.rectangle((MID - 36, 98, MID + 36, 102), (150, 110, 76))
    for side in (-1, 1):
        hinge = MID + side * 42
        free = hinge - side * (42 - 62 * share)  # beyond the hinge once it is wide open
        slant = 10 * min(1, share * 2)
        door = [(hinge, 12), (free, 12 + slant / 2), (free, 108 + slant), (hinge, 108)]
        canvas.polygon(door, paint, 1.5)
        canvas.ellipse(free + side * 6 * (1 if share < 0.6 else -1), 62, 2.5, 2.5, (250, 220, 120))


@dataclass(frozen=True)
class Place:
    """Where a thing hides, and what is said of it."""

    draw: Callable[[Canvas, Drawing, float, Colour], None]
    wait: str
    questions: tuple[str, ...]


PLACES = (
    Place(
        _box,
        "Wait for the box to be used.",
        ("Which thing belongs in the box?", "What goes with the box in this video?"),
    ),
    Place(
        _curtain,
        "Wait for the curtain to move.",
        ("Which thing is behind the curtain?", "What does the stage hold?"),
    ),
    Place(
        _egg,
        "Wait for the egg to crack.",
        ("Which thing does the egg hold?", "What is inside the egg?"),
    ),
    Place(
        _cover,
        "Wait for the cover to be lifted.",
        ("Which thing is on the tray?", "What is served in this video?"),
    ),
    Place(
        _cupboard,
        "Wait for the doors to swing.",
        ("Which thing is kept in the cupboard?", "What is on the shelf in this video?"),
    ),
)
