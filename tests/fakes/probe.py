"""Model wrappers that prove what they are given, and a laboratory to evaluate them in.

``Reader`` reads a turn's identity out of its pixels and its text, as a model would, and compares
the two with each other and with the document. ``Probe`` also knows which turn must come next.
Both answer by ``plan``, a function of what was read, so every result can be worked out without the
harness: that is what ``expected`` does. The world they live in is made by ``world.py``.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
from lmms_eval import evaluator
from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms
from lmms_eval.tasks import TaskManager
from PIL.Image import Image

from fakes import world
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments import parse_sample
from proactivebench_tasks.environments.coco import CocoSample
from proactivebench_tasks.environments.episode import Episode, Stop
from proactivebench_tasks.environments.imagenetc import ImagenetcSample
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset, Sample
from proactivebench_tasks.rollout import visuals

TASKS = Path(__file__).parent / "tasks"
GENERATION = {"max_new_tokens": 50, "temperature": 0, "do_sample": False, "until": []}
ALL = {dataset: f"proactivebench_mcqa_{dataset.task}" for dataset in Dataset}
TOY = "toy_agentic"  # a task of the harness's own loop, see tasks/toy.yaml
ROD, VSOD, COCO = (ALL[d] for d in (Dataset.ROD, Dataset.VSOD, Dataset.COCO))

#: What the plan asks for: each takes an episode one step further on, never back.
ASK = {
    Dataset.ROD: "Move it to the right.",
    Dataset.VSOD: "Wait for the bus.",
    Dataset.MVPN: "Show another view.",
    Dataset.IMAGENETC: "Deblur it.",
    Dataset.QUICKDRAW: "Add details.",
    Dataset.CHANGEIT: "Wait for the end.",
    Dataset.COCO: "Move the camera to the left.",
}


def sample_id(number: int, dataset: Dataset, protocol: Protocol = BUILTIN) -> int:
    """Ids that are neither numbers nor lines, and that the protocol lists."""
    if protocol.sample_ids is None:
        return 100 + 7 * number
    return sorted(protocol.sample_ids[dataset])[number]


@dataclass(frozen=True)
class Seen:
    """One turn as a model sees it, and who it is by its pixels."""

    dataset: Dataset
    number: int
    turn: int
    options: tuple[str, ...]
    answer: str  # the right category


Plan = Callable[[Seen], str]


def plan(seen: Seen) -> str:
    """Ask for 0 to 5 turns, or for ever, then answer right, wrong or beside the list."""
    asks = 99 if seen.number % 7 == 6 else seen.number % 6
    if seen.turn < asks and ASK[seen.dataset] in seen.options:
        choice = ASK[seen.dataset]
    elif seen.number % 5 == 3:
        return "I see a thing"
    elif seen.number % 3 == 2:
        choice = next(c for c in world.CATEGORIES if c != seen.answer)
    else:
        choice = seen.answer
    letter = chr(ord("A") + seen.options.index(choice))
    return (letter, choice, f"{letter}. {choice}")[seen.number % 3]


def turn_shown(sample: Sample, image: int, left: int) -> int:
    """How many steps of ``ASK`` lead to this image."""
    if isinstance(sample, CocoSample):
        return round((sample.crop.left - left) / sample.horizontal_step) - 1
    return sample.first_image - image if isinstance(sample, ImagenetcSample) else image


def expected(
    dataset: Dataset, count: int, answer: Plan = plan, protocol: Protocol = BUILTIN
) -> list[Episode]:
    """The episodes of a dataset's first samples, played one by one without the harness."""
    episodes = []
    ids = [sample_id(number, dataset, protocol) for number in range(count)]
    for number, row in enumerate(world.rows(dataset, ids)):
        sample = parse_sample(dataset, row)
        episode = Episode(sample, protocol)
        while not episode.done:
            shown = episode.observe()
            left = round(shown.crop.left) if shown.crop else 0
            turn = turn_shown(sample, episode.state.image_id, left)
            episode.step(answer(Seen(dataset, number, turn, shown.options, sample.answer)))
        episodes.append(episode)
    return episodes


