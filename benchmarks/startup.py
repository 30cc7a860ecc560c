"""What the plugin adds to the start of lmms-eval: `lmms-eval --tasks list` with and without it.

    python benchmarks/startup.py [--rounds 5]

Without it means: the same command, our entry point hidden. The two take turns; the best of each
counts. Also lists which of our modules the command imports. Exit code 1 above 5 %.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

LIMIT = 0.05

_COMMAND = """
import importlib.metadata as metadata, sys
hide = {hide}
if hide:
    found = metadata.entry_points
    models = {{"group": "lmms_eval.models"}}
    metadata.entry_points = lambda **k: [] if k == models else found(**k)
sys.argv = ["lmms-eval", "--tasks", "list"]
from lmms_eval.__main__ import cli_evaluate
try:
    cli_evaluate()
except SystemExit:
    pass
ours = sorted(m for m in sys.modules if m.startswith("proactivebench_tasks"))
print("OURS", *ours)
"""


def once(hide: bool) -> tuple[float, list[str]]:
    """Seconds, and our modules that were imported."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND.format(hide=hide)], capture_output=True, text=True
    )
    seconds = time.perf_counter() - started
    lines = [line for line in done.stdout.splitlines() if line.startswith("OURS")]
    if not lines:
        sys.exit(f"lmms-eval --tasks list failed:\n{done.stderr[-2000:]}")
    return seconds, lines[-1].split()[1:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    once(True)  # warm the disk
    with_it, without = [], []
    modules: list[str] = []
    for number in range(rounds):
        without.append(once(True)[0])
        seconds, modules = once(False)
        with_it.append(seconds)
        print(f"round {number + 1}: without {without[-1]:.2f} s, with {with_it[-1]:.2f} s")
    added = min(with_it) / min(without) - 1
    print("imported:", ", ".join(modules))
    print(f"best of {rounds}: {min(without):.2f} s without, {min(with_it):.2f} s with")
    print(f"the plugin adds {100 * added:+.1f} % (limit {LIMIT:.0%})")
    return 0 if added <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
