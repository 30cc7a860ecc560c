"""Right numbers through every door of the harness: its options act on our tasks as on any other."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import world
from fakes.probe import (
    ALL,
    ROD,
    VSOD,
    ChatReader,
    Lab,
    Reader,
    Seen,
    answers,
    expected,
    plan,
    sample_id,
    scores,
)
from lmms_eval import evaluator
from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
from lmms_eval.utils import make_table

from proactivebench_tasks.environments.episode import Stop
from proactivebench_tasks.model_patches import summary_table
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.results import rescore, summary
from proactivebench_tasks.results.table import render
from proactivebench_tasks.transcripts.transcript import Transcript

DEFAULT_TAGS = '[["<think>", "</think>"], ["<analysis>", "</analysis>"]]'
CLEAN = {e.sample.id: [t.answer for t in e.turns] for e in expected(Dataset.VSOD, 14)}


@pytest.fixture
def vsod(lab: Lab) -> Lab:
    lab.make(Dataset.VSOD)
    return lab


def part(outcome: Any) -> Mapping[str, Any]:
    return outcome.raw["proactivebench"]


def details(outcome: Any, task: str) -> list[Mapping[str, Any]]:
    return [row["proactivebench"] for row in outcome.raw["samples"][task]]


# Thinking.


@pytest.mark.parametrize(
    ("tags", "opening", "closing"),
    [
        (DEFAULT_TAGS, "<think>", "</think>"),
        (DEFAULT_TAGS, "<analysis>", "</analysis>"),
        ('[["[THINK]", "[/THINK]"]]', "[THINK]", "[/THINK]"),
        ('[["{", "}"]]', "{", "}"),
    ],
)
@pytest.mark.parametrize("wrapper", [Reader, ChatReader])
def test_thinking_is_taken_out_while_playing(
    vsod: Lab, wrapper: type[Reader], tags: str, opening: str, closing: str
) -> None:
    def aloud(seen: Seen) -> str:
        return f"{opening}A. or B.?\nNot {seen.options[0]}{closing}\n\n{plan(seen)}"

    outcome = vsod.evaluate(wrapper(4, answer=aloud), VSOD, cli={"reasoning_tags": tags})
    assert outcome.answers(VSOD) == CLEAN
    assert outcome.metrics(VSOD) == pytest.approx(scores(expected(Dataset.VSOD, 14)))
    for transcript in outcome.transcripts[VSOD].values():
        assert [opening, closing] in transcript["reasoning_tags"]
        for turn in transcript["turns"]:
            assert turn["output"].startswith(opening)
            assert turn["output"].endswith(turn["answer"])


def test_play_and_score_agree_where_tags_are_switched_off(vsod: Lab) -> None:
    def aloud(seen: Seen) -> str:
        return f"<think>hm</think>{plan(seen)}"

    outcome = vsod.evaluate(Reader(4, answer=aloud), VSOD, cli={"reasoning_tags": "none"})
    episodes = expected(Dataset.VSOD, 14, aloud)
    assert outcome.answers(VSOD) == {e.sample.id: [t.answer for t in e.turns] for e in episodes}
    assert outcome.metrics(VSOD) == pytest.approx(scores(episodes))
    assert part(outcome)["tasks"][VSOD]["reasoning_tags"] == []


def test_a_task_s_own_tags_come_before_those_of_the_command_line(vsod: Lab) -> None:
    outcome = vsod.evaluate(
        Reader(4, answer=lambda seen: f"[T]A.[/T]{plan(seen)}"),
        "thinking_vsod",
        cli={"reasoning_tags": DEFAULT_TAGS},
    )
    assert outcome.answers("thinking_vsod") == CLEAN


@pytest.mark.parametrize("tags", ["[[", '[["", "x"]]', '[["<think>"]]'])
def test_tags_that_make_no_sense_are_said_before_any_call(vsod: Lab, tags: str) -> None:
    model = Reader(4)
    with pytest.raises(Exception, match="reasoning_tags"):
        vsod.evaluate(model, VSOD, cli={"reasoning_tags": tags})
    assert model.calls == []


def test_answers_cut_while_thinking_are_counted_and_warned_of_once(
    vsod: Lab, log: list[str]
) -> None:
    model = Reader(4, answer=lambda seen: "<think>A tree? Then it is A. A boat.")
    outcome = vsod.evaluate(model, VSOD, cli={"reasoning_tags": DEFAULT_TAGS})
    metrics = part(outcome)["tasks"][VSOD]["metrics"]
    assert metrics["cut"]["mean"] == metrics["mismatch"]["mean"] == 100
    assert outcome.metrics(VSOD)["acc"] == 0
    said = [line for line in log if "cut off while the model was thinking" in line]
    assert len(said) == 1
    assert "max_new_tokens" in said[0]
    turns = [t for each in outcome.transcripts[VSOD].values() for t in each["turns"]]
    assert {(turn["cut"], turn["mismatch"]) for turn in turns} == {(True, "cut")}


# Answers beside the list.


def bracketed(seen: Seen) -> str:
    """The plan's answers in a form that the published rules do not take."""
    text = plan(seen)
    position = seen.options.index(text) if text in seen.options else None
    if position is None:
        match = re.match(r"([A-Z])\b", text)
        position = ord(match.group(1)) - ord("A") if match else None
    return text if position is None else f"({chr(ord('A') + position)})"