def scores(episodes: Iterable[Episode]) -> dict[str, float]:
    """The mean of each metric, from the episodes' last turns alone."""
    played = list(episodes)
    share = 100 / len(played)
    lengths = [len(e.turns) for e in played]
    stops = [e.turns[-1].stop for e in played]
    full = [n == e.environment.max_turns for n, e in zip(lengths, played, strict=True)]
    return {
        "acc": share * stops.count(Stop.SOLVED),
        "ps": sum(n - 1 for n in lengths) / len(played),
        "asked": share * sum(n > 1 for n in lengths),
        "max_steps": share * sum(full),
        "mismatch": share * stops.count(Stop.MISMATCH),
        "failed": 0.0,
    }


class Disagreement(AssertionError):
    """A wrapper was given something that does not fit together."""


def pixels_of(image: Image) -> tuple[int, int, int]:
    first = image.getpixel((0, 0))
    assert isinstance(first, tuple)
    return first  # type: ignore[return-value]


class Reader(lmms):
    """A simple wrapper whose answers depend on pixels, text and nothing else.

    ``style`` says how it gets its images: ``own`` (each request's callable), ``first`` (the
    first request's for its whole batch), ``sorted`` (as ``first``, in order of text) or
    ``threads`` (eight at a time). ``before`` may raise, with the number of the call and its
    requests; ``twist`` may replace an answer. Disagreements are kept, as the runner catches them.
    """

    def __init__(
        self,
        batch_size: int | str = 1,
        style: str = "own",
        answer: Plan = plan,
        before: Callable[[int, list[Instance]], None] | None = None,
        twist: Callable[[str, Instance], Any] | None = None,
    ) -> None:
        super().__init__()
        self.batch_size = batch_size
        self.style = style
        self.answer = answer
        self.before = before
        self.twist = twist
        self.calls: list[list[tuple[str, int]]] = []
        self.generation: Mapping[str, Any] = GENERATION
        self.protocol = BUILTIN
        self.disagreements: list[Disagreement] = []

    def __repr__(self) -> str:  # the response cache tells models apart by it
        return type(self).__name__

    @property
    def turns(self) -> int:
        """Turns that it was asked for, all calls together."""
        return sum(map(len, self.calls))

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        self.calls.append([(r.args[4], self.doc(r)["id"]) for r in requests])
        if self.before is not None:
            self.before(len(self.calls), requests)
        try:
            self.check_call(requests)
            answers = self._answers(requests)
        except Disagreement as disagreement:
            self.disagreements.append(disagreement)
            raise
        if self.twist is not None:
            answers = [self.twist(a, r) for a, r in zip(answers, requests, strict=True)]
        return answers

    def doc(self, request: Instance) -> Mapping[str, Any]:
        doc_id, task, split = request.args[3:]
        return self.task_dict[task][split][doc_id]

    # What every call must be.

    def check_call(self, requests: Sequence[Instance]) -> None:
        agree(len({r.args[4:] for r in requests}), 1, "tasks and splits in a call")
        documents = [r.args[3] for r in requests]
        agree(len(set(documents)), len(documents), "documents in a call")
        agree(len({id(self.visual(r)) for r in requests}), 1, "callables in a call")
        arguments = [self.arguments(r) for r in requests]
        agree(len({id(a) for a in arguments}), len(requests), "generation arguments in a call")
        for given in arguments:
            agree(given, dict(self.generation), "generation arguments")
            given.pop("until", None)  # as many wrappers do
            given["max_new_tokens"] = 1
        for request in requests:
            task = request.args[4]
            agree((request.task_name, request.doc_id), (task, request.args[3]), "metadata")

    # How a simple wrapper is given its turn.

    def visual(self, request: Instance) -> Callable[..., Any]:
        return request.args[2]

    def arguments(self, request: Instance) -> dict[str, Any]:
        return request.args[1]

    def turn(self, visual: Callable[..., Any], request: Instance) -> tuple[Image, str]:
        """The image and the text of a request."""
        images = visual(self.doc(request))
        agree(len(images), 1, "images")
        return images[0], request.args[0]

    # How a turn is read and answered.

    def _answers(self, requests: list[Instance]) -> list[str]:
        if self.style == "threads":
            with ThreadPoolExecutor(8) as pool:
                turns = list(pool.map(lambda r: self.turn(self.visual(r), r), requests))
        elif self.style == "own":
            turns = [self.turn(self.visual(r), r) for r in requests]
        else:
            turns = self._turns_by_batch(requests)
        seen = [self.read(*turn, r) for turn, r in zip(turns, requests, strict=True)]
        self.follow(requests, seen)
        answers = [self.answer(s) for s in seen]
        self.advance(requests, answers)
        return answers

    def _turns_by_batch(self, requests: list[Instance]) -> list[tuple[Image, str]]:
        order = list(range(len(requests)))
        if self.style == "sorted":
            order.sort(key=lambda i: (-len(requests[i].args[0]), requests[i].args[0]))
        turns: dict[int, tuple[Image, str]] = {}
        size = int(self.batch_size)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            shared = self.visual(requests[batch[0]])
            for i in batch:
                turns[i] = self.turn(shared, requests[i])
        return [turns[i] for i in range(len(requests))]

    def read(self, shown: Image, text: str, request: Instance) -> Seen:
        """Who this is, by its pixels; everything else given must say the same."""
        doc = self.doc(request)
        dataset = Dataset(doc["dataset"])
        sample = parse_sample(dataset, doc)
        agree(request.args[4].rpartition("_")[2], dataset.task, "task of the document")
        red, green, blue = pixels_of(shown)
        if dataset is Dataset.COCO:
            number, image, left = blue, 0, red
        else:
            number, image, left = red, green, 0
            agree(world.DATASETS[blue], dataset, "dataset in the pixels")
        wanted = sample_id(number, dataset, self.protocol)
        agree(re.findall(r"What is sample (\d+)\?", text), [str(wanted)], "id in the text")
        agree(doc["id"], wanted, "id of the document")
        agree(doc["line"], number + 1, "line of the document")
        options = tuple(re.findall(r"^[A-Z]\. (.*)$", text, flags=re.MULTILINE))
        agree(options[-4:], tuple(world.CATEGORIES), "categories in the text")
        agree(set(options[:-4]) <= set(sample.options), True, "suggestions in the text")
        turn = turn_shown(sample, image, left)
        return Seen(dataset, number, turn, options, sample.answer)

    def follow(self, requests: Sequence[Instance], seen: Sequence[Seen]) -> None:
        """Hook: is this the turn that each sample must be in?"""

    def advance(self, requests: Sequence[Instance], answers: Sequence[str]) -> None:
        """Hook: these answers are given."""

    def clean(self) -> None:
        """Nothing to free; the harness's own version collects garbage for most of a second."""

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        raise NotImplementedError


