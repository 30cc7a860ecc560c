"""The stage as the harness calls it: it may judge nothing, but it never loses an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.judge_server import JudgeServer, marks, record

from proactivebench_tasks.config import JudgeKind
from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.judge import stage
from proactivebench_tasks.judge.settings import JudgeSettings
from proactivebench_tasks.judge.stage import JudgeFilter
from proactivebench_tasks.transcripts.open_ended import OpenEnded

LEXICAL = {"judge": {"kind": "lexical"}}


def judged(*records: OpenEnded) -> list[dict[str, Any]]:
    """What is written of the records once they have been judged."""
    texts = JudgeFilter().apply(([record.to_json()] for record in records), None)
    return [json.loads(text) for (text,) in texts]


def test_each_transcript_gains_all_that_the_judge_said() -> None:
    (told,) = judged(record(0, generated="It is a tree.", **LEXICAL))
    assert told["judge"] == {
        "kind": "lexical",
        "model": "lexical-2",
        "comparable": False,
        "raw": "0, 0, 0, 1",
        "verdict": [0, 0, 0, 1],
        "unscored": None,
    }
    assert {k: v for k, v in told.items() if k != "judge"} == {
        k: v
        for k, v in json.loads(record(0, generated="It is a tree.").to_json()).items()
        if k != "judge"
    }


def test_environment_chooses_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    with JudgeServer() as server:
        monkeypatch.setenv("PROACTIVEBENCH_JUDGE", "openai")
        monkeypatch.setenv("PROACTIVEBENCH_JUDGE_URL", server.url)
        found = judged(*(record(i, **LEXICAL) for i in range(5)))
    assert [r["judge"]["verdict"] for r in found] == [marks(i) for i in range(5)]
    assert {r["judge"]["model"] for r in found} == {"Qwen/Qwen3-8B"}


def test_failed_samples_are_not_judged_and_other_texts_pass_through() -> None:
    failed = record(1, error="DataError: broken", **LEXICAL).to_json()
    other = ["", "plain text", "[1]", '{"turns": []}', failed]
    good = record(2, generated="Rewind it", **LEXICAL).to_json()
    found = JudgeFilter().apply(([text] for text in [*other, good]), None)
    assert found[:-1] == [[text] for text in other]
    assert json.loads(found[-1][0])["judge"]["verdict"] == [0, 1, 0, 0]


def test_every_repeat_is_judged() -> None:
    texts = [
        [record(i, generated=text, **LEXICAL).to_json() for text in ("A tree.", "Rewind it", "Hm.")]
        for i in range(2)
    ]
    texts[1][0] = "no record"
    found = JudgeFilter().apply(iter(texts), None)
    assert found[1][0] == "no record"
    marks_of = [
        [json.loads(text)["judge"]["verdict"] for text in each] for each in (found[0], found[1][1:])
    ]
    assert marks_of == [[[0, 0, 0, 1], [0, 1, 0, 0], [0] * 4], [[0, 1, 0, 0], [0] * 4]]


def test_the_judge_reads_an_answer_without_its_thinking() -> None:
    thought = {"output": "<think>Is it a tree?</think>No idea.", "generated": "No idea."}
    (told,) = judged(record(0, **thought, **LEXICAL))
    assert told["judge"]["verdict"] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("env", "error"),
    [
        ({}, "JudgeError: "),  # no judge
        ({"PROACTIVEBENCH_JUDGE": "oracle"}, "ConfigError: "),
        ({"PROACTIVEBENCH_JUDGE": "openai"}, "JudgeError: "),  # no server
        ({"PROACTIVEBENCH_JUDGE": "lexical", "PROACTIVEBENCH_CACHE": "/proc/none"}, "JudgeError: "),
    ],
)
def test_a_judge_that_cannot_work_costs_no_answer(
    env: dict[str, str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    (kept,) = judged(record(0, judge={"kind": ""}))
    assert kept["generated"] == "reply 0"
    assert kept["judge"]["unscored"].startswith(error)


def test_sample_of_another_protocol_alone_is_unscored_with_the_reason(log: list[str]) -> None:
    first, other, last = judged(
        record(0, generated="A tree.", **LEXICAL),
        record(1, protocol="builtin-0", **LEXICAL),
        record(2, generated="A tree.", **LEXICAL),
    )
    assert first["judge"]["verdict"] == last["judge"]["verdict"] == [0, 0, 0, 1]
    assert "builtin-0" in other["judge"]["unscored"]
    assert "builtin-1 is installed" in other["judge"]["unscored"]
    assert other["generated"] == "reply 1"
    said = "".join(log)
    assert "1 of 3 answers are unscored" in said
    assert "got no reply" not in said  # to ask again would not help


def test_later_judges_nothing_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_JUDGE", "later")
    stage.require("")
    assert [r["judge"] for r in judged(record(0), record(1))] == [{"kind": "later"}] * 2
    with pytest.raises(JudgeError, match="set PROACTIVEBENCH_JUDGE to"):
        stage.make_judge(JudgeSettings(JudgeKind.LATER))


def test_required_judge_must_be_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    stage.require("lexical")
    with pytest.raises(JudgeError, match="PROACTIVEBENCH_JUDGE=openai"):
        stage.require("")
    monkeypatch.setenv("PROACTIVEBENCH_CACHE", "/proc/none")
    with pytest.raises(JudgeError, match="PROACTIVEBENCH_CACHE"):
        stage.require("lexical")
