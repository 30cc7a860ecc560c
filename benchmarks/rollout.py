"""How much faster are episodes played by our runner than in three other ways?

    python benchmarks/rollout.py [--batches 16] [--episodes 96] [--tokens 12] [--rounds 3]

One process, one model, the same requests, played by lmms-eval's own loop for multi-turn tasks, one
request at a time; by a plain loop over transformers, without harness and wrapper; in chunks, a
batch of episodes each, the next when all of them are over; and by our runner. They take turns, and
the best round of each counts, as what else runs on a machine only ever adds to a time. Exit code 1
if transcripts differ, or if at batch size 16 one of the first two takes less than 5 times as long
as our runner or our runner's batches are less than 0.97 full. More in README.md in this folder.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
os.environ["OMP_NUM_THREADS"] = "1"  # the model is so small that threads only wait for each other
os.environ["HF_HUB_OFFLINE"] = "1"

import datasets
from fakes import tiny, world
from lmms_eval import evaluator, models
from lmms_eval.api.instance import GenerationResult, Instance
from lmms_eval.tasks import TaskManager, get_task_dict
from loguru import logger

from proactivebench_tasks import config
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments.episode import Episode, Observation
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.rollout.visuals import image_of
from proactivebench_tasks.transcripts.variant import Variant

GOAL_BATCH = 16  # the goals are for this batch size
MIN_RATIO = 5.0
MIN_EFFICIENCY = 0.97

Document = Mapping[str, Any]
Chat = list[dict[str, Any]]
Pixel = tuple[int, int, int]
Script = dict[tuple[int, Pixel], str]  # what is said to an image, by document and first pixel
COMPARED = ("answer", "suggestion", "category")  # of each turn, and why the episode ended


def plan(episode: Episode, number: int) -> str:
    """Ask for ``number % 6`` turns, then answer: right, wrong, or beside the list.

    It is always the same suggestion, so that no image of an episode comes twice: our runner would
    not ask the model again, and that is not what is measured here.
    """
    if len(episode.turns) < number % 6 and episode.correct_suggestions:
        return episode.correct_suggestions[-1]
    wrong = next(c for c in episode.sample.categories if c != episode.sample.answer)
    return (episode.sample.answer, wrong, "I see a thing")[number % 3]


def write_script(docs: Sequence[Document]) -> Script:
    script: Script = {}
    for number, doc in enumerate(docs):
        episode = documents.episode(doc, Variant())
        while not episode.done:
            key = (number, first_pixel(show(episode.observe(), doc)))
            assert key not in script, "an image comes twice in an episode"
            script[key] = plan(episode, number)
            episode.step(script[key])
    return script


def show(seen: Observation, doc: Document) -> Chat:
    content = [{"type": "image", "url": image_of(doc, seen)}]
    return [{"role": "user", "content": [*content, {"type": "text", "text": seen.text}]}]


def first_pixel(chat: Chat) -> Pixel:
    return chat[-1]["content"][0]["url"].getpixel((0, 0))


def scripted(wrapper: type) -> type:
    """The wrapper, with its answers replaced after they were generated at their full cost.

    A random model's own answers give no lengths that one can choose. What is said instead is
    looked up by document and by what is in the image that the wrapper was really given, so a
    image that goes to the wrong sample has no answer.
    """

    def note(shown: dict[int, Pixel], doc_id: int, to_messages: Any, doc: Document) -> Any:
        given = to_messages(doc)
        shown[doc_id] = first_pixel(given)
        return given

    class Scripted(wrapper):
        def generate_until(self, requests: list[Instance]) -> list[GenerationResult]:
            shown: dict[int, Pixel] = {}
            for request in (watched := [copy.copy(request) for request in requests]):
                text, to_messages, gen_kwargs, doc_id, *rest = request.args
                noting = functools.partial(note, shown, doc_id, to_messages)
                request.arguments = (text, noting, gen_kwargs, doc_id, *rest)
            generated = super().generate_until(watched)
            for request, result in zip(requests, generated, strict=True):
                doc_id = request.args[3]
                result.text = self.script[doc_id, shown[doc_id]]
            return generated

    return Scripted


def harness_loop(lm: Any, requests: list[Instance]) -> list[Any]:
    """A side: plays all requests, returns their transcripts."""
    for request in (own := [copy.copy(request) for request in requests]):
        text, gen_kwargs, doc_to_visual, _, *rest = request.args
        request.arguments = (text, gen_kwargs, doc_to_visual, doc_to_text, *rest)
    return evaluator._run_generate_until_agentic(lm, own)


def doc_to_text(
    doc: Document, previous_output: Any = None, round_idx: int = 0, previous_round_info: Any = None
) -> str | tuple[Any, ...]:
    """The protocol of the harness's loop; the last output of an episode is its transcript.

    Returns images, next text, whether it is over, outputs, and what the next round is handed.
    """
    episode: Episode = previous_round_info or documents.episode(doc, Variant())
    if previous_output is None:
        return episode.observe().text
    episode.step(previous_output[-1])
    if episode.done:
        return None, None, True, [*previous_output, transcript(episode)], episode
    seen = episode.observe()
    return [image_of(doc, seen)], seen.text, False, None, episode


def plain_loop(lm: Any, requests: list[Instance]) -> list[str]:
    """As in the example of the published package; greedy, like all sides."""
    model, processor, transcripts = lm.model, lm.processor, []
    form = {"tokenize": True, "return_dict": True, "return_tensors": "pt"}
    for request in requests:
        doc = document(lm, request)
        episode = documents.episode(doc, Variant())
        while not episode.done:
            messages = show(episode.observe(), doc)
            inputs = processor.apply_chat_template(messages, add_generation_prompt=True, **form)
            generated = model.generate(**inputs, max_new_tokens=50, do_sample=False)
            processor.decode(generated[0][inputs["input_ids"].shape[1] :], skip_special_tokens=True)
            episode.step(lm.script[request.args[4], first_pixel(messages)])
        transcripts.append(transcript(episode))
    return transcripts


def chunks(lm: Any, requests: list[Instance]) -> list[str]:
    episodes = [documents.episode(document(lm, request), Variant()) for request in requests]
    for first in range(0, len(requests), lm.batch_size):
        live = list(zip(requests, episodes, strict=True))[first : first + lm.batch_size]
        while live:
            results = lm.generate_until([one_turn(request, episode) for request, episode in live])
            for (_, episode), result in zip(live, results, strict=True):
                episode.step(result.text)
            live = [pair for pair in live if not pair[1].done]
    return [transcript(episode) for episode in episodes]


def our_runner(lm: Any, requests: list[Instance]) -> list[Any]:
    return evaluator._run_generate_until_agentic(lm, requests)


def document(lm: Any, request: Instance) -> Document:
    return lm.task_dict[request.args[5]][request.args[6]][request.args[4]]


def one_turn(request: Instance, episode: Episode) -> Instance:
    """The next turn of an episode, as a request of its own."""
    _, gen_kwargs, _, _, *rest = request.args
    seen = episode.observe()
    arguments = (seen.text, functools.partial(show, seen), gen_kwargs, *rest)
    return Instance("generate_until", arguments, idx=0, metadata=request.metadata)


def transcript(episode: Episode) -> str:
    """What is compared, in the form of our runner's transcripts."""
    turns = [{name: getattr(turn, name) for name in COMPARED} for turn in episode.turns]
    return json.dumps({"turns": turns, "stop": episode.turns[-1].stop})


