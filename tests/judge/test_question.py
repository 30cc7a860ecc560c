"""What a judge is asked, and the key under which its reply is kept."""

from __future__ import annotations

import pytest
from fakes.judge_server import record

from proactivebench_tasks.errors import ProtocolError
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.transcripts.open_ended import JudgeIdentity, OpenEnded

ODD = "Is it <b>r\N{LATIN SMALL LETTER E WITH ACUTE}el</b>? {0} \udfff"


@pytest.mark.parametrize(
    ("asked", "judge", "key"),
    [
        (
            record(3),
            JudgeIdentity(kind="openai", model="Qwen/Qwen3-8B"),
            "1c27ada778a32c11f78f9725bd35cfb328cad1546cc6b1260aa88fca49c3fe91",
        ),
        (
            record(3, generated=ODD),
            JudgeIdentity(kind="hf", model="Qwen/Qwen3-8B", max_tokens=32768),
            "cd172cf981f5005118333248234719b0574abadeee80998d221e84cddde39153",
        ),
        (
            record(3, prompt="Was ist es?", valid_answers="Ask, One, two."),
            JudgeIdentity(kind="lexical", model="lexical-1"),
            "55fbd5a04d6d5161d0942c23f9e23ce8b8822e1f0ed97861c58f98630752df1e",
        ),
    ],
)
def test_replies_kept_by_earlier_releases_are_found(
    asked: OpenEnded, judge: JudgeIdentity, key: str
) -> None:
    # The keys are what the code before commit 8a94e60, which made records typed, had for these.
    assert Question.of(asked).key(judge) == key


@pytest.mark.network
def test_official_replies_kept_by_earlier_releases_are_found() -> None:
    judge = JudgeIdentity(kind="openai", model="Qwen/Qwen3-8B")
    asked = record(3, protocol="proactivebench-0.1.1")
    key = "d69bb5013096d6978edf4287e2bc7ecb1d785e183cedfa1478fdbcce7b3a8230"
    assert Question.of(asked).key(judge) == key


def test_identity_that_a_record_holds_asks_for_the_same_reply() -> None:
    judge = JudgeIdentity(kind="openai", model="m")
    told = record(3, judge={**judge.to_dict(), "comparable": True, "raw": "0", "verdict": None})
    question = Question.of(told)
    held = OpenEnded.from_json(told.to_json()).judge.identity
    assert question.key(held) == question.key(judge)
    limited = JudgeIdentity(kind="openai", model="m", max_tokens=9)
    assert question.key(limited) != question.key(judge)


def test_sample_of_another_protocol_is_no_question_of_this_one() -> None:
    with pytest.raises(ProtocolError, match="builtin-0"):
        Question.of(record(0, protocol="builtin-0"))