def test_lenient_accuracy_tells_form_from_knowledge(vsod: Lab) -> None:
    def right_in_brackets(seen: Seen) -> str:
        return f"({chr(ord('A') + seen.options.index(seen.answer))})"

    outcome = vsod.evaluate(Reader(4, answer=right_in_brackets), VSOD)
    metrics = part(outcome)["tasks"][VSOD]["metrics"]
    assert metrics["acc"]["mean"] == 0
    assert metrics["acc_lenient"]["mean"] == 100
    turns = [each["turns"][-1] for each in outcome.transcripts[VSOD].values()]
    assert {turn["mismatch"] for turn in turns} == {"other form"}


def test_lenient_accuracy_is_the_official_one_where_answers_are_options(vsod: Lab) -> None:
    metrics = part(vsod.evaluate(Reader(4), VSOD))["tasks"][VSOD]["metrics"]
    assert metrics["acc_lenient"] == metrics["acc"]


def test_lenient_accuracy_counts_no_suggestion_and_no_wrong_category(vsod: Lab) -> None:
    for choose in (lambda seen: 0, lambda seen: (seen.options.index(seen.answer) + 1) % 7):
        model = Reader(4, answer=lambda seen, c=choose: f"({chr(ord('A') + c(seen))})")
        metrics = part(vsod.evaluate(model, VSOD))["tasks"][VSOD]["metrics"]
        assert metrics["acc_lenient"]["mean"] == 0
        assert metrics["mismatch"]["mean"] == 100


def test_a_task_of_mismatches_says_so_with_examples_and_a_cause(vsod: Lab, log: list[str]) -> None:
    vsod.evaluate(Reader(4, answer=lambda seen: f"I see thing {seen.number}"), VSOD)
    (line,) = [line for line in log if "were no option of the list" in line]
    assert "100 %" in line
    assert len(re.findall(r"'I see thing \d+'", line)) == 3
    assert "--reasoning_tags" in line


def test_a_task_with_few_mismatches_says_nothing(vsod: Lab, log: list[str]) -> None:
    vsod.evaluate(Reader(4), VSOD)
    assert not [line for line in log if "were no option of the list" in line]


# Repeats.