def compared(response: Any) -> list[Any]:
    record = json.loads(getattr(response, "text", response))
    return [[turn[name] for name in COMPARED] for turn in record["turns"]] + [record["stop"]]


class Side:
    def __init__(self, way: Callable[[Any, list[Instance]], list[Any]]) -> None:
        self.way, self.name = way, way.__name__
        self.seconds: list[float] = []  # of each round
        self.cpu: list[float] = []
        self.calls: list[tuple[int, int]] = []  # of the model, in the last round: tokens in and out
        self.played: list[list[Any]] = []

    def play(self, lm: Any, requests: list[Instance]) -> None:
        lm.model.calls = self.calls = []
        start, cpu = time.perf_counter(), time.process_time()
        responses = self.way(lm, requests)
        self.seconds.append(time.perf_counter() - start)
        self.cpu.append(time.process_time() - cpu)
        self.played = [compared(response) for response in responses]


def prepare(folder: Path, count: int, tokens: int) -> tuple[Any, list[Instance]]:
    """The tiny Qwen2.5-VL behind the harness's wrapper, and requests made by the harness."""
    path, pixels = tiny.qwen2_5_vl(folder / "model"), 28 * 28
    size = {"min_pixels": 4 * pixels, "max_pixels": 16 * pixels}
    wrapper = scripted(models.get_model("qwen2_5_vl"))
    lm = wrapper(str(path), device="cpu", device_map="cpu", **size)
    lm.model.generation_config.min_new_tokens = tokens - 1  # else it ends after a letter
    lm._rank = 1  # no progress bars: the wrapper draws one a call, so the harness's loop far more
    generate = lm.model.generate

    def noting(*args: Any, **kwargs: Any) -> Any:
        out, length = generate(*args, **kwargs), kwargs["input_ids"].shape[1]
        lm.model.calls.append((length, out.shape[1] - length))
        return out

    lm.model.generate = noting
    world.make(folder / "data", {Dataset.ROD: list(range(100, 100 + count))})
    os.environ[config.DATA_DIR] = str(folder / "data")
    os.environ["PROACTIVEBENCH_CACHE"] = str(folder / "cache")
    datasets.config.HF_DATASETS_CACHE = str(folder / "datasets")
    datasets.disable_progress_bars()
    # The official wording is not needed to measure time, nor is the network that it comes from.
    Suite.protocol = property(lambda suite: BUILTIN)
    name = f"proactivebench_mcqa_{Dataset.ROD.task}"
    task = get_task_dict([name], TaskManager(include_defaults=False), "chat")[name]
    task.build_all_requests()
    lm.task_dict[name] = task.dataset
    lm.script = write_script(task.dataset["test"])
    return lm, task.instances


