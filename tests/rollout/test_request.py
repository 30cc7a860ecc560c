"""EpisodeRequest: what the harness asks, and that another way to ask is said, not guessed at."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from lmms_eval.api.instance import Instance

from proactivebench_tasks import hooks
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.rollout.request import EpisodeRequest
from proactivebench_tasks.transcripts.variant import Variant

ASKED = partial(hooks.doc_to_text, lmms_eval_specific_kwargs={"hint": True})
ARGUMENTS = ("text", {"max_new_tokens": 5}, hooks.doc_to_visual, ASKED, 3, "task", "test")


def request(*arguments: Any) -> Instance:
    return Instance(
        "generate_until_agentic", arguments, 0, {"task": "task", "doc_id": 3, "repeats": 1}
    )


def test_arguments_have_their_names() -> None:
    found = EpisodeRequest.of(request(*ARGUMENTS))
    assert (found.doc_id, found.task, found.split) == (3, "task", "test")
    assert found.gen_kwargs == {"max_new_tokens": 5}
    assert found.variant == Variant(hint=True)


@pytest.mark.parametrize("arguments", [(), ARGUMENTS[:-1], (*ARGUMENTS, "more")])
def test_another_shape_is_an_error_that_names_the_one_expected(arguments: Any) -> None:
    with pytest.raises(HarnessError, match=rf"by {len(arguments)} arguments, not by 7 \(text, "):
        EpisodeRequest.of(request(*arguments))
