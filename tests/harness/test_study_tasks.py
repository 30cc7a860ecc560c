"""The studies through the harness: right images in right turns, exact baselines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes import world
from fakes.probe import (
    ASK,
    ChatReader,
    Lab,
    Reader,
    agree,
    expected,
    pixels_of,
)
from lmms_eval.api.instance import Instance
from PIL.Image import Image

from proactivebench_tasks.demo import DATA
from proactivebench_tasks.environments import chance, parse_sample
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.results import studies
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.rollout.rollout import Answer, start
from proactivebench_tasks.transcripts.transcript import Transcript
from proactivebench_tasks.transcripts.variant import Variant

QD = Dataset.QUICKDRAW
HISTORY, EXAMPLES = "history_quickdraw", "examples_quickdraw"


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.make(QD)
    return lab


class Conversation(ChatReader):
    """Reads a whole conversation: every image must be of the sample that its text names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lengths: list[int] = []
        self.given: dict[int, list[str]] = {}

    def turn(self, visual: Callable[..., Any], request: Instance) -> tuple[Image, str]:
        talk = visual(self.doc(request))
        users, said = talk[::2], talk[1::2]
        agree({m["role"] for m in users}, {"user"}, "who asks")
        agree({m["role"] for m in said} <= {"assistant"}, True, "who answers")
        agree(len(users), len(said) + 1, "questions and answers")
        shown = [m["content"] for m in users]
        for image, text in shown:
            number = pixels_of(image["url"])[0]
            agree(f"What is sample {100 + 7 * number}?" in text["text"], True, "image and text")
        replies = [m["content"][0]["text"] for m in said]
        self.check(request, [pixels_of(image["url"])[:2] for image, _ in shown], replies)
        self.lengths.append(len(users))
        return shown[-1][0]["url"], shown[-1][1]["text"]

    def check(
        self, request: Instance, images: Sequence[tuple[int, ...]], replies: Sequence[str]
    ) -> None:
        """Images are (number of the sample, number of the image)."""


class Remembering(Conversation):
    """Expects its own earlier turns, in order."""

    def check(
        self, request: Instance, images: Sequence[tuple[int, ...]], replies: Sequence[str]
    ) -> None:
        number = images[-1][0]
        agree([p[0] for p in images], [number] * len(images), "whose images")
        agree([p[1] for p in images], list(range(len(images))), "which images")
        agree(list(replies), self.given.get(number, []), "earlier answers")

    def advance(self, requests: Sequence[Instance], given: Sequence[str]) -> None:
        for request, answer in zip(requests, given, strict=True):
            self.given.setdefault(request.args[3], []).append(answer)


class Shown(Conversation):
    """Expects two solved examples of other samples before its own turn."""

    def check(
        self, request: Instance, images: Sequence[tuple[int, ...]], replies: Sequence[str]
    ) -> None:
        doc = self.doc(request)
        others = [p[0] for p in images[:-1]]
        agree(images[-1][0] in others, False, "an example of the sample itself")
        agree(len(set(others)), 2, "examples")
        finals = [reply for reply in replies if reply in world.CATEGORIES]
        agree(len(finals), 2, "solved examples")
        agree(doc["answer"] in finals, False, "an example with the sample's answer")
        agree(set(replies) - set(world.CATEGORIES) <= {ASK[QD]}, True, "suggestions in examples")


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("style", ["own", "first", "threads"])
def test_history_shows_each_turn_its_own_past(lab: Lab, batch: int, style: str) -> None:
    model = Remembering(batch, style=style)
    outcome = lab.evaluate(model, HISTORY)
    clean = {e.sample.id: [t.answer for t in e.turns] for e in expected(QD, 14)}
    assert outcome.answers(HISTORY) == clean
    assert max(model.lengths) == 6


@pytest.mark.parametrize("batch", [1, 4])
def test_examples_come_before_the_sample(lab: Lab, batch: int) -> None:
    model = Shown(batch)
    outcome = lab.evaluate(model, EXAMPLES)
    assert outcome.failed(EXAMPLES) == {}
    assert min(model.lengths) >= 3


def test_the_transcript_says_what_was_asked_for_and_shown(lab: Lab) -> None:
    for record in lab.evaluate(Shown(4), EXAMPLES).transcripts[EXAMPLES].values():
        assert record["variant"] == {"icl": 2, "icl_generic": True}
        finals = [e for e in record["examples"] if e["answer"] in world.CATEGORIES]
        assert len(finals) == 2
        assert all(e["image"].startswith(f"{QD.value}/") for e in record["examples"])


@pytest.mark.parametrize("task", [HISTORY, EXAMPLES])
def test_a_cached_run_is_the_same_and_asks_nothing(lab: Lab, task: str) -> None:
    kind = Remembering if task == HISTORY else Shown
    cache = str(lab.folder / "cache")
    first = lab.evaluate(kind(4), task, use_cache=cache)
    again = kind(4)
    assert lab.evaluate(again, task, use_cache=cache).transcripts == first.transcripts
    assert again.turns == 0


