"""EpisodeRequest: what the harness asks of a multi-turn task, a document each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lmms_eval.api.instance import Instance

from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.transcripts.variant import Variant


class EpisodeRequest(NamedTuple):
    """The arguments of such a request, in the harness's order."""

    text: str
    gen_kwargs: Mapping[str, Any] | None
    doc_to_visual: Callable[..., Any]
    doc_to_text: Any  # a functools.partial of the task's function
    doc_id: int
    task: str
    split: str

    @classmethod
    def of(cls, request: Instance) -> EpisodeRequest:
        """The arguments of a request; ``HarnessError`` if they are not what they have been."""
        if len(request.args) != len(cls._fields):
            raise HarnessError(
                f"lmms-eval asks for an episode by {len(request.args)} arguments, not by "
                f"{len(cls._fields)} ({', '.join(cls._fields)}); `proactivebench info` shows its "
                "version, docs/limits.md those that are supported"
            )
        return cls(*request.args)

    @property
    def variant(self) -> Variant:
        """What the task's YAML asks for."""
        return Variant.parse(self.doc_to_text.keywords.get("lmms_eval_specific_kwargs"))

    def documents(self, lm: Any) -> Sequence[Mapping[str, Any]]:
        """All documents of the task, as the model wrapper has them."""
        found: Sequence[Mapping[str, Any]] = lm.task_dict[self.task][self.split]
        return found
