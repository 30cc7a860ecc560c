"""How much faster are episodes played by our runner than by the harness's own loop?

    python benchmarks/rollout.py [--episodes 96] [--batch 16] [--tokens 12] [--rounds 3]

One process, one model behind the harness's real wrapper, the same requests: once through
``lmms_eval.evaluator``'s loop for multi-turn tasks, which calls the wrapper with one request at a
time, and once through our runner. The sides take turns, and the best round of each counts, as what
else runs on a machine only ever adds to a time. Exit code 1 if the ratio is below 4, if less than
0.9 of the batches were needed, or if an answer, a verdict or a stop differs.

See README.md in this folder for what this shows and what it does not.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
os.environ["OMP_NUM_THREADS"] = "1"  # the model is so small that threads only wait for each other
os.environ["HF_HUB_OFFLINE"] = "1"

import datasets
import tiny
import torch
import world
from lmms_eval import evaluator, models
from lmms_eval.api.instance import GenerationResult, Instance
from lmms_eval.tasks import TaskManager, get_task_dict
from loguru import logger
from PIL import Image

from proactivebench_tasks import documents, sources
from proactivebench_tasks.environments.base import Episode
from proactivebench_tasks.protocol import BUILTIN
from proactivebench_tasks.samples import Dataset
from proactivebench_tasks.settings import Setting

MIN_RATIO = 4.0
MIN_EFFICIENCY = 0.9
TOKENS = 12  # of an answer: a letter, an option of a few words, and the end
LENGTHS = 6  # turns of an episode: 1 to this, all equally often
SPLIT = "test"
WARM_UP = 16  # episodes that each side plays first, untimed

Document = Mapping[str, Any]
Pixel = tuple[int, int, int]
#: What is said to a picture of a document, by its line and its first pixel.
Script = Mapping[tuple[int, Pixel], str]


# What the model says.


def plan(episode: Episode, number: int) -> str:
    """Ask for ``number % LENGTHS`` turns, then answer: right, wrong, or beside the list.

    It is always the same suggestion, so that no picture of an episode comes twice: our runner would
    not ask the model again, and that is not what is measured here.
    """
    if len(episode.turns) < number % LENGTHS and episode.correct_suggestions:
        return episode.correct_suggestions[-1]
    wrong = next(c for c in episode.sample.categories if c != episode.sample.answer)
    return (episode.sample.answer, wrong, "I see a thing")[number % 3]


def write_script(docs: Sequence[Document]) -> Script:
    script: dict[tuple[int, Pixel], str] = {}
    for number, doc in enumerate(docs):
        episode = documents.episode(doc, Setting())
        while not episode.done:
            key = (doc["line"], first_pixel(documents.pixels(doc, episode.observe())))
            assert key not in script, "a picture comes twice in an episode"
            script[key] = plan(episode, number)
            episode.step(script[key])
    return script


def first_pixel(picture: Image.Image) -> Pixel:
    return picture.getpixel((0, 0))


def scripted(wrapper: type) -> type:
    """The wrapper, with its answers replaced after they were generated at their full cost.

    A random model's own answers give no lengths that one can choose. What is said instead is
    looked up by document and by what is in the picture that the wrapper was really given, so a
    picture that goes to the wrong sample has no answer.
    """

    class Scripted(wrapper):
        script: Script
        lines: list[int]  # of the documents

        def generate_until(self, requests: list[Instance]) -> list[GenerationResult]:
            shown: dict[int, Pixel] = {}

            def recording(doc_to_messages: Callable[[Document], Any]) -> Callable[[Document], Any]:
                def messages(doc: Document) -> Any:
                    given = doc_to_messages(doc)
                    shown[doc["line"]] = first_pixel(given[-1]["content"][0]["url"])
                    return given

                return messages

            watched = []
            for request in requests:
                text, doc_to_messages, *rest = request.args
                own = copy.copy(request)
                own.arguments = (text, recording(doc_to_messages), *rest)
                watched.append(own)
            generated = super().generate_until(watched)
            answers = []
            for request, result in zip(requests, generated, strict=True):
                line = self.lines[request.args[3]]
                answers.append(
                    GenerationResult(self.script[line, shown[line]], result.token_counts)
                )
            return answers

    return Scripted


# The same task for the harness's own loop.


def doc_to_text(
    doc: Document,
    previous_output: list[str] | None = None,
    round_idx: int = 0,
    previous_round_info: Mapping[str, Any] | None = None,
) -> str | tuple[Any, ...]:
    """The protocol of ``generate_until_agentic``, spoken by an ``Episode``.

    Between turns: (pictures, next text, is it over, outputs, what to hand to the next round); the
    last output is the transcript.
    """
    info = previous_round_info or {"episode": documents.episode(doc, Setting())}
    episode: Episode = info["episode"]
    if previous_output is None:
        return episode.observe().text
    episode.step(previous_output[-1])
    if episode.done:
        return None, None, True, [*previous_output, transcript(episode)], info
    seen = episode.observe()
    return [documents.pixels(doc, seen)], seen.text, False, None, info


def transcript(episode: Episode) -> str:
    """What is compared, in the form of our runner's transcripts."""
    turns = [
        {"answer": t.answer, "suggestion": t.suggestion.value, "category": t.category.value}
        for t in episode.turns
    ]
    return json.dumps({"turns": turns, "stop": episode.turns[-1].stop.value})


