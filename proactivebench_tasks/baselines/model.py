"""Model ``proactivebench_baseline``: plays by a fixed policy, to bound and to test everything else.

lmms-eval --model proactivebench_baseline --model_args policy=random,seed=1 --tasks ...
"""

from __future__ import annotations

import random
from typing import Any

import torch
from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms

from proactivebench_tasks.baselines.policies import OPEN_ENDED, POLICIES
from proactivebench_tasks.environments.environment import derived_seed
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.rollout.visuals import Visuals


class Baseline(lmms):
    """``policy`` is one of ``POLICIES``; ``seed`` makes policy ``random`` repeatable.

    ``look``: every image that a model would be shown is opened, so that a run proves them all.
    """

    is_simple = True
    interleave_visuals = True  # what it answers depends on no image, so it takes any number of them

    def __init__(
        self,
        policy: str = "random",
        seed: int = 0,
        batch_size: int | str = 1,
        look: bool = True,
        **others: Any,
    ) -> None:
        super().__init__()
        if unknown := set(others) - {"device", "max_batch_size"}:  # these lmms-eval always gives
            raise HarnessError(
                f"unknown model argument {', '.join(sorted(unknown))}; known: policy, seed, look"
            )
        if policy not in POLICIES:
            raise HarnessError(f"unknown policy {policy!r}; expected one of {', '.join(POLICIES)}")
        if look not in (True, False):
            raise HarnessError(f"look is {look!r}; expected true or false")
        self.policy = POLICIES[policy]
        self.open_ended = OPEN_ENDED[policy]
        self.seed = _whole("seed", seed)
        self.needs_images = bool(look)  # see Generator
        #: With ``auto``, or ``auto:2``, it is up to the model. Nothing is faster for this one.
        is_auto = str(batch_size).partition(":")[0] == "auto"
        self.batch_size = 1 if is_auto else _whole("batch_size", batch_size, least=1)
        self.device = torch.device("cpu")  # the harness gathers results there, with several ranks
        #: A random answer to what was seen before is drawn anew (see rollout/runner.py, reuse).
        self.deterministic = policy != "random"

    def generate_until(self, requests: list[Instance]) -> list[str]:
        answers = []
        for request in requests:
            _, _, visuals, doc_id, task, split = request.args
            if not isinstance(visuals, Visuals):
                raise HarnessError("proactivebench_baseline plays ProactiveBench tasks only")
            rollout = visuals.rollout(self.task_dict[task][split][doc_id])
            episode = rollout.episode
            policy = self.open_ended if rollout.variant.open_ended else self.policy
            parts = (self.seed, episode.dataset.value, episode.sample.id, len(episode.turns))
            answers.append(policy(episode, random.Random(derived_seed(*parts))))
        return answers

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise HarnessError("proactivebench_baseline only generates text")

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        raise HarnessError("proactivebench_baseline only generates text")


def _whole(name: str, value: int | str, least: int = 0) -> int:
    if not str(value).isdecimal() or int(value) < least:
        auto = ", or auto" if name == "batch_size" else ""
        raise HarnessError(f"{name} is {value!r}; expected a whole number from {least} on{auto}")
    return int(value)
