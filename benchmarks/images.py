"""Images from zips against images from folders: time, memory, and the opening of an archive.

    python benchmarks/images.py [--frames 2000] [--members 70000]

Passes if zips take at most 1.15 times as long as a folder (both warm, median of the rounds), an
archive with many members opens in under 0.5 s once its directory is kept, and memory stays flat
over the rounds.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
from PIL import Image, ImageDraw

from proactivebench_tasks.data.images import load_image
from proactivebench_tasks.data.store import LocalStore

ROUNDS = 11
THREADS = 4  # as many as the runner decodes with


def make(folder: Path, frames: int) -> list[str]:
    """Photos (JPEG, 640 x 480) and sketches (PNG, 256 x 256), as many of each, in a folder and in
    two archives, one of which is compressed; their paths."""
    paths = []
    rng = np.random.default_rng(0)
    (folder / "extracted").mkdir()
    (folder / "zipped").mkdir()
    archives = [
        zipfile.ZipFile(folder / "zipped" / name, "w", method)
        for name, method in (("a.zip", zipfile.ZIP_STORED), ("b.zip", zipfile.ZIP_DEFLATED))
    ]
    for number in range(frames):
        kind = "jpg" if number % 2 else "png"
        path = f"dataset/{number // 100:03d}/{number:06d}.{kind}"
        file = folder / "extracted" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        (photo if kind == "jpg" else sketch)(rng).save(file)
        archives[number % 4 // 2].write(file, path)
        paths.append(path)
    for archive in archives:
        archive.close()
    return paths


def photo(rng: np.random.Generator) -> Image.Image:
    shapes = rng.integers(0, 255, (12, 16, 3), np.uint8)
    image = Image.fromarray(shapes).resize((640, 480), Image.Resampling.BICUBIC)
    grain = rng.normal(0, 6, (480, 640, 1))
    return Image.fromarray(np.clip(np.asarray(image) + grain, 0, 255).astype(np.uint8))


def sketch(rng: np.random.Generator) -> Image.Image:
    image = Image.new("RGB", (256, 256), "white")
    points = [tuple(map(int, point)) for point in rng.integers(0, 256, (60, 2))]
    ImageDraw.Draw(image).line(points, fill="black", width=3)
    return image


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(folder: Path, paths: list[str]) -> tuple[list[float], list[float], float]:
    """Times of each round from folder and from zips, and megabytes gained after the first."""
    stores = {name: LocalStore(folder / name) for name in ("extracted", "zipped")}
    random.Random(0).shuffle(paths)
    times: dict[str, list[float]] = {name: [] for name in stores}
    for number in range(ROUNDS):
        for name in sorted(stores, reverse=bool(number % 2)):
            times[name].append(seconds(lambda: show(stores[name], paths)))  # noqa: B023
        if number == 0:
            before = peak()
    return times["extracted"], times["zipped"], peak() - before


def show(store: LocalStore, paths: list[str]) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        sizes = list(pool.map(lambda path: load_image(store, path, None).size, paths))
    assert len(sizes) == len(paths)


def peak() -> float:
    """Megabytes of memory that this process had at most."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def opening(folder: Path, members: int) -> tuple[float, float]:
    """Seconds to the first member of a large archive, the first time and once it is known."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "many.zip", "w") as archive:
        for number in range(members):
            archive.writestr(f"videos/{number // 300:05d}/frame_{number:08d}.jpg", b"content")

    def first() -> None:
        assert LocalStore(folder).read("videos/00000/frame_00000007.jpg") == b"content"

    return seconds(first), seconds(first)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--members", type=int, default=70_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PROACTIVEBENCH_CACHE"] = str(folder / "cache")
        paths = make(folder, arguments.frames)
        extracted, zipped, gained = compare(folder, paths)
        cold, warm = opening(folder / "large", arguments.members)
    ratio = median(z / e for z, e in zip(zipped, extracted, strict=True))
    print(f"{len(paths)} frames from a folder  {median(extracted):8.3f} s")
    print(f"{len(paths)} frames from zips      {median(zipped):8.3f} s   {ratio:.3f} times as long")
    print(f"memory gained in {ROUNDS - 1} more rounds {gained:6.1f} MB (allowed 10)")
    print(f"{arguments.members} members, first opening {cold:8.3f} s")
    print(f"{arguments.members} members, warm opening  {warm:8.3f} s   (allowed 0.5)")
    return 0 if ratio <= 1.15 and gained <= 10 and warm < 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
