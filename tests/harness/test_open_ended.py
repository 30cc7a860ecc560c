"""Open-ended generation from the task's name to its metrics, through the harness."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
from fakes.judge_server import Act, JudgeServer, never
from fakes.probe import Lab
from lmms_eval import evaluator
from lmms_eval.tasks import TaskManager
from lmms_eval.utils import make_table

from proactivebench_tasks import hooks
from proactivebench_tasks.baselines.model import Baseline
from proactivebench_tasks.baselines.policies import OPEN_ENDED
from proactivebench_tasks.data.prepared import prepared
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments.environment import derived_seed
from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.plugin import TASKS
from proactivebench_tasks.protocol.protocol import split_answers
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.transcripts.variant import Variant

DEMO = [f"proactivedemo_oeg_{dataset.task}" for dataset in Dataset]


@pytest.fixture(autouse=True)
def own_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf"))


def evaluate(model: Any, *tasks: str, tags: str | None = None, **kwargs: Any) -> dict[str, Any]:
    given = {"process_with_media": False, "agentic_trace_mode": "basic", "reasoning_tags": tags}
    return evaluator.simple_evaluate(
        model=model,
        tasks=list(tasks),
        task_manager=TaskManager(include_path=str(TASKS), include_defaults=False),
        cli_args=SimpleNamespace(**given),
        bootstrap_iters=0,
        **kwargs,
    )


def predicted(policy: str, seed: int, dataset: Dataset) -> dict[str, float]:
    """The metrics of a baseline, by what it says alone: word for word an answer, or not."""
    lines = prepared(Suite.DEMO, dataset).read_text("utf-8").splitlines()
    count: Counter[str] = Counter()
    for line in lines:
        episode = documents.episode(json.loads(line), Variant(open_ended=True))
        chance = random.Random(derived_seed(seed, dataset.value, episode.sample.id, 0))
        text = OPEN_ENDED[policy](episode, chance)
        answers = split_answers(episode.environment.open_ended_answers())
        marks = [text in (f"{answer}.", f"It is {answer}.") for answer in answers]
        leading = episode.environment.num_open_ended_suggestions()
        count["ps"] += any(marks[:leading])
        count["acc"] += any(marks[leading:])
        count["agg"] += any(marks)
    return {name: 100 * count[name] / len(lines) for name in ("acc", "ps", "agg")}


@pytest.mark.parametrize("policy", OPEN_ENDED)
def test_baselines_score_what_their_text_says(policy: str) -> None:
    outcome = evaluate(Baseline(policy, seed=3), *DEMO)
    for dataset, task in zip(Dataset, DEMO, strict=True):
        found = {name: outcome["results"][task][f"{name},none"] for name in ("acc", "ps", "agg")}
        assert found == pytest.approx(predicted(policy, 3, dataset)), task
        metrics = outcome["proactivebench"]["tasks"][task]["metrics"]
        assert metrics["unscored"]["mean"] == metrics["failed"]["mean"] == 0


def test_baselines_bound_what_can_be_scored() -> None:
    ends = {policy: predicted(policy, 0, Dataset.QUICKDRAW) for policy in OPEN_ENDED}
    assert ends["oracle"] == ends["reactive"] == {"acc": 100, "ps": 0, "agg": 100}
    assert ends["always_ask"] == {"acc": 0, "ps": 100, "agg": 100}
    assert ends["refuse"] == {"acc": 0, "ps": 0, "agg": 0}
    # Where only asking is right, naming the category is worth nothing.
    assert predicted("oracle", 0, Dataset.ROD) == {"acc": 0, "ps": 100, "agg": 100}
    assert predicted("reactive", 0, Dataset.ROD) == {"acc": 0, "ps": 0, "agg": 0}


def test_group_shows_the_plain_mean_of_its_datasets() -> None:
    outcome = evaluate(Baseline("random"), "proactivedemo-oeg")
    found = outcome["results"]
    for name in ("acc", "ps", "agg"):
        mean = sum(found[task][f"{name},none"] for task in DEMO) / 7
        assert found["proactivedemo-oeg"][f"{name},none"] == pytest.approx(mean)
    group = outcome["proactivebench"]["groups"]["proactivedemo-oeg"]
    assert group["best_acc"] == pytest.approx(500 / 7)  # ROD and MVP-N accept no category
    assert group["metrics"]["unscored"]["mean"] == group["metrics"]["failed"]["mean"] == 0


def test_sample_log_holds_generation_answers_and_all_of_the_verdict() -> None:
    rows = evaluate(Baseline("oracle"), "proactivedemo_oeg_vsod")["samples"]
    for row in rows["proactivedemo_oeg_vsod"]:
        record = json.loads(row["filtered_resps"][0])
        category = row["doc"]["answer"].removesuffix(".")
        assert record["generated"] == f"It is {category}."
        assert split_answers(record["valid_answers"])[-1] == category
        assert record["judge"]["raw"] == "0, 0, 0, 1"
        assert record["judge"]["verdict"] == [0, 0, 0, 1]
        assert record["judge"]["model"] == "lexical-2"
        assert record["judge"]["comparable"] is False
        assert row["arguments"][0] == record["prompt"]  # no list of options


def test_unusable_verdicts_show_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Act(content="1, 1")
    with JudgeServer() as server:
        server.script = lambda *_: odd if len(server.bodies) <= 4 else Act(content="1, 0, 0, 0")
        monkeypatch.setenv("PROACTIVEBENCH_JUDGE", "openai")
        monkeypatch.setenv("PROACTIVEBENCH_JUDGE_URL", server.url)
        model = Baseline("reactive")
        outcome = evaluate(model, "proactivedemo_oeg_vsod")
    metrics = outcome["proactivebench"]["tasks"]["proactivedemo_oeg_vsod"]["metrics"]
    found = {name: each["mean"] for name, each in metrics.items()}
    # Two samples share a prompt and a category, so a question may stand for more than one.
    assert found["unscored"] >= 100 * 4 / 16
    assert found["ps"] == found["agg"] == 100 - found["unscored"]
    assert found["acc"] == found["failed"] == 0
    unscored = round(found["unscored"] * 16 / 100)
    shown = make_table(outcome, "results")
    assert f"! vsod: {unscored} of 16 samples have no verdict and count as 0" in shown


@pytest.mark.parametrize(
    ("thought", "said", "acc"),
    [
        ("Perhaps it is {answer}", "No idea.", 0),
        ("I would rather not say.", "It is {answer}", 100),
        ("It is {answer}", "", 0),
    ],
)
def test_thinking_is_not_judged(thought: str, said: str, acc: float) -> None:
    class Thinking(Baseline):
        def generate_until(self, requests: list[Any]) -> list[str]:
            docs = (
                self.task_dict[task][split][i] for *_, i, task, split in (r.args for r in requests)
            )
            text = f"<think>{thought}</think>\n{said}"
            return [text.replace("{answer}", doc["answer"]) for doc in docs]

    tags = '[["<think>", "</think>"]]'
    outcome = evaluate(Thinking("oracle"), "proactivedemo_oeg_vsod", tags=tags)
    assert outcome["results"]["proactivedemo_oeg_vsod"]["acc,none"] == acc
    for row in outcome["samples"]["proactivedemo_oeg_vsod"]:
        record = json.loads(row["filtered_resps"][0])
        assert "<think>" in record["output"] and "<think>" not in record["generated"]


class Silent(Baseline):
    """Fails the test if it is asked anything."""

    def generate_until(self, requests: list[Any]) -> list[str]:
        raise AssertionError("generated before the judge was known")


def test_official_task_without_a_judge_ends_before_anything_is_generated(lab: Lab) -> None:
    lab.make(Dataset.ROD, count=3)
    with pytest.raises(JudgeError, match="PROACTIVEBENCH_JUDGE=openai"):
        evaluate(Silent(), "proactivebench_mcqa_rod", "proactivebench_oeg_rod")


def test_official_task_is_judged_later(monkeypatch: pytest.MonkeyPatch, lab: Lab) -> None:
    lab.make(Dataset.ROD, count=3)
    monkeypatch.setenv("PROACTIVEBENCH_JUDGE", "later")
    outcome = evaluate(Baseline("oracle"), "proactivebench_oeg_rod", predict_only=True)
    records = [
        json.loads(row["filtered_resps"][0]) for row in outcome["samples"]["proactivebench_oeg_rod"]
    ]
    assert [r["generated"] for r in records] == ["Move the blocks."] * 3
    assert [r["judge"] for r in records] == [{"kind": "later"}] * 3


@pytest.mark.parametrize("count", [3, 100, 150])
def test_official_subset_is_the_first_hundred_of_the_shuffled_rows(count: int) -> None:
    rows = [{"id": 7 * i} for i in range(count)]
    found = hooks.official_subset(datasets.Dataset.from_list(rows))
    random.Random(0).shuffle(rows)
    assert list(found) == rows[:100]


@pytest.mark.slow
def test_demo_runs_from_the_command_line_and_is_judged_again_afterwards(tmp_path: Path) -> None:
    def call(*command: str, **env: str) -> str:
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", **env}
        program = str(Path(sys.executable).with_name(command[0]))
        return subprocess.run(
            [program, *command[1:]], env=environment, check=True, capture_output=True, text=True
        ).stdout

    table = call(
        *("lmms-eval", "--model", "proactivebench_baseline", "--model_args", "policy=always_ask"),
        *("--tasks", "proactivedemo_oeg_rod", "--predict_only", "--output_path", str(tmp_path)),
        PROACTIVEBENCH_JUDGE="later",
    )
    assert "bypass" in table
    table = call("proactivebench", "judge", str(tmp_path), PROACTIVEBENCH_JUDGE="lexical")
    (row,) = [line.split() for line in table.splitlines() if line.startswith("  rod")]
    assert row == [
        "rod",
        "16",
        *["0.0", "±", "0.0", "100.0", "±", "0.0", "100.0", "±", "0.0"],
        "0.0",
    ]


KILLED = """
import sys
from test_open_ended import DEMO, evaluate
from proactivebench_tasks.baselines.model import Baseline
from proactivebench_tasks.judge.reply_cache import ReplyCache

