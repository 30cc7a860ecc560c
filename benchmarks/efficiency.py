"""How full the runner's batches are: ideal batches / batches run.

    python benchmarks/efficiency.py DIR [--batch 16]      # DIR: made by benchmarks/fullsize.py

Ideal is ceil(turns / batch). A policy plays each dataset to the end, so lengths are those that the
engine really gives; a batch is what a wrapper makes of a call, ceil(requests / batch). Datasets of
over 10 batches count; exit code 1 when one of these is below 0.97.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

LIMIT = 0.97


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="made by benchmarks/fullsize.py")
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    os.environ["PROACTIVEBENCH_DATA_DIR"] = str(options.folder)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")

    from lmms_eval import evaluator
    from lmms_eval.tasks import TaskManager
    from loguru import logger
    from PIL import Image

    from proactivebench_tasks.baselines.model import Baseline
    from proactivebench_tasks.rollout import visuals

    logger.remove()
    blank = Image.new("RGB", (32, 32))
    visuals.image_of = lambda *_: blank  # no image matters here

    class Counting(Baseline):
        turns: Counter[str] = Counter()
        batches: Counter[str] = Counter()

        def generate_until(self, requests: list[Any]) -> list[str]:
            task = requests[0].task_name
            self.turns[task] += len(requests)
            self.batches[task] += math.ceil(len(requests) / self.batch_size)
            return super().generate_until(requests)

    worst = 1.0
    for policy in ("always_ask", "random"):
        lm = Counting(policy, batch_size=options.batch)
        lm.turns, lm.batches = Counter(), Counter()
        evaluator.simple_evaluate(
            model=lm,
            tasks=["proactivebench-mcqa"],
            task_manager=TaskManager(),
            bootstrap_iters=0,
            cli_args=SimpleNamespace(process_with_media=False, output_path=None),
        )
        for task, turns in lm.turns.items():
            episodes = len(lm.task_dict[task]["test"])
            ideal = math.ceil(turns / options.batch)
            efficiency = ideal / lm.batches[task]
            counts = episodes > 10 * options.batch
            worst = min(worst, efficiency if counts else 1.0)
            print(
                f"{policy:<11}{task:<32}{episodes:>6} episodes {turns:>6} turns  "
                f"{ideal:>5} / {lm.batches[task]:<5} = {efficiency:.3f}"
                + ("" if counts else "  (10 batches or fewer: not counted)")
            )
    print(f"batch {options.batch}: worst counted {worst:.3f} (limit {LIMIT})")
    return 0 if worst >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
