"""Does the model wait for pictures? Share of the runner's wall time spent in generate_until.

    python benchmarks/prefetch.py [--seconds 0.5] [--batch 16] [--episodes 64]

Pictures are 12-megapixel JPEGs. The wrapper takes each batch's pictures and then sleeps, as a host
does whose accelerator works. Its own time to take them is what counts: with decode-ahead they are
there. Exit code 1 below 97 %. Time without decode-ahead is measured in the same run.
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

LIMIT = 0.97


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
    from proactivebench_tasks.rollout import runner as rollout
    from proactivebench_tasks.rollout import visuals as screen

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
        inside = waited = 0.0

        def generate_until(self, requests: list[Any]) -> list[str]:
            started = time.perf_counter()
            for first in range(0, len(requests), self.batch_size):
                begun = time.perf_counter()
                for request in requests[first : first + self.batch_size]:
                    _, _, visual, doc_id, task, split = request.args
                    visual(self.task_dict[task][split][doc_id])
                Sleeping.waited += time.perf_counter() - begun
                time.sleep(options.seconds)
            answers = super().generate_until(requests)
            Sleeping.inside += time.perf_counter() - started
            return answers

    def run() -> tuple[float, float, float]:
        """Wall time of the runner, time in generate_until, and of that, waiting for pictures."""
        Sleeping.inside = Sleeping.waited = 0.0
        wall = 0.0
        original = rollout.run

        def timed(*args: Any, **kwargs: Any) -> Any:
            nonlocal wall
            started = time.perf_counter()
            responses = original(*args, **kwargs)
            wall = time.perf_counter() - started
            return responses

        rollout.run = timed
        evaluator.simple_evaluate(
            model=Sleeping("always_ask", batch_size=options.batch),
            tasks=["proactivebench_mcqa_quickdraw"],
            task_manager=TaskManager(),
            bootstrap_iters=0,
            cli_args=SimpleNamespace(process_with_media=False, output_path=None),
        )
        rollout.run = original
        return wall, Sleeping.inside, Sleeping.waited

    with_it = run()
    screen._DECODED_AHEAD = 0
    without = run()
    share = with_it[1] / with_it[0]
    size = f"{options.episodes} episodes, batch {options.batch}, {options.seconds} s a batch"
    print(f"{size}, {os.cpu_count()} cores")
    print(f"with decode-ahead     {with_it[0]:6.1f} s, of which {with_it[2]:.1f} s for pictures")
    print(f"without               {without[0]:6.1f} s, of which {without[2]:.1f} s for pictures")
    print(f"in generate_until: {100 * share:.1f} % of the runner's wall time (limit {LIMIT:.0%})")
    return 0 if share >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
