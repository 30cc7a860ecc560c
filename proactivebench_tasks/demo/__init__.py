"""The demo dataset: seven small scenarios drawn by our own code, laid out like the official data.

``DATA`` holds one data folder a split, ``DATA / "test"`` and ``DATA / "train"``. The images are
shipped, so that using them needs no drawing code; ``python -m proactivebench_tasks.demo.make``
draws them anew.
"""

from pathlib import Path

__all__ = ["DATA"]

DATA = Path(__file__).parent / "data"
