"""Draws an episode of the demo, turn by turn, as README shows it: docs/images/episode.png.

Run it as ``python docs/make_episode_figure.py``.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from proactivebench_tasks.data import rows
from proactivebench_tasks.data.images import load_image
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments.episode import Episode, Turn
from proactivebench_tasks.environments.grading import Grade
from proactivebench_tasks.protocol.samples import Dataset

TARGET = Path(__file__).parent / "images" / "episode.png"
SAMPLE = 1  # of ROD
ASKS = 1  # turns before it answers
SIDE, GAP, LINE = 440, 40, 34  # pixels
INK, FAINT, GREEN = "#1f2328", "#656d76", "#1a7f37"


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def main() -> None:
    store = Suite.DEMO.store
    found = rows.read(store.rows(Dataset.ROD), Dataset.ROD)
    sample = next(row.sample for row in found if row.sample.id == SAMPLE)
    episode = Episode(sample, Suite.DEMO.protocol)
    while not episode.done:
        asking = len(episode.turns) < ASKS
        episode.step(episode.correct_suggestions[0] if asking else sample.answer)

    width = len(episode.turns) * (SIDE + GAP) + GAP
    height = SIDE + (len(episode.turns[0].options) + 3) * LINE + GAP
    canvas = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(canvas)
    for number, turn in enumerate(episode.turns):
        left = GAP + number * (SIDE + GAP)
        shown = load_image(store, turn.image_path, turn.crop)
        canvas.paste(shown.resize((SIDE, SIDE), Image.Resampling.LANCZOS), (left, GAP))
        top = SIDE + GAP + LINE // 2
        draw.text((left, top), f"Turn {number + 1}. {sample.prompt}", fill=INK, font=font(23))
        for position, option in enumerate(turn.options):
            chosen = option == turn.answer
            line = f"{chr(ord('A') + position)}. {option}"
            place = (left, top + (position + 1.3) * LINE)
            draw.text(place, line, fill=GREEN if chosen else FAINT, font=font(23))
            if chosen:
                draw.text((place[0] - 26, place[1]), ">", fill=GREEN, font=font(23))
        bottom = top + (len(turn.options) + 1.6) * LINE
        draw.text((left, bottom), outcome(turn), fill=INK, font=font(23))
    TARGET.parent.mkdir(exist_ok=True)
    canvas.quantize(128).save(TARGET, optimize=True)
    print(f"{TARGET}: {TARGET.stat().st_size / 1e3:.0f} kB")


def outcome(turn: Turn) -> str:
    if turn.category is Grade.CORRECT:
        return "The right category: solved."
    return "A right suggestion: the image changes."


if __name__ == "__main__":
    main()
