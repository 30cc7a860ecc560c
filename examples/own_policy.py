"""Plays the demo by a policy of one's own, through lmms-eval and the baseline model.

    python examples/own_policy.py

The policy asks once, whatever it sees, and then names the right category: what would a model reach
that always asks exactly once and always recognises what it is shown? Prints accuracy (%) and
suggestions a sample, for each dataset and their mean.
"""

from __future__ import annotations

import random
from types import SimpleNamespace

from lmms_eval import evaluator
from lmms_eval.tasks import TaskManager

from proactivebench_tasks.baselines.model import Baseline
from proactivebench_tasks.environments.episode import Episode


def ask_once(episode: Episode, rng: random.Random) -> str:
    """A policy: from an episode, and a source of chance, to an answer."""
    may_ask = not episode.turns and episode.correct_suggestions
    return episode.correct_suggestions[0] if may_ask else episode.sample.answer


def main() -> None:
    model = Baseline(batch_size=16)
    model.policy = ask_once
    found = evaluator.simple_evaluate(
        model=model,
        tasks=["proactivedemo"],
        task_manager=TaskManager(include_defaults=False),  # ours alone, which is faster
        cli_args=SimpleNamespace(process_with_media=False, agentic_trace_mode="basic"),
        bootstrap_iters=0,
    )
    for task, metrics in sorted(found["results"].items()):
        print(f"{task:<30}acc {metrics['acc,none']:6.2f}   ps {metrics['ps,none']:.3f}")


if __name__ == "__main__":
    main()
