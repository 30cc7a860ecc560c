"""IN-C: an image that one corruption has made unreadable; each level down is less of it."""

import io
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PIL import Image, ImageChops, ImageEnhance, ImageFilter, ImageOps

from proactivebench_tasks.demo.case import Case, Scene
from proactivebench_tasks.demo.draw import Canvas, Colour, mix

WIDTH, HEIGHT = 128, 96
HALF = 36  # of the thing
FAINT = 0.004  # what the worst level leaves of brightness or contrast: one step of 255
QUESTIONS = (
    "What does this photo show?",
    "Which thing was photographed?",
    "What is the subject of the photo?",
)


def scene(case: Case) -> Scene:
    """Level ``first_image`` is unreadable, level 0 clean; some episodes end at level 1."""
    names = list(CORRUPTIONS)
    name = names[case.index % len(names)]
    corruption = CORRUPTIONS[name]
    worst = 2 + (case.index * 3 + case.index // len(names)) % 4
    last = case.deal.randrange(2) if worst > 3 else 0
    photo = _photo(case)
    images = {
        f"{case.folder}/{level}.png": corruption.spoil(
            photo, level / worst, random.Random(f"{case.stage} {level}")
        )
        for level in range(worst + 1)
    }
    wrong = case.deal.sample(corruption.unlike, case.deal.choice((2, 3)))
    return case.scene(
        images,
        QUESTIONS,
        [SUGGESTIONS[name], *(SUGGESTIONS[other] for other in wrong)],
        image_template=f"{case.folder}/{{level}}.png",
        first_image=worst,
        num_images=worst - last + 1,
        reference_image=0,
        quality_answer=SUGGESTIONS[name],
    )


def _photo(case: Case) -> Image.Image:
    paint, far = case.look.choice(case.paints), case.look.choice(case.backdrops)
    canvas = Canvas(WIDTH, HEIGHT, far)
    canvas.ellipse(case.look.uniform(10, 118), 20, 26, 20, mix(far, (255, 255, 255), 0.6))
    canvas.ellipse(case.look.uniform(0, 60), 78, 70, 26, mix(paint, far, 0.55))
    canvas.ellipse(case.look.uniform(70, 128), 84, 64, 24, mix(paint, far, 0.3))
    canvas.rectangle((0, 82, WIDTH, HEIGHT), mix(paint, (60, 50, 50), 0.3))
    canvas.thing(case.drawing, WIDTH / 2 + case.look.uniform(-16, 16), 50, HALF)
    return canvas.image()


def _brightness(photo: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    """Far too dark."""
    return ImageEnhance.Brightness(photo).enhance(max(FAINT, (1 - strength) ** 1.8))


def _contrast(photo: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    """Everything close to one grey."""
    grey = Image.new("RGB", photo.size, (136, 136, 136))
    return Image.blend(grey, photo, max(FAINT, (1 - strength) ** 1.8))


def _saturation(photo: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    """A mosaic that shows the photo by its colours alone, with the colours faded.

    Light and dark of the photo become yellow and blue, and random tiles are light and dark instead:
    a grey copy of a common photo would still show everything.
    """
    tiles = Image.new("L", (WIDTH // 8, HEIGHT // 8))
    tone = random.Random(0)
    tiles.putdata([tone.randrange(104, 152) for _ in range(tiles.width * tiles.height)])
    light = tiles.resize(photo.size, Image.Resampling.NEAREST)
    _, _, red = photo.convert("YCbCr").split()
    blue = ImageOps.invert(photo.convert("L"))
    red = red.point(lambda value: 128 + (value - 128) * 1.5)
    flat = Image.new("L", photo.size, 128)
    blue, red = (Image.blend(flat, colour, 1 - strength) for colour in (blue, red))
    return Image.merge("YCbCr", (light, blue, red)).convert("RGB")


def _deblur(photo: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    """Out of focus."""
    return photo.filter(ImageFilter.GaussianBlur(36 * strength**1.6))


def _denoise(photo: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    """Dots of any colour in place of the photo's."""
    dots = Image.new("RGB", photo.size)
    mask = Image.new("L", photo.size)
    share = min(1, strength * 1.02) ** 0.7 if strength else 0
    pixels = range(WIDTH * HEIGHT)
    dots.putdata([chance.choice(NOISE) for _ in pixels])
    mask.putdata([255 * (chance.random() < share) for _ in pixels])
    return Image.composite(dots, photo, mask)


def _compression(photo: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    """JPEG at ever lower quality, of an ever smaller copy."""
    if not strength:
        return photo
    scale = 1 + round(9 * strength**2)
    small = photo.resize((WIDTH // scale, HEIGHT // scale), Image.Resampling.BOX)
    file = io.BytesIO()
    small.save(file, "JPEG", quality=max(1, round(16 * (1 - strength))))
    return Image.open(file).convert("RGB").resize(photo.size, Image.Resampling.NEAREST)


def _resolution(photo: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    """Few and large pixels."""
    if not strength:
        return photo
    rows = round(48 * (2 / 48) ** strength)
    small = photo.resize((rows * 4 // 3, rows), Image.Resampling.BOX)
    return small.resize(photo.size, Image.Resampling.NEAREST)


def _artifacts(photo: Image.Image, strength: float, chance: random.Random) -> Image.Image:
    """Strips out of place and with swapped colour channels, as in a broken transmission."""
    spoilt = photo.copy()
    tops = range(0, HEIGHT, 3)
    for top in tops:
        if chance.random() < strength:
            source = chance.choice(tops)
            strip = photo.crop((0, source, WIDTH, source + 3))
            strip = Image.merge("RGB", chance.sample(strip.split(), 3))
            spoilt.paste(ImageChops.offset(strip, chance.randrange(WIDTH), 0), (0, top))
    return spoilt


NOISE: tuple[Colour, ...] = (
    (20, 20, 20), (240, 240, 240), (220, 40, 40), (40, 180, 60), (50, 70, 210), (240, 220, 60),
    (60, 200, 220), (210, 70, 200),
)  # fmt: skip


@dataclass(frozen=True)
class Corruption:
    """How to spoil a photo (strength from 0, clean, to 1), and which repairs clearly do not fit."""

    spoil: Callable[[Image.Image, float, random.Random], Image.Image]
    unlike: tuple[str, ...]


SUGGESTIONS: Mapping[str, str] = {
    "brightness": "Correct the brightness.",
    "contrast": "Raise the contrast.",
    "saturation": "Restore the saturation.",
    "deblur": "Deblur the photo.",
    "denoise": "Denoise the photo.",
    "compression": "Undo the compression.",
    "resolution": "Raise the resolution.",
    "artifacts": "Remove the artifacts.",
}
CORRUPTIONS: Mapping[str, Corruption] = {
    "brightness": Corruption(_brightness, ("saturation", "deblur", "denoise", "artifacts")),
    "contrast": Corruption(_contrast, ("denoise", "resolution", "artifacts", "compression")),
    "saturation": Corruption(_saturation, ("brightness", "deblur", "denoise", "artifacts")),
    "deblur": Corruption(_deblur, ("brightness", "saturation", "denoise", "artifacts")),
    "denoise": Corruption(_denoise, ("brightness", "contrast", "deblur", "saturation")),
    "compression": Corruption(_compression, ("brightness", "contrast", "denoise")),
    "resolution": Corruption(_resolution, ("brightness", "saturation", "denoise", "contrast")),
    "artifacts": Corruption(_artifacts, ("brightness", "saturation", "deblur", "contrast")),
}