def key(answers_so_far: Sequence[str], **variant: Any) -> int:
    """The response cache's ``idx`` of the turn after these answers."""
    rows = world.rows(QD, list(range(14)))
    pool = [document("demo", n) | row for n, row in enumerate(rows)]
    rollout = start(None, 0, pool[5], Variant(**variant), pool)  # type: ignore[arg-type]
    for answer in answers_so_far:
        rollout.take(Answer(answer))
    return rollout.turn_id({}, sampled=False)


def document(suite: str, line: int) -> dict[str, Any]:
    """The columns that a prepared row has beside those of its sample."""
    row = f"{suite}-of-this-test-{line}"
    return {"dataset": QD.value, "suite": suite, "line": line, "row": row}


def test_another_conversation_is_another_question() -> None:
    """The image and the prompt are the same in all of these."""
    letter, text = "B", ASK[QD]
    keys = [
        key([]),
        key([], icl=1, icl_generic=True),
        key([], icl=2, icl_generic=True),
        key([], icl=1, icl_generic=True, seed=1),
        key([letter]),
        key([letter], history=True),
        key([text], history=True),
        key([letter], history=True, short_edge=224),
    ]
    assert len(set(keys)) == len(keys)
    assert key([letter], history=True) == keys[5]


def test_a_simple_wrapper_is_told_to_make_room(lab: Lab) -> None:
    with pytest.raises(HarnessError, match=r"history_quickdraw .* Reader .* chat wrapper"):
        lab.evaluate(Reader(4), HISTORY)


def test_a_simple_wrapper_that_interleaves_gets_places_for_images(lab: Lab) -> None:
    seen: list[tuple[int, str]] = []

    class Interleaving(Reader):
        interleave_visuals = True

        def generate_until(self, requests: list[Instance]) -> list[Any]:
            for request in requests:
                images = request.args[2](self.doc(request))
                seen.append((len(images), request.args[0]))
            return [ASK[QD]] * len(requests)

    lab.evaluate(Interleaving(4), HISTORY)
    for count, text in seen:
        assert text.count("<image ") == (count if count > 1 else 0)
    assert max(count for count, _ in seen) == 6


# The baselines on the demo, through the command.


def results(out: Path, policy: str, tasks: str) -> Mapping[str, Mapping[str, float]]:
    subprocess.run(
        [
            str(Path(sys.executable).parent / "lmms-eval"),
            *("--model", "proactivebench_baseline", "--model_args", f"policy={policy}"),
            *("--tasks", tasks, "--output_path", str(out), "--batch_size", "16"),
        ],
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        check=True,
        capture_output=True,
        timeout=300,
    )
    return studies.read(next(out.rglob("*_results.json")))


@pytest.mark.slow
def test_baselines_behave_exactly_in_every_study(tmp_path: Path) -> None:
    groups = ["reference", "hint", "history", "icl", "icl-cot", "icl-generic", "random"]
    tasks = ",".join(f"proactivedemo-{group}" for group in groups)
    scores = results(tmp_path / "oracle", "oracle", tasks)
    for group in groups:
        assert scores[f"proactivedemo-{group}"]["acc"] == 100, group
        assert scores[f"proactivedemo-{group}"]["failed"] == 0, group
    scores = results(tmp_path / "ask", "always_ask", tasks)
    assert scores["proactivedemo-reference"]["acc"] == 0
    assert scores["proactivedemo-reference"]["ps"] == 0
    assert scores["proactivedemo-random_quickdraw"]["asked"] == 100
    for group in ("hint", "history"):
        assert scores[f"proactivedemo-{group}_rod"] == scores["proactivedemo-hint_rod"]
    # Nothing is withdrawn in random mode: it is asked to the end.
    rows = [json.loads(line) for line in (DATA / "test" / QD.jsonl).open()]
    longest = sum(row["num_images"] - 1 for row in rows) / len(rows)
    assert scores["proactivedemo-random_quickdraw"]["ps"] == pytest.approx(longest)


def test_random_mode_is_scored_on_the_suggestions_that_were_shown(lab: Lab) -> None:
    doc = document("official", 4) | world.rows(QD, [0, 1, 2, 3])[3]
    rollout = start(None, 0, doc, Variant(mode=Mode.RANDOM), [doc])  # type: ignore[arg-type]
    while not rollout.over:
        suggestion = rollout.episode.correct_suggestions or world.CATEGORIES
        rollout.take(Answer(suggestion[0]))
    transcript = Transcript.from_json(rollout.response().text)
    episode = transcript.replay(documents.sample(doc), lab.protocol)
    assert episode is not None
    assert episode.summary() == rollout.episode.summary()
    assert episode.summary().num_suggestions == 3
    assert transcript.turns[0].answer != ASK[QD]


def test_chance_in_random_mode_differs_only_where_the_rules_do() -> None:
    """ImageNet-C: any meaningless suggestion counts there, not one in two."""
    row = world.rows(Dataset.IMAGENETC, [0, 1])[1]
    sample = parse_sample(Dataset.IMAGENETC, row)
    normal = chance.of_sample(sample)
    random = chance.of_sample(sample, Mode.RANDOM)
    assert normal.ps == pytest.approx(1 / 7)
    assert random.ps == pytest.approx(2 / 7)
