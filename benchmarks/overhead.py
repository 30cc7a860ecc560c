"""What the runner itself costs: all seven tasks at full size, with a wrapper that answers at once.

    python benchmarks/overhead.py DIR        # DIR: made by benchmarks/fullsize.py

Prints milliseconds a turn in our code (decoding images apart), memory above the harness's own,
and, separately, what the harness's own parts take at this size. Exit code 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

MS_A_TURN = 1.0
MEGABYTES = 300.0


def resident() -> float:
    """Resident memory of this process, MB."""
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
    return pages * resource.getpagesize() / 1e6


class Clock:
    """Adds up the time spent in functions that it wraps, by name."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def wrap(self, owner: Any, name: str, label: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                self.seconds[label] += time.perf_counter() - started

        setattr(owner, name, timed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="made by benchmarks/fullsize.py")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--profile", action="store_true", help="say where our time goes")
    options = parser.parse_args()
    os.environ["PROACTIVEBENCH_DATA_DIR"] = str(options.folder)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")

    from lmms_eval import evaluator
    from lmms_eval.api.task import ConfigurableTask
    from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
    from lmms_eval.tasks import TaskManager
    from loguru import logger
    from PIL import Image

    from proactivebench_tasks import hooks
    from proactivebench_tasks.baselines.model import Baseline
    from proactivebench_tasks.rollout import runner, visuals

    logger.remove()
    clock, memory = Clock(), {}
    turns: Counter[str] = Counter()
    blank = Image.new("RGB", (32, 32))
    visuals.image_of = lambda *_: blank  # decoding apart

    class Instant(Baseline):
        """Asks until the end, so episodes are as long as they can be."""

        def generate_until(self, requests: list[Any]) -> list[str]:
            turns["turns"] += len(requests)
            turns["calls"] += 1
            answers = super().generate_until(requests)
            if turns["calls"] % 50 == 1:
                memory[turns["turns"]] = resident()
            return answers

    clock.wrap(Instant, "generate_until", "wrapper")
    clock.wrap(runner, "run", "run")
    clock.wrap(ConfigurableTask, "build_all_requests", "harness: building requests")
    clock.wrap(hooks, "process_results", "scoring")
    clock.wrap(evaluator, "_process_document_results", "harness: results and document hashes")

    started = time.perf_counter()
    lm = Instant("always_ask", batch_size=options.batch)
    memory_before: list[float] = []
    original = runner.run

    profile = cProfile.Profile()

    def noting_memory(*args: Any, **kwargs: Any) -> Any:
        memory_before.append(resident())
        if options.profile:
            return profile.runcall(original, *args, **kwargs)
        return original(*args, **kwargs)

    runner.run = noting_memory
    results = evaluator.simple_evaluate(
        model=lm,
        tasks=["proactivebench-mcqa"],
        task_manager=TaskManager(),
        log_samples=True,
        bootstrap_iters=0,
        cli_args=SimpleNamespace(
            process_with_media=False, output_path=None, reasoning_tags=None, model="instant"
        ),
    )
    total = time.perf_counter() - started
    assert results is not None
    clock.wrap(EvaluationTracker, "save_results_samples", "harness: saving samples")
    with tempfile.TemporaryDirectory() as out:
        tracker = EvaluationTracker(output_path=out)
        tracker.general_config_tracker.model_name_sanitized = "instant"
        tracker.date_id = "now"
        for task, samples in results["samples"].items():
            tracker.save_results_samples(task_name=task, samples=samples)

    ours = clock.seconds["run"] - clock.seconds["wrapper"]
    per_turn = 1000 * ours / turns["turns"]
    used = [memory[key] for key in sorted(memory)]
    above = max(used) - memory_before[0]
    half = used[len(used) // 2 :]
    print(f"{turns['turns']} turns, {turns['calls']} calls, {total:.1f} s in all")
    print(f"our runner            {ours:7.1f} s, {per_turn:.3f} ms a turn (limit {MS_A_TURN})")
    print(f"the instant wrapper   {clock.seconds['wrapper']:7.1f} s")
    for label in sorted(clock.seconds.keys() - {"run", "wrapper"}):
        print(f"{label:<38}{clock.seconds[label]:7.1f} s, summed over threads")
    print(
        f"memory above the harness: {above:.0f} MB (limit {MEGABYTES:.0f}); "
        f"second half of the run: {max(half) - min(half):+.0f} MB"
    )
    if options.profile:  # which makes all of it slower
        pstats.Stats(profile).sort_stats("tottime").print_stats(14)
    return 0 if per_turn <= MS_A_TURN and above <= MEGABYTES else 1


if __name__ == "__main__":
    sys.exit(main())
