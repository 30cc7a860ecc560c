"""Variant: which variant of the benchmark a task's YAML asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from proactivebench_tasks.config import JudgeKind
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Sample


class Variant(BaseModel):
    """What ``lmms_eval_specific_kwargs`` may say, with its defaults."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    mode: Annotated[Mode, Field(strict=False)] = Mode.NORMAL
    hint: bool = False
    #: Keep earlier turns (image, prompt, answer) in the conversation.
    history: bool = False
    #: Worked examples before the sample.
    icl: NonNegativeInt = 0
    #: Keep an example's first and last turn only.
    icl_ends_only: bool = False
    #: Precede an example's suggestions with the protocol's chain of thought.
    cot: bool = False
    #: Make examples for every dataset, by a rule of our own (see rollout/icl.py).
    icl_generic: bool = False
    #: Scale images down to this short edge, in pixels; 0 leaves them as they are.
    short_edge: NonNegativeInt = 0
    #: Open-ended generation: no list, one turn, a judge.
    open_ended: bool = False
    #: Append the fixed sentence that asks the model to say how to help it (open-ended only).
    oeg_hint: bool = False
    #: Kind of judge (open-ended only); the environment's PROACTIVEBENCH_JUDGE comes first.
    judge: str = ""
    #: Seed of what random mode draws, together with the sample.
    seed: NonNegativeInt = 0

    def asked_for(self) -> dict[str, Any]:
        """What differs from the default."""
        return self.model_dump(exclude_defaults=True)

    def episode(self, sample: Sample, protocol: Protocol) -> Episode:
        """A fresh episode of a sample in this variant: the one that is played, and the one that its
        answers are scored by."""
        return Episode(sample, protocol, self.mode, self.seed, self.hint)

    @property
    def several_images(self) -> bool:
        """Whether a turn can show more than one image."""
        return self.history or self.icl > 0

    @classmethod
    def parse(cls, kwargs: Mapping[str, Any] | None) -> Variant:
        """Read a task's ``lmms_eval_specific_kwargs``; ``HarnessError`` for a key or value that is
        not known."""
        # The harness merges `default` into the mapping and leaves the blocks of other models there.
        given = {k: v for k, v in (kwargs or {}).items() if not isinstance(v, Mapping)}
        try:
            variant = cls(**given)
        except ValidationError as error:
            faults = "; ".join(map(_fault, error.errors(include_url=False)))
        else:
            faults = "; ".join(variant.faults())
        if faults:
            raise HarnessError(f"lmms_eval_specific_kwargs: {faults}")
        return variant

    def faults(self) -> list[str]:
        """Keys that have no effect, or that do not go together."""
        needs = {"cot": "icl", "icl_ends_only": "icl", "icl_generic": "icl"}
        needs |= {"oeg_hint": "open_ended", "judge": "open_ended"}
        found = [
            f"{key} has no effect without {other}"
            for key, other in needs.items()
            if getattr(self, key) and not getattr(self, other)
        ]
        if self.judge and self.judge not in (kinds := [kind.value for kind in JudgeKind]):
            found.append(f"judge is {self.judge!r}; expected one of {', '.join(kinds)}")
        if self.open_ended:
            if self.mode is not Mode.NORMAL:
                found.append(f"open_ended does not go with mode {self.mode.value}")
            found += [
                f"{key} does not go with open_ended, which has one turn and no list"
                for key in ("history", "icl")
                if getattr(self, key)
            ]
        return found


def _fault(error: Any) -> str:
    key = error["loc"][0]
    if error["type"] == "extra_forbidden":
        return f"unknown key {key!r}; known: {', '.join(Variant.model_fields)}"
    if key == "mode":
        known = ", ".join(mode.value for mode in Mode)
        return f"mode is {error['input']!r}; expected one of {known}"
    if error["type"] == "greater_than_equal":
        return f"{key} is {error['input']}; expected 0 or more"
    kind = type(Variant.model_fields[key].default).__name__
    return f"{key} is {error['input']!r}; expected a {kind}"
