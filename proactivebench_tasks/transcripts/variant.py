"""Setting: the variant of the benchmark that a task's YAML asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.errors import HarnessError


@dataclass(frozen=True)
class Setting:
    """What ``lmms_eval_specific_kwargs`` may say, with its defaults."""

    mode: Mode = Mode.NORMAL
    hint: bool = False
    #: Keep earlier turns (picture, prompt, answer) in the conversation.
    history: bool = False
    #: Worked examples before the sample.
    icl: int = 0
    #: Keep an example's first and last turn only.
    icl_ends_only: bool = False
    #: Precede an example's suggestions with the protocol's chain of thought.
    cot: bool = False
    #: Make examples for every dataset, by a rule of our own (see examples.py).
    icl_generic: bool = False
    #: Scale pictures down to this short edge, in pixels; 0 leaves them as they are.
    short_edge: int = 0
    #: Open-ended generation: no list, one turn, a judge.
    open_ended: bool = False
    #: Append the fixed sentence that asks the model to say how to help it (open-ended only).
    oeg_hint: bool = False
    #: Kind of judge (open-ended only); the environment's PROACTIVEBENCH_JUDGE comes first.
    judge: str = ""
    #: Drop ``<think>...</think>`` from each answer before it is graded.
    strip_thinking: bool = False
    #: Seed of what random mode draws, together with the sample.
    seed: int = 0

    def asked_for(self) -> dict[str, Any]:
        """What differs from the default."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}

    @property
    def several_pictures(self) -> bool:
        """Whether a turn can show more than one picture."""
        return self.history or self.icl > 0

    @classmethod
    def parse(cls, kwargs: Mapping[str, Any] | None) -> Setting:
        """Read a task's ``lmms_eval_specific_kwargs``; ``HarnessError`` for a key or value that is
        not known."""
        # The harness merges `default` into the mapping and leaves the blocks of other models there.
        given = {k: v for k, v in (kwargs or {}).items() if not isinstance(v, Mapping)}
        known = {field.name: field for field in fields(cls)}
        for key, value in given.items():
            if key not in known:
                raise HarnessError(
                    f"lmms_eval_specific_kwargs: unknown key {key!r}; known: {', '.join(known)}"
                )
            if key == "mode":
                if not isinstance(value, str) or value not in {m.value for m in Mode}:
                    raise HarnessError(
                        f"lmms_eval_specific_kwargs: mode is {value!r}; expected one of "
                        f"{', '.join(m.value for m in Mode)}"
                    )
                given[key] = Mode(value)
            elif type(value) is not type(known[key].default):
                raise HarnessError(
                    f"lmms_eval_specific_kwargs: {key} is {value!r}; expected a "
                    f"{type(known[key].default).__name__}"
                )
            elif isinstance(value, int) and not isinstance(value, bool) and value < 0:
                raise HarnessError(
                    f"lmms_eval_specific_kwargs: {key} is {value}; expected 0 or more"
                )
        return cls(**given)