def measure(lm: Any, requests: list[Instance], batch: int, rounds: int) -> bool:
    """Play all sides with this batch size and print what came of it; is all as it should be?"""
    lm.batch_size_per_gpu = batch
    ways = (harness_loop, plain_loop, chunks, our_runner)
    sides = harness, plain, _, ours = [Side(way) for way in ways]
    for side in sides:
        Side(side.way).play(lm, requests[:16])  # untimed
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            side.play(lm, requests)

    turns = sum(len(played) - 1 for played in harness.played)
    ideal = -(-turns // batch)
    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"\nbatch {batch}: {len(requests)} episodes, {turns} turns; {load}")
    print("side           wall s  ratio   CPU s  ratio  batches  efficiency  tokens  all rounds")
    for side in sides:
        wall, cpu, calls = min(side.seconds), min(side.cpu), len(side.calls)
        print(f"{side.name:<12}{wall:>9.2f}{wall / min(ours.seconds):>7.2f}", end="")
        print(f"{cpu:>8.2f}{cpu / min(ours.cpu):>7.2f}{calls:>9}{ideal / calls:>12.3f}", end="")
        print("  {}+{}".format(*map(max, zip(*side.calls, strict=True))), end="  ")
        print(*(f"{seconds:.2f}" for seconds in side.seconds))
    different = [side.name for side in sides if side.played != harness.played]
    print(f"transcripts: {'DIFFER from the first: ' if different else 'the same'}", *different)
    if batch != GOAL_BATCH:
        return not different
    ratio, full = min(harness.seconds + plain.seconds) / min(ours.seconds), ideal / len(ours.calls)
    reached = ratio >= MIN_RATIO and full >= MIN_EFFICIENCY
    print(f"goal {'reached' if reached else 'MISSED'}:", end=" ")
    print(f"ratio {ratio:.2f}, {MIN_RATIO} wanted; efficiency {full:.3f}, {MIN_EFFICIENCY} wanted")
    return reached and not different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", default=str(GOAL_BATCH), help="batch sizes, as 1,4,16,64")
    parser.add_argument("--episodes", type=int, default=96, help="1 to 256")
    parser.add_argument("--tokens", type=int, default=12, help="length of an answer")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of a side")
    options = parser.parse_args()
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    with tempfile.TemporaryDirectory() as folder:
        lm, requests = prepare(Path(folder), options.episodes, options.tokens)
        parameters = f"{sum(p.numel() for p in lm.model.parameters()):,} parameters"
        print(f"Qwen2.5-VL, {parameters}, {lm.model.dtype}, {os.cpu_count()} cores")
        good = [measure(lm, requests, int(n), options.rounds) for n in options.batches.split(",")]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
