"""Does decoding ahead help? The runner's time against decoding and generating in turns.

    python benchmarks/prefetch.py [--seconds 0.5] [--batch 16] [--episodes 64]

Images are 12-megapixel JPEGs. They are decoded before a call is made, and those of the next call
while it runs. The wrapper sleeps for each batch, as a host does whose accelerator works. Exit code
1 when the runner saves less than a tenth of what decoding and sleeping take one after the other.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

LIMIT = 0.9  # of the time that one after the other takes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="time of one batch")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--episodes", type=int, default=64)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    os.environ |= {
        "PROACTIVEBENCH_DATA_DIR": str(folder),
        "PROACTIVEBENCH_CACHE": str(folder / "cache"),
        "HF_HUB_OFFLINE": "1",
    }

    import numpy as np
    from fakes import world
    from lmms_eval import evaluator
    from lmms_eval.tasks import TaskManager
    from loguru import logger
    from PIL import Image

    from proactivebench_tasks.baselines.model import Baseline
    from proactivebench_tasks.data.suite import Suite
    from proactivebench_tasks.protocol.builtin import BUILTIN
    from proactivebench_tasks.protocol.samples import Dataset
    from proactivebench_tasks.rollout import runner, visuals

    logger.remove()
    Suite.protocol = BUILTIN
    rows = world.rows(Dataset.QUICKDRAW, list(range(options.episodes)))
    world.write(folder, Dataset.QUICKDRAW, rows)
    noise = np.random.default_rng(0).integers(0, 255, (300, 400, 3), dtype=np.uint8)
    large = folder / "large.jpg"
    Image.fromarray(noise).resize((4000, 3000)).save(large, quality=90)
    for path in (folder / Dataset.QUICKDRAW.value).iterdir():
        path.unlink()
        path.hardlink_to(large)

    class Sleeping(Baseline):
        inside = 0.0

        def generate_until(self, requests: list[Any]) -> list[str]:
            started = time.perf_counter()
            for _ in range(0, len(requests), self.batch_size):
                time.sleep(options.seconds)
            answers = super().generate_until(requests)
            Sleeping.inside += time.perf_counter() - started
            return answers

    spent = {"wall": 0.0, "decoding": 0.0, "images": 0}
    play, image_of = runner.run, visuals.image_of

    def timed_run(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        responses = play(*args, **kwargs)
        spent["wall"] = time.perf_counter() - started
        return responses

    def timed_image(*args: Any) -> Any:
        started = time.thread_time()
        image = image_of(*args)
        spent["decoding"] += time.thread_time() - started
        spent["images"] += 1
        return image

    runner.run, visuals.image_of = timed_run, timed_image
    evaluator.simple_evaluate(
        model=Sleeping("always_ask", batch_size=options.batch),
        tasks=["proactivebench_mcqa_quickdraw"],
        task_manager=TaskManager(),
        bootstrap_iters=0,
        cli_args=SimpleNamespace(process_with_media=False, output_path=None),
    )
    cores = os.cpu_count() or 1
    wall, decoding = spent["wall"], spent["decoding"] / min(cores, visuals.DECODERS)
    in_turns = Sleeping.inside + decoding
    size = f"{options.episodes} episodes, batch {options.batch}, {options.seconds} s a batch"
    print(f"{size}, {spent['images']} images, {cores} cores")
    print(f"the wrapper, asleep   {Sleeping.inside:6.1f} s")
    print(f"decoding alone        {decoding:6.1f} s")
    print(f"one after the other   {in_turns:6.1f} s")
    print(f"the runner            {wall:6.1f} s, {wall / in_turns:.2f} of that (limit {LIMIT})")
    return 0 if wall <= LIMIT * in_turns else 1


if __name__ == "__main__":
    sys.exit(main())