def test_all_repeats_are_scored_and_kept_and_their_spread_is_shown(vsod: Lab) -> None:
    shown: Counter[int] = Counter()

    def wrong_first_then_right(seen: Seen) -> str:
        shown[seen.number] += 1
        return "no option" if shown[seen.number] == 1 else seen.answer

    model = Reader(4, answer=wrong_first_then_right)
    model.generation = model.generation | {"do_sample": True}
    outcome = vsod.evaluate(model, VSOD, repeats=3, gen_kwargs="do_sample=True")
    task = part(outcome)["tasks"][VSOD]
    assert task["metrics"]["acc"]["mean"] == pytest.approx(200 / 3)
    assert outcome.raw["results"][VSOD]["acc,none"] == pytest.approx(200 / 3)
    assert task["repeats"]["acc"]["means"] == [0, 100, 100]
    assert task["repeats"]["acc"]["stdev"] == pytest.approx(stdev([0, 100, 100]))
    for row in outcome.raw["samples"][VSOD]:
        assert [each["correct_prediction"] for each in row["transcript"]] == [False, True, True]
        assert row["score"] == pytest.approx(2 / 3)
        logged = json.loads(json.dumps(row["transcript"]))
        assert [json.loads(text) for text in row["filtered_resps"][0]] == logged
    assert "3 repeats" in make_table(outcome.raw, "results")


def test_one_repeat_is_a_transcript_not_a_list(vsod: Lab) -> None:
    outcome = vsod.evaluate(Reader(4), VSOD)
    assert "repeats" not in part(outcome)["tasks"][VSOD]
    assert all(isinstance(row["transcript"], dict) for row in outcome.raw["samples"][VSOD])


# Errors.


def test_the_error_of_a_group_is_that_of_a_plain_mean(lab: Lab) -> None:
    for number, dataset in enumerate(Dataset):
        lab.make(dataset, count=3 + 4 * number)
    outcome = lab.evaluate(Reader(4), "proactivebench-mcqa", bootstrap_iters=100)
    results = outcome.raw["results"]
    for metric in ("acc", "ps"):
        errors = []
        for task in ALL.values():
            values = [row[metric] for row in outcome.raw["samples"][task]]
            errors.append(stdev(values) / math.sqrt(len(values)))
        wanted = math.sqrt(sum(error**2 for error in errors)) / 7
        group = results["proactivebench-mcqa"]
        assert group[f"{metric}_stderr,none"] == pytest.approx(wanted)
        assert group[f"{metric}_stderr_clt,none"] == pytest.approx(wanted)
        summary = part(outcome)["groups"]["proactivebench-mcqa"]["metrics"][metric]
        assert summary["stderr"] == pytest.approx(wanted)
        assert summary["mean"] == pytest.approx(group[f"{metric},none"])