def essence(response: Any) -> dict[str, Any]:
    """What both sides' transcripts must agree in."""
    record = json.loads(getattr(response, "text", response))
    if record.get("error") is not None:
        raise RuntimeError(record["error"])
    turns = [(t["answer"], t["suggestion"], t["category"]) for t in record["turns"]]
    return {"turns": turns, "stop": record["stop"]}


# Measuring.


@dataclass
class Side:
    """One way to play the requests, and what it took, a round each."""

    name: str
    requests: list[Instance]
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    played: list[dict[str, Any]] = field(default_factory=list)

    def play(self, lm: Any, meter: Meter, count: int | None = None) -> None:
        meter.clear()
        start, cpu = time.perf_counter(), time.process_time()
        responses = evaluator._run_generate_until_agentic(lm, self.requests[:count])
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        if count is None:
            self.seconds.append(seconds)
            self.cpu.append(cpu)
            self.batches.append(len(meter.rows))
            self.played = [essence(response) for response in responses]


class Meter:
    """Counts what the model itself is given: a hook on ``model.generate``."""

    def __init__(self, model: Any) -> None:
        self.rows: list[int] = []
        self.tokens_in = self.tokens_out = 0
        generate = model.generate

        def counting(*args: Any, **kwargs: Any) -> Any:
            out = generate(*args, **kwargs)
            count, length = kwargs["input_ids"].shape
            self.rows.append(count)
            self.tokens_in = max(self.tokens_in, length)
            self.tokens_out = max(self.tokens_out, out.shape[1] - length)
            return out

        model.generate = counting

    def clear(self) -> None:
        self.rows.clear()


def load(folder: Path, batch: int, tokens: int) -> Any:
    """The tiny Qwen2.5-VL behind the harness's wrapper for chat models."""
    wrapper = scripted(models.get_model("qwen2_5_vl"))
    lm = wrapper(
        str(tiny.qwen2_5_vl(folder / "model")),
        device="cpu",
        device_map="cpu",
        batch_size=batch,
        min_pixels=28 * 28,
        max_pixels=16 * 28 * 28,
    )
    lm.model.generation_config.min_new_tokens = tokens - 1  # else it ends after a letter
    lm._rank = 1  # no progress bars: the wrapper draws one a call, so the harness's loop far more
    return lm


