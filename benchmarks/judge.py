"""How much faster is our judge stage than a judge called inside process_results?

Both judge the same answers on the same scripted server: ours with the default limit of 32 requests
at once, the harness's with its own judge client in its own threads (``process_docs_parallel``).
Prints both times and their ratio; exits with 1 if it is below 4.

    python benchmarks/judge.py [--answers 256] [--latency 0.2]
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from fakes.judge_server import marks, record  # noqa: E402
from lmms_eval import evaluator  # noqa: E402
from lmms_eval.llm_judge import Request, ServerConfig, get_server  # noqa: E402

from proactivebench_tasks.config import JudgeKind  # noqa: E402
from proactivebench_tasks.judge import stage, verdict  # noqa: E402
from proactivebench_tasks.judge.openai import OpenAIJudge  # noqa: E402
from proactivebench_tasks.judge.question import Question  # noqa: E402
from proactivebench_tasks.judge.reply_cache import ReplyCache  # noqa: E402
from proactivebench_tasks.judge.settings import JudgeSettings  # noqa: E402
from proactivebench_tasks.transcripts.open_ended import OpenEnded  # noqa: E402

LEAST = 4.0


def ours(url: str, records: list[OpenEnded]) -> list[list[int]]:
    with tempfile.TemporaryDirectory() as folder, ReplyCache(Path(folder, "cache")) as cache:
        judged = stage.run(records, OpenAIJudge(JudgeSettings(JudgeKind.OPENAI, url=url)), cache)
    return [list(record.judge.verdict or ()) for record in judged]


def theirs(url: str, records: list[OpenEnded]) -> list[list[int]]:
    os.environ |= {"OPENAI_API_URL": url, "OPENAI_API_KEY": "none"}
    server = get_server("openai", ServerConfig("Qwen/Qwen3-8B"))

    def process_results(judged: OpenEnded) -> list[int]:
        reply = server.evaluate(Request(Question.of(judged).messages))
        return verdict.marks(reply.content, judged.valid_answers)

    parameters = inspect.signature(evaluator.evaluate).parameters
    threads = parameters["process_docs_parallel"].default
    return evaluator._thread_map_ordered(process_results, records, threads)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--answers", type=int, default=256)
    arguments.add_argument("--latency", type=float, default=0.2, help="seconds")
    given = arguments.parse_args()
    records = [record(i) for i in range(given.answers)]
    served = subprocess.Popen(  # on its own: a server in this process would share its interpreter
        [sys.executable, TESTS / "fakes" / "judge_server.py", str(given.latency)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert served.stdin is not None
    assert served.stdout is not None
    with served, served.stdin:
        url = json.loads(served.stdout.readline())
        seconds = {}
        for way in (theirs, ours):
            way(url, records[:1])  # imports
            start = time.perf_counter()
            verdicts = way(url, records)
            seconds[way.__name__] = time.perf_counter() - start
            assert verdicts == [marks(i) for i in range(given.answers)]
    ratio = seconds["theirs"] / seconds["ours"]
    print(f"{given.answers} answers at {given.latency} s")
    print(f"process_results, the harness's threads  {seconds['theirs']:8.2f} s")
    print(f"our stage, 32 at once                   {seconds['ours']:8.2f} s")
    print(f"ratio                                   {ratio:8.2f}  (at least {LEAST})")
    return 0 if ratio >= LEAST else 1


if __name__ == "__main__":
    raise SystemExit(main())