def test_samples_of_one_image_source_are_one_cluster(lab: Lab) -> None:
    ids = [sample_id(number, Dataset.VSOD) for number in range(12)]
    rows = world.rows(Dataset.VSOD, ids)
    for number, row in enumerate(rows):  # three samples of each of four videos, of equal length
        row["image_template"] = f"{Dataset.VSOD.value}/{number // 3}_{{image}}.png"
        row["num_images"] = 3
    world.write(lab.data, Dataset.VSOD, rows)
    right = {ids[number] for number in range(12) if number // 3 < 2}

    class OfItsOwn(Reader):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            docs = [self.doc(request) for request in requests]
            return [doc["answer"] if doc["id"] in right else "no" for doc in docs]

    outcome = lab.evaluate(OfItsOwn(4), VSOD, bootstrap_iters=100)
    figures = outcome.raw["results"][VSOD]
    plain, clustered = figures["acc_stderr,none"], figures["acc_stderr_clustered,none"]
    assert plain == pytest.approx(stdev([100.0] * 6 + [0.0] * 6) / math.sqrt(12))
    # Four videos of which two are solved: each deviates by 50 from the mean, three times.
    between = 4 * 150.0**2 - 12 * 50.0**2
    assert clustered == pytest.approx(math.sqrt(plain**2 + between / 12**2))
    assert part(outcome)["tasks"][VSOD]["clusters"] == 4


def test_an_error_that_one_task_does_not_have_is_unknown_of_the_mean(
    lab: Lab, tmp_path: Path
) -> None:
    lab.make(*Dataset)
    for dataset, videos in ((Dataset.VSOD, 1), (Dataset.CHANGEIT, 5)):
        rows = world.rows(dataset, [sample_id(number, dataset) for number in range(14)])
        for number, row in enumerate(rows):
            row["image_template"] = f"{dataset.value}/{number % videos}_{{image}}.png"
            row["num_images"] = 8
        world.write(lab.data, dataset, rows)

    class OfItsOwn(Reader):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            docs = [self.doc(request) for request in requests]
            return [doc["answer"] if doc["id"] % 4 else "no" for doc in docs]

    outcome = lab.evaluate(OfItsOwn(4), "proactivebench-mcqa", bootstrap_iters=100)
    file = saved(outcome, tmp_path)
    (run,) = rescore.runs([file], Transcript.KIND)
    again = rescore.rescore(run).results
    for name in ("proactivebench-mcqa", VSOD):
        assert outcome.raw["results"][name] == pytest.approx(again["results"][name])
        assert again["results"][name]["acc_stderr_clustered,none"] == "N/A"
        assert again["results"][name]["acc_stderr,none"] > 0
        shown = {line.split()[0]: line for line in render(outcome.raw).splitlines()}
        assert re.search(r"\d ± \?", shown["mean" if name != VSOD else "vsod"])
    assert render(again) == render(outcome.raw)


# What was shown.


def test_what_was_shown_can_be_read_back_turn_by_turn(vsod: Lab) -> None:
    seen: dict[int, list[str]] = {}

    class Noting(Reader):
        def turn(self, visual: Any, request: Instance) -> Any:
            image, text = super().turn(visual, request)
            seen.setdefault(self.doc(request)["id"], []).append(text)
            return image, text

    outcome = vsod.evaluate(Noting(4), VSOD)
    rows = outcome.raw["samples"][VSOD]
    for row in rows:
        transcript = row["transcript"]
        assert [turn["text"] for turn in transcript["turns"]] == seen[transcript["id"]]
        assert all(Path(turn["file"]).is_file() for turn in transcript["turns"])
        assert transcript["sample"]["id"] == transcript["id"]
        assert "input_media" not in row
    assert len({row["doc_hash"] for row in rows}) == len(rows)


def test_costs_are_told_by_turn(vsod: Lab) -> None:
    def fails_in_company(call: int, requests: list[Instance]) -> None:
        if len(requests) > 1:
            raise ValueError("one at a time")

    model = Reader(
        4,
        before=fails_in_company,
        twist=lambda answer, request: GenerationResult(answer, TokenCounts(10, 2)),
    )
    outcome = vsod.evaluate(model, VSOD)
    for transcript in (row["transcript"] for row in outcome.raw["samples"][VSOD]):
        assert len(transcript["costs"]) == len(transcript["turns"])
        for cost in transcript["costs"]:
            assert cost["tokens"] == {"input_tokens": 10, "output_tokens": 2}
            assert cost["calls"] >= 1
            assert cost["seconds"] > 0
    rows = outcome.raw["samples"][VSOD]
    calls = sum(cost["calls"] for row in rows for cost in row["transcript"]["costs"])
    assert calls == model.turns == part(outcome)["tasks"][VSOD]["costs"]["calls"]


def test_the_log_counts_generations_as_made(vsod: Lab, log: list[str]) -> None:
    def fails_in_company(call: int, requests: list[Instance]) -> None:
        if len(requests) > 1:
            raise ValueError("one at a time")

    model = Reader(4, before=fails_in_company)
    outcome = vsod.evaluate(model, VSOD)
    kept = sum(map(len, outcome.answers(VSOD).values()))
    assert model.turns > kept
    assert [line for line in log if f"{model.turns} generations for {kept} answers" in line]


# Efficiency, baselines, files.


def test_the_efficiency_block_is_what_a_hand_counts(vsod: Lab) -> None:
    vsod.make(Dataset.ROD)
    model = Reader(4, twist=lambda a, request: GenerationResult(a, TokenCounts(10, 2)))
    outcome = vsod.evaluate(model, VSOD, ROD, repeats=2)
    block = outcome.raw["efficiency"]
    total = Counter[str]()
    for dataset, task in ((Dataset.VSOD, VSOD), (Dataset.ROD, ROD)):
        episodes = expected(dataset, 14)
        turns = 2 * sum(len(e.turns) for e in episodes)  # each sample is played twice
        right = 2 * sum(e.turns[-1].stop is Stop.SOLVED for e in episodes)
        mine = block["by_task"][task]
        assert mine["docs"] == 14
        assert mine["total_input_tokens"] == 10 * turns
        assert mine["total_output_tokens"] == 2 * turns
        assert mine["total_correct_score"] == pytest.approx(right)
        assert mine["tokens_per_correct_answer"] == pytest.approx(2 * turns / right)
        assert mine["total_seconds"] > 0
        total.update(turns=turns, right=right)
    overall = block["overall"]
    assert overall["docs"] == 28
    assert overall["total_output_tokens"] == 2 * total["turns"]
    assert overall["tokens_per_correct_answer"] == pytest.approx(
        2 * total["turns"] / total["right"]
    )


def saved(outcome: Any, folder: Path, name: str = "model=a") -> Path:
    """Write an outcome's files as the command does; returns the results file."""
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.log_experiment_args(name, name, None, None, None)
    results = dict(outcome.raw)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples, datetime_str="now")
    for task, rows in samples.items():
        tracker.save_results_samples(task_name=task, samples=rows)
    return max(folder.rglob("*_results.json"), key=lambda path: path.stat().st_mtime_ns)