def make_requests(folder: Path, dataset: Dataset, count: int, lm: Any) -> list[Instance]:
    """The requests of our task for a small world, made by the harness."""
    world.make(folder / "data", {dataset: list(range(100, 100 + count))})
    os.environ[sources.DATA_DIR] = str(folder / "data")
    os.environ["PROACTIVEBENCH_CACHE"] = str(folder / "cache")
    datasets.config.HF_DATASETS_CACHE = str(folder / "datasets")
    datasets.disable_progress_bars()
    # The official wording is not needed to measure time, nor is the network that it comes from.
    sources.Source.protocol = property(lambda source: BUILTIN)
    name = f"proactivebench_mcqa_{dataset.task}"
    task = get_task_dict([name], TaskManager(include_defaults=False), "chat")[name]
    task.build_all_requests()
    lm.task_dict[name] = task.dataset
    return task.instances


def for_harness(request: Instance) -> Instance:
    """The same request as a task of the harness's own loop would make it."""
    own = copy.copy(request)
    text, gen_kwargs, doc_to_visual, _, *rest = request.args
    own.arguments = (text, gen_kwargs, doc_to_visual, doc_to_text, *rest)
    return own


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=96, help="1 to 256 (default: 96)")
    parser.add_argument("--batch", type=int, default=16, help="batch size (default: 16)")
    parser.add_argument(
        "--tokens", type=int, default=TOKENS, help=f"length of an answer (default: {TOKENS})"
    )
    parser.add_argument("--rounds", type=int, default=3, help="timed runs a side (default: 3)")
    parser.add_argument("--dataset", default="ROD", choices=[d.name for d in Dataset])
    options = parser.parse_args()
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), options)


def listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def measure(folder: Path, options: argparse.Namespace) -> int:
    lm = load(folder, options.batch, options.tokens)
    requests = make_requests(folder, Dataset[options.dataset], options.episodes, lm)
    (table,) = (split[SPLIT] for split in lm.task_dict.values())
    lm.script, lm.lines = write_script(table), table["line"]
    meter = Meter(lm.model)

    harness = Side("harness's loop", [for_harness(request) for request in requests])
    runner = Side("our runner", requests)
    sides = (harness, runner)
    for side in sides:
        side.play(lm, meter, WARM_UP)
    for number in range(options.rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            side.play(lm, meter)

    turns = [len(played["turns"]) for played in harness.played]
    ideal = -(-sum(turns) // options.batch)
    ratio = min(harness.seconds) / min(runner.seconds)
    efficiency = ideal / max(runner.batches)
    pairs = list(zip(harness.played, runner.played, strict=True))
    different = [i for i, (theirs, ours) in enumerate(pairs) if theirs != ours]

    parameters = sum(p.numel() for p in lm.model.parameters())
    print(f"model           Qwen2.5-VL, {parameters:,} parameters, {lm.model.dtype}")
    print(f"machine         CPU, {torch.get_num_threads()} torch threads of {os.cpu_count()} cores")
    print(f"a turn          up to {meter.tokens_in} tokens in, {meter.tokens_out} tokens out")
    spread = ", ".join(f"{turns.count(n)} of {n}" for n in sorted(set(turns)))
    print(f"episodes        {len(turns)} of {options.dataset}, {sum(turns)} turns ({spread})")
    for side in sides:
        print(f"{side.name:<15} {min(side.seconds):.2f} s, {max(side.batches)} model batches")
        print(f"{'':<15} rounds: {listed(side.seconds)} s, of the CPU: {listed(side.cpu)} s")
    print(f"ratio           {ratio:.2f}; {MIN_RATIO} wanted")
    print(f"efficiency      {efficiency:.2f}: {ideal} batches would do; {MIN_EFFICIENCY} wanted")
    print(f"transcripts     {len(different)} differ")
    for i in different[:3]:
        print(f"  episode {i}, {harness.name}: {pairs[i][0]}\n  {runner.name}: {pairs[i][1]}")
    return int(ratio < MIN_RATIO or efficiency < MIN_EFFICIENCY or bool(different))


if __name__ == "__main__":
    sys.exit(main())