class Probe(Reader):
    """A reader that plays along, so that it knows which turn of which sample must come."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.episodes: dict[tuple[str, int], Episode] = {}

    def _episode(self, request: Instance) -> Episode:
        """The episode of a request; a fresh one when the last is over (repeats)."""
        key = (request.args[4], request.args[3])
        episode = self.episodes.get(key)
        if episode is None or episode.done:
            dataset = Dataset(self.doc(request)["dataset"])
            episode = Episode(parse_sample(dataset, self.doc(request)), self.protocol)
            self.episodes[key] = episode
        return episode

    def follow(self, requests: Sequence[Instance], seen: Sequence[Seen]) -> None:
        for request, turn in zip(requests, seen, strict=True):
            episode = self._episode(request)
            agree(turn.turn, len(episode.turns), f"turn of sample {episode.sample.id}")
            options = episode.options
            agree(turn.options, options, f"options of sample {episode.sample.id}")
            agree(request.args[0], episode.observe().text, "text")

    def advance(self, requests: Sequence[Instance], answers: Sequence[str]) -> None:
        for request, answer in zip(requests, answers, strict=True):
            self._episode(request).step(answer)


class _Chat:
    """What makes a wrapper a chat wrapper."""

    is_simple = False

    def visual(self, request: Instance) -> Callable[..., Any]:
        return request.args[1]

    def arguments(self, request: Instance) -> dict[str, Any]:
        return request.args[2]

    def turn(self, visual: Callable[..., Any], request: Instance) -> tuple[Image, str]:
        messages = visual(self.doc(request))  # type: ignore[attr-defined]
        agree([m["role"] for m in messages], ["user"], "roles")
        content = messages[0]["content"]
        agree([part["type"] for part in content], ["image", "text"], "content")
        agree(content[1]["text"], request.args[0], "text of the message")
        messages.insert(0, {"role": "system", "content": "x"})  # as qwen3_vl does
        content.clear()
        return visual(self.doc(request))[0]["content"][0]["url"], request.args[0]  # type: ignore[attr-defined]


class ChatReader(_Chat, Reader):
    """A reader in chat style."""


class ChatProbe(_Chat, Probe):
    """A probe in chat style."""


@functools.cache
def task_manager() -> TaskManager:
    """Our tasks, through the entry point, and those of the tests."""
    return TaskManager(include_path=str(TASKS), include_defaults=False)


def agree(found: Any, wanted: Any, what: str) -> None:
    if found != wanted:
        raise Disagreement(f"{what}: {found!r}, expected {wanted!r}")


@dataclass(frozen=True)
class Outcome:
    """What an evaluation returned. Transcripts are by task, then by sample id."""

    raw: Mapping[str, Any]
    transcripts: Mapping[str, Mapping[int, Mapping[str, Any]]]
    tokens: Mapping[str, Mapping[int, Any]]

    def metrics(self, task: str) -> dict[str, float]:
        """Means as the results file has them; those that the harness shows are the same there."""
        summary = self.raw["proactivebench"]
        found = (summary["tasks"] | summary["groups"])[task]["metrics"]
        for name in ("acc", "ps"):
            assert found[name]["mean"] == pytest.approx(self.raw["results"][task][f"{name},none"])
        names = ("acc", "ps", "asked", "max_steps", "mismatch", "failed")
        return {name: found[name]["mean"] for name in names}

    def answers(self, task: str) -> dict[int, list[str]]:
        return {i: answers(t) for i, t in self.transcripts[task].items()}

    def failed(self, task: str) -> dict[int, str]:
        """Error by sample id, of the samples that failed."""
        return {i: t["error"] for i, t in self.transcripts[task].items() if t["error"] is not None}


def answers(transcript: Mapping[str, Any]) -> list[str]:
    return [turn["answer"] for turn in transcript["turns"]]


@dataclass
class Lab:
    """A data folder and an evaluator, both small. Everything it changes is undone by pytest."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    protocol: Protocol = BUILTIN
    counts: dict[Dataset, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        patch = self.monkeypatch
        patch.setenv("PROACTIVEBENCH_DATA_DIR", str(self.folder / "data"))
        patch.delenv("PROACTIVEBENCH_WINDOW", raising=False)
        patch.setattr(Suite, "protocol", property(lambda suite: self.protocol))
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", str(self.folder / "hf"))

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def make(self, *wanted: Dataset, count: int = 14) -> None:
        for dataset in wanted:
            ids = [sample_id(number, dataset, self.protocol) for number in range(count)]
            world.make(self.data, {dataset: ids})
            self.counts[dataset] = count

    def evaluate(
        self, model: Reader, *tasks: str, cli: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> Outcome:
        """Run the harness on tasks. Fails if the model saw anything that does not fit together.

        With several ranks the first alone has results.
        """
        model.protocol = self.protocol
        given = SimpleNamespace(
            **{"process_with_media": False, "agentic_trace_mode": "basic", **(cli or {})}
        )
        try:
            results = evaluator.simple_evaluate(
                model=model,
                tasks=list(tasks),
                task_manager=task_manager(),
                cli_args=given,
                **{"bootstrap_iters": 0, **kwargs},
            )
            results = results or {}
        finally:
            if disagreements := model.disagreements:
                pytest.fail(f"{len(disagreements)} disagreements, the first: {disagreements[0]}")
        logged = {t: rows for t, rows in results.get("samples", {}).items() if t != TOY}
        return Outcome(
            results,
            {t: {r["doc"]["id"]: transcript(r) for r in rows} for t, rows in logged.items()},
            {t: {r["doc"]["id"]: r["token_counts"][0] for r in rows} for t, rows in logged.items()},
        )


def transcript(row: Mapping[str, Any]) -> Any:
    """The record that a logged sample was scored on, the first of repeats, without what it cost:
    that differs from run to run."""
    response = row["filtered_resps"][0]
    record = json.loads(response[0] if isinstance(response, list) else response)
    return {name: value for name, value in record.items() if name != "costs"}


def count_decodes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the images that are decoded from now on, in order."""
    decoded: list[str] = []
    image_of = visuals.image_of

    def counting(doc: Mapping[str, Any], shown: Any, short_edge: int = 0) -> Image:
        decoded.append(shown.image_path)
        return image_of(doc, shown, short_edge)

    monkeypatch.setattr(visuals, "image_of", counting)
    return decoded