def test_a_paired_comparison_is_right_for_each_task(lab: Lab, tmp_path: Path) -> None:
    from lmms_eval.evaluator_utils import compute_baseline_comparison

    lab.make(Dataset.VSOD, Dataset.ROD)
    before = lab.evaluate(Reader(4, answer=lambda seen: seen.answer), VSOD, ROD)
    scores_before = {t: [r["score"] for r in before.raw["samples"][t]] for t in (VSOD, ROD)}
    path = saved(before, tmp_path)
    file = path.with_name(path.name.replace("_results.json", f"_samples_{ROD}.jsonl"))
    after = lab.evaluate(Reader(4), VSOD, ROD, baseline=str(file))
    for task in (VSOD, ROD):
        now = [row["score"] for row in after.raw["samples"][task]]
        wanted = compute_baseline_comparison(now, scores_before[task], "x")
        figures = after.raw["results"][task]
        assert figures["paired_baseline_score"] == pytest.approx(100 * fmean(scores_before[task]))
        assert figures["paired_ci_lower"] == pytest.approx(100 * wanted["ci_lower"])
        assert figures["paired_pvalue"] == pytest.approx(wanted["p_value"])
        difference = 100 * (fmean(now) - fmean(scores_before[task]))
        assert f"difference {difference:+.1f}" in make_table(after.raw, "results")


def test_a_baseline_without_the_task_is_said(lab: Lab, tmp_path: Path, log: list[str]) -> None:
    lab.make(Dataset.VSOD, Dataset.ROD)
    path = saved(lab.evaluate(Reader(4), ROD), tmp_path)
    file = path.with_name(path.name.replace("_results.json", f"_samples_{ROD}.jsonl"))
    after = lab.evaluate(Reader(4), VSOD, baseline=str(file))
    assert "paired_baseline" not in after.raw["results"][VSOD]
    assert [line for line in log if f"no samples of {VSOD}" in line]


@pytest.mark.parametrize("asked", ["proactivedemo", " proactivedemo ", "proactivedemo_mcqa_*"])
def test_power_analysis_knows_the_sizes_of_the_tasks_in_our_groups(asked: str) -> None:
    power = pytest.importorskip("lmms_eval.cli.power_utils")  # lmms-eval 0.7.0 has none
    sizes = power.collect_task_sizes(asked)
    assert sizes == {f"proactivedemo_mcqa_{dataset.task}": 16 for dataset in Dataset}