put = ReplyCache.put

def told(*args, **kwargs):  # the test kills this process after so many
    kept = put(*args, **kwargs)
    print("kept", flush=True)
    return kept

ReplyCache.put = told

class Noted(Baseline):
    def __repr__(self):  # the response cache tells models apart by it
        return "Noted"

    def generate_until(self, requests):
        with open(sys.argv[1], "a") as notes:
            print(len(requests), file=notes)
        return super().generate_until(requests)

found = evaluate(Noted("random", seed=1), *DEMO, use_cache=sys.argv[2])["results"]
print([found[task]["agg,none"] for task in DEMO])
"""


@pytest.mark.slow
def test_killed_while_judging_it_goes_on_where_it_was(tmp_path: Path, own_cache: Path) -> None:
    here = Path(__file__).parent

    def run() -> subprocess.Popen[str]:
        notes, cache = tmp_path / "notes", tmp_path / "responses"
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (here, here.parent))),
            "PROACTIVEBENCH_JUDGE": "openai",
            "PROACTIVEBENCH_JUDGE_URL": server.url,
            "PROACTIVEBENCH_JUDGE_CONCURRENCY": "4",
        }
        command = [sys.executable, "-c", KILLED, str(notes), str(cache)]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)

    def kept() -> int:
        with sqlite3.connect(own_cache / "verdicts.sqlite") as db:
            return db.execute("SELECT count(*) FROM replies").fetchone()[0]

    with JudgeServer() as server:
        server.script = lambda *_: Act(until=never) if len(server.bodies) > 40 else Act()
        with run() as killed:
            given_up = Timer(600, killed.kill)  # ends the reading below
            given_up.daemon = True
            given_up.start()
            assert killed.stdout is not None
            told = 0
            while told < 40:
                line = killed.stdout.readline()
                assert line, "it has ended"
                told += line == "kept\n"
            given_up.cancel()
            server.wait_until(lambda: len(server.bodies) == 44)
            killed.kill()
        assert kept() == 40
        server.script = lambda *_: Act()
        generated = (tmp_path / "notes").read_text()
        output, _ = run().communicate()
        assert len(json.loads(output.splitlines()[-1])) == 7
        assert (tmp_path / "notes").read_text() == generated  # nothing was generated again
        asked = Counter(body["messages"][-1]["content"] for body in server.bodies)
        # The four under way when it was killed were asked twice, and no other.
        assert sorted(asked.values())[-5:] == [1, 2, 2, 2, 2]
        before = len(server.bodies)
        assert run().communicate()[0].splitlines()[-1] == output.splitlines()[-1]
        assert len(server.bodies) == before
