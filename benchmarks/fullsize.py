"""Makes a full-size data folder in the official layout, with small images.

    python benchmarks/fullsize.py DIR

The ids and counts are the official ones, read from the published package; rows and images are
made up (tests/world.py). It serves the other scripts: PROACTIVEBENCH_DATA_DIR=DIR.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from fakes import world

from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.samples import Dataset

LIMIT = 180.0  # seconds


def make(folder: Path) -> int:
    """Write the folder; returns the number of samples."""
    ids = published.load().sample_ids
    assert ids is not None
    for dataset in Dataset:
        world.write(folder, dataset, world.rows(dataset, sorted(ids[dataset])))
    return sum(map(len, ids.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    started = time.perf_counter()
    samples = make(folder)
    seconds = time.perf_counter() - started
    files = sum(1 for path in folder.rglob("*") if path.is_file())
    print(f"{samples} samples, {files} files in {seconds:.0f} s (limit {LIMIT:.0f} s): {folder}")
    return 0 if seconds <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