def test_power_analysis_leaves_other_groups_alone(tmp_path: Path) -> None:
    power = pytest.importorskip("lmms_eval.cli.power_utils")
    (tmp_path / "group.yaml").write_text("group: others\ntask: [proactivedemo_mcqa_rod]\n")
    assert power.collect_task_sizes("others", include_path=str(tmp_path)) == {}


def test_runs_of_one_second_have_files_of_their_own(vsod: Lab, tmp_path: Path) -> None:
    first = vsod.evaluate(Reader(4), VSOD)
    second = vsod.evaluate(Reader(4, answer=lambda seen: "no option"), VSOD)
    paths = [saved(outcome, tmp_path) for outcome in (first, second)]
    assert len(set(paths)) == 2
    for path, outcome in zip(paths, (first, second), strict=True):
        results = json.loads(path.read_text())
        assert results["results"][VSOD]["acc,none"] == outcome.metrics(VSOD)["acc"]
        samples = path.with_name(path.name.replace("_results.json", f"_samples_{VSOD}.jsonl"))
        assert len(samples.read_text().splitlines()) == 14


# Tables.


def test_the_patch_of_the_table_knows_our_part_of_the_results() -> None:
    assert summary_table._PART == summary.PART


def test_tables_hold_what_is_compared_and_end_with_ours(lab: Lab) -> None:
    lab.make(*Dataset)
    outcome = lab.evaluate(Reader(4), "proactivebench-mcqa")
    table = make_table(outcome.raw, "results")
    metrics = re.findall(r"\|none\s*\|[^|]*\|(\w+)\s*\|([^|]*)\|", table)
    assert {name for name, _ in metrics} == {"acc", "ps"}
    assert {arrow.strip() for name, arrow in metrics if name == "ps"} == {""}
    assert len(metrics) == 16
    ours = make_table(outcome.raw, "groups").split("ProactiveBench, ")[1]
    lines = [line.split() for line in ours.splitlines()]
    datasets = [dataset.task for dataset in Dataset]
    assert [line[0] for line in lines if line and line[0] in [*datasets, "mean"]] == [
        *datasets,
        "mean",
    ]
    group = part(outcome)["groups"]["proactivebench-mcqa"]
    mean = next(line for line in lines if line and line[0] == "mean")
    assert mean[2] == f"{group['metrics']['acc']['mean']:.1f}"
    assert f"{group['chance_acc']:.1f}" in mean


def test_warnings_stand_above_the_table(vsod: Lab) -> None:
    def fail(call: int, requests: list[Instance]) -> None:
        if any(request.args[3] == 1 for request in requests):
            raise ValueError("boom")

    outcome = vsod.evaluate(Reader(4, before=fail), VSOD, limit=3)
    table = make_table(outcome.raw, "results")
    assert "! vsod: limited to 3 of 14 samples" in table
    assert "! vsod: 1 of 3 samples failed and count as 0" in table


def test_other_tasks_are_shown_as_ever(lab: Lab) -> None:
    from fakes.probe import TOY, Probe

    class Toy(Probe):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            return [f"answer to {request.args[0]}" for request in requests]

    given = SimpleNamespace(process_with_media=False, agentic_trace_mode="basic")
    from fakes.probe import task_manager

    results = evaluator.simple_evaluate(
        model=Toy(1), tasks=[TOY], task_manager=task_manager(), cli_args=given, bootstrap_iters=0
    )
    assert "proactivebench" not in results
    assert "ProactiveBench" not in make_table(results, "results")


def test_answers_of_a_sample_are_those_of_its_transcript(vsod: Lab) -> None:
    outcome = vsod.evaluate(Reader(4), VSOD)
    rows = outcome.raw["samples"][VSOD]
    assert [answers(row["transcript"]) for row in rows] == list(CLEAN.values())
