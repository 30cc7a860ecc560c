"""The judge in this process: a tiny causal model, in batches, with and without thinking."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread, Timer

import pytest
from fakes.judge_server import record

from proactivebench_tasks.config import JudgeKind
from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.judge import stage
from proactivebench_tasks.judge.base import Reply
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.judge.reply_cache import ReplyCache
from proactivebench_tasks.judge.settings import JudgeSettings

pytestmark = pytest.mark.slow

SAYS = {
    "tree": "So: 0,0,0,1",
    "rewind": "<think> Maybe 1,1,1,1 </think> 0,1,0,0",
    "hm": "None of these",
}
VERDICTS = {"tree": (0, 0, 0, 1), "rewind": (0, 1, 0, 0), "hm": None}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from fakes.parrot import parrot

    return parrot(tmp_path_factory.mktemp("parrot"), SAYS)


def ask(model: Path, ends: list[str], **changes: int) -> list[Reply]:
    """Replies to texts of many lengths that end with these words."""
    from proactivebench_tasks.judge.hf import HFJudge

    judge = HFJudge(
        JudgeSettings(JudgeKind.HF, str(model), device="cpu", **({"max_tokens": 20} | changes))  # type: ignore[arg-type]
    )
    texts = [("word " * (7 * i % 31)) + end for i, end in enumerate(ends)]
    questions = [Question.of(record(i, generated=text)) for i, text in enumerate(texts)]
    found = dict(judge.ask(questions))
    assert sorted(found) == list(range(len(ends)))
    return [found[i] for i in range(len(ends))]


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_batches_answer_each_question_with_its_own_reply(model: Path, batch_size: int) -> None:
    ends = ["tree", "rewind", "hm", "rewind", "tree", "tree", "hm", "rewind"]
    replies = ask(model, ends, batch_size=batch_size)
    assert replies == [Reply(SAYS[end], finish="stop") for end in ends]


def test_reply_that_is_cut_off_says_so(model: Path) -> None:
    (whole, cut) = ask(model, ["tree", "rewind"], max_tokens=4)
    assert (whole.finish, whole.fault) == ("stop", None)
    assert cut.finish == "length"
    assert SAYS["rewind"].startswith((cut.raw or "").strip())
    assert "cut off at the limit on tokens" in (cut.fault or "")


def test_thinking_is_kept_in_the_log_and_left_out_of_the_verdict(
    model: Path, tmp_path: Path
) -> None:
    from proactivebench_tasks.judge.hf import HFJudge

    records = [
        record(i, generated=f"It is {end}") for i, end in enumerate(["rewind", "tree", "hm"])
    ]
    with ReplyCache(tmp_path / "verdicts.sqlite") as cache:
        judge = HFJudge(JudgeSettings(JudgeKind.HF, str(model), device="cpu", max_tokens=20))
        said = [record.judge for record in stage.run(records, judge, cache)]
    assert [s.verdict for s in said] == [VERDICTS[e] for e in ("rewind", "tree", "hm")]
    assert said[0].raw == SAYS["rewind"]
    assert said[0].kind == "hf"
    assert said[2].unscored


def test_failure_of_a_batch_is_a_reason_for_its_questions_alone(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from proactivebench_tasks.judge.hf import HFJudge

    generate = HFJudge._generate

    def fails_once(self: HFJudge, texts: list[str]) -> list[str]:
        if len(calls) == 1:
            calls.append(texts)
            raise RuntimeError("out of memory")
        calls.append(texts)
        return generate(self, texts)

    calls: list[list[str]] = []
    monkeypatch.setattr(HFJudge, "_generate", fails_once)
    replies = ask(model, ["tree"] * 6, batch_size=2)
    assert [r.error for r in replies].count("RuntimeError: out of memory") == 2
    assert [r.raw for r in replies].count(SAYS["tree"]) == 4


def test_model_that_cannot_be_had_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="no-such-model"):
        ask(tmp_path / "no-such-model", ["tree"])


@pytest.fixture
def served(model: Path) -> Iterator[str]:
    """`transformers serve` with the tiny model; the URL."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(model)]
    command += ["--device", "cpu", "--host", "127.0.0.1", "--port", "0"]  # a port that is free
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        given_up = Timer(600, process.kill)  # ends the loop below
        given_up.daemon = True
        given_up.start()
        try:
            assert process.stdout is not None
            said: list[str] = []
            for line in process.stdout:
                said.append(line)
                if ready := re.search(r"running on (http://127\.0\.0\.1:\d+)", line):
                    break
            else:
                pytest.fail("transformers serve has ended:\n" + "".join(said))
            given_up.cancel()
            # What it says from now on is read, too: it would wait if the pipe were full.
            rest = Thread(target=said.extend, args=(process.stdout,))
            rest.start()
            yield f"{ready[1]}/v1"
            process.terminate()
            rest.join()
        finally:
            given_up.cancel()
            process.kill()


def test_real_server_answers_the_judge(served: str, model: Path, tmp_path: Path) -> None:
    from proactivebench_tasks.judge.openai import OpenAIJudge

    ends = ["rewind", "tree", "hm"] * 3
    records = [record(i, generated=f"{i} It is {end}") for i, end in enumerate(ends)]
    judge = OpenAIJudge(JudgeSettings(JudgeKind.OPENAI, str(model), served, max_tokens=20))
    with ReplyCache(tmp_path / "verdicts.sqlite") as cache:
        judged = stage.run(records, judge, cache)
    assert [record.judge.verdict for record in judged] == [VERDICTS[end] for end in ends]
