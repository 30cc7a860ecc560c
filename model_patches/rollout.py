"""The episode runner: plays many episodes at once through any model wrapper, turn by turn.

lmms-eval plays multi-turn tasks (``output_type: generate_until_agentic``) one request at a time,
whatever the batch size, and its response cache takes turns for one another. Here every call carries
one turn of many episodes. Requests of other tasks go to lmms-eval's own loop, untouched. This can go
once that loop batches across documents and its cache key covers the image.

What a wrapper may rely on: a call holds one task, each document at most once, one shared callable
that finds the picture from the document, and its own copy of the generation arguments.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.instance import (
    GenerationResult,
    Instance,
    TokenCounts,
    unwrap_generation_output,
)
from lmms_eval.caching.response_cache import is_deterministic
from loguru import logger
from PIL.Image import Image
from tqdm import tqdm

from proactivebench_tasks import documents
from proactivebench_tasks.documents import Document
from proactivebench_tasks.environments.base import Episode, Observation
from proactivebench_tasks.errors import GenerationError, HarnessError
from proactivebench_tasks.settings import Setting
from proactivebench_tasks.transcripts import Transcript

#: Number of unfinished episodes kept in play; the default is 8 batches, at least 64.
WINDOW = "PROACTIVEBENCH_WINDOW"

_FAILED_REQUEST = "[LMMS_EVAL_REQUEST_FAILED"  # what API wrappers return when they gave up
_DECODERS = 4  # threads that decode pictures ahead
_DECODED_AHEAD = 16  # pictures held decoded, at most


def apply(ours: Callable[..., str]) -> None:
    """Route the requests whose ``doc_to_text`` is ``ours`` to this runner."""
    from lmms_eval import evaluator

    name = "_run_generate_until_agentic"
    original = getattr(evaluator, name, None)
    if original is None:
        raise HarnessError(
            f"this lmms-eval has no evaluator.{name}, so ProactiveBench cannot run in it; supported "
            "are lmms-eval 0.7.0 to 0.7.3: pip install 'lmms-eval>=0.7,<0.8'"
        )
    if getattr(original, "routes", None) is ours:
        return

    @functools.wraps(original)
    def dispatch(
        lm: Any,
        requests: list[Instance],
        agentic_trace_mode: str = "basic",
        response_cache: Any = None,
    ) -> list[Any]:
        is_ours = [getattr(r.args[3], "func", None) is ours for r in requests]
        theirs = [r for r, mine in zip(requests, is_ours, strict=True) if not mine]
        other = iter(original(lm, theirs, agentic_trace_mode, response_cache) if theirs else ())
        mine = [r for r, mine in zip(requests, is_ours, strict=True) if mine]
        played = iter(run(lm, mine, response_cache))
        return [next(played if mine else other) for mine in is_ours]

    dispatch.routes = ours  # type: ignore[attr-defined]
    evaluator._run_generate_until_agentic = dispatch


@dataclass(eq=False)
class Play:
    """An episode in play: its request in the harness, its answers so far, what went wrong."""

    request: Instance
    doc: Document
    episode: Episode
    outputs: list[str] = field(default_factory=list)
    reused: list[bool] = field(default_factory=list)
    answered: dict[Observation, str] = field(default_factory=dict)
    tokens: Counter[str] = field(default_factory=Counter)
    error: Exception | None = None

    @property
    def over(self) -> bool:
        return self.episode.done or self.error is not None

    @functools.cached_property
    def seen(self) -> Observation:
        """What the model sees now; forgotten with each answer."""
        return self.episode.observe()

    def answer(self, output: str, strip_thinking: bool, reused: bool = False) -> None:
        self.answered[self.seen] = output
        try:
            self.episode.step(without_thinking(output) if strip_thinking else output)
        except Exception as error:  # malformed data: this sample's failure, not the run's
            self.error = error
            return
        self.outputs.append(output)
        self.reused.append(reused)
        del self.seen

    def response(self) -> GenerationResult:
        error = self.error and f"{type(self.error).__name__}: {self.error}"
        transcript = Transcript(self.episode, tuple(self.outputs), tuple(self.reused), error)
        counts = TokenCounts(**self.tokens) if self.tokens else None
        return GenerationResult(transcript.to_json(), counts)


def without_thinking(text: str) -> str:
    """The answer after a model's thinking. Thinking that never ends leaves no answer."""
    return re.sub(r"<think>.*", "", text.rpartition("</think>")[2], flags=re.DOTALL).strip()


class Screen:
    """The callable that every request of a call shares: it finds the picture from the document.

    Pictures of the call are decoded ahead in its order, a bounded number of them.
    """

    def __init__(self, pool: ThreadPoolExecutor, chat: bool) -> None:
        self._pool = pool
        self._chat = chat
        self._plays: dict[object, Play] = {}
        self._waiting: deque[Play] = deque()
        self._decoding: dict[object, Future[Image]] = {}

    def show(self, plays: Iterable[Play]) -> None:
        """Set the plays of the next call."""
        self._plays = {documents.key(play.doc): play for play in plays}
        self._decoding = {}
        self._waiting = deque(self._plays.values())
        self._decode_ahead()

    def episode(self, doc: Document) -> Episode:
        """The episode of a document in this call."""
        return self._plays[documents.key(doc)].episode

    def __call__(self, doc: Document) -> list[Any]:
        """Pictures for a simple wrapper, messages for a chat wrapper: fresh ones in each call."""
        play = self._plays[documents.key(doc)]
        decoding = self._decoding.pop(documents.key(doc), None)
        self._decode_ahead()
        try:
            image = decoding.result() if decoding else documents.pixels(doc, play.seen)
        except Exception as error:
            play.error = error  # told apart from a failure of the wrapper
            raise
        if not self._chat:
            return [image]
        content = [{"type": "image", "url": image}, {"type": "text", "text": play.seen.text}]
        return [{"role": "user", "content": content}]

    def _decode_ahead(self) -> None:
        while self._waiting and len(self._decoding) < _DECODED_AHEAD:
            play = self._waiting.popleft()
            future = self._pool.submit(documents.pixels, play.doc, play.seen)
            self._decoding[documents.key(play.doc)] = future


class Guard:
    """The model as the response cache sees it: checks what the wrapper returns, shields what it is
    given. The cache computes its keys after the call, so a wrapper that changes its generation
    arguments would store answers where they are never found."""

    def __init__(self, lm: Any) -> None:
        self._lm = lm
        self.failures: dict[int, str] = {}

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        responses = self._lm.generate_until([_own_copy(request) for request in requests])
        if len(responses) != len(requests):
            raise HarnessError(
                f"wrapper {type(self._lm).__name__} returned {len(responses)} responses for "
                f"{len(requests)} requests, so no answer can be told to belong to its sample"
            )
        return [self._checked(*pair) for pair in zip(requests, responses, strict=True)]

    def _checked(self, request: Instance, response: Any) -> Any:
        """What the cache may keep: ``None``, which it does not, for a response that is no answer."""
        text, counts = unwrap_generation_output(response) if response is not None else (None, None)
        if not isinstance(text, str) or text.startswith(_FAILED_REQUEST):
            wrapper = type(self._lm).__name__
            self.failures[id(request)] = f"wrapper {wrapper} returned no answer: {text!r:.500}"
            return None
        # A pair, unlike a GenerationResult, keeps its counts in the cache.
        return (text, counts.to_dict()) if counts is not None and text.strip() else text


def _own_copy(request: Instance) -> Instance:
    own = copy.copy(request)
    own.arguments = tuple(
        copy.deepcopy(arg) if isinstance(arg, dict) else arg for arg in request.args
    )
    return own


def run(lm: Any, requests: Sequence[Instance], response_cache: Any = None) -> list[Any]:
    """Play the episodes of all requests; returns a transcript each, in the order of the requests.

    Copies that the harness adds to keep ranks in step get an empty response and no work.
    """
    responses: list[Any] = [""] * len(requests)
    tasks: dict[str, list[int]] = {}
    for position, request in enumerate(requests):
        if not request.metadata.get("__padding_only__"):
            tasks.setdefault(request.args[5], []).append(position)
    for task, positions in tasks.items():
        runner = Runner(lm, task, requests[positions[0]], response_cache)
        for wave in _waves(requests, positions):
            plays = runner.play([requests[position] for position in wave])
            for position, play in zip(wave, plays, strict=True):
                responses[position] = play.response()
        runner.report()
    return responses


def _waves(requests: Sequence[Instance], positions: Sequence[int]) -> list[list[int]]:
    """Positions in groups that hold each document once: repeats are played one after the other."""
    seen: Counter[object] = Counter()
    waves: list[list[int]] = []
    for position in positions:
        doc_id = requests[position].args[4]
        if seen[doc_id] == len(waves):
            waves.append([])
        waves[seen[doc_id]].append(position)
        seen[doc_id] += 1
    return waves


class Runner:
    """Plays the episodes of one task."""

    def __init__(self, lm: Any, task: str, example: Instance, response_cache: Any) -> None:
        self.lm = lm
        self.task = task
        self.setting = Setting.parse(example.args[3].keywords.get("lmms_eval_specific_kwargs"))
        self.cache = response_cache
        self.batch = _batch_size(lm)
        self.window = _window(self.batch)
        # An equal observation gets an equal answer from a greedy model: it is not asked again.
        self.reuse = getattr(lm, "deterministic", True) and is_deterministic(
            "generate_until", example.args[1]
        )
        self.count: Counter[str] = Counter()

    def play(self, requests: Sequence[Instance]) -> list[Play]:
        """Play one episode for each request; each document must be there once."""
        plays = [self._start(request) for request in requests]
        queue = deque(plays)
        live: list[Play] = []
        pool = ThreadPoolExecutor(_DECODERS, thread_name_prefix="decode")
        screen = Screen(pool, chat=not getattr(self.lm, "is_simple", True))
        bar = tqdm(
            total=len(plays),
            desc=self.task,
            unit="turn",
            disable=getattr(self.lm, "rank", 0) != 0,
        )
        with pool, bar:
            while queue or live:
                while queue and len(live) < self.window:
                    live.append(queue.popleft())
                self._ask(self._chosen(live), screen)
                for play in live:
                    self._reuse_answers(play)
                live = [play for play in live if not play.over]
                self._show_progress(bar, plays)
        return plays

    def report(self) -> None:
        """Log what this task cost."""
        count = self.count
        logger.info(
            f"{self.task}: {count['asked']} turns asked, {count['reused']} answers reused, "
            f"{count['failed']} samples failed"
        )
        if count["empty"]:
            logger.warning(
                f"{self.task}: {count['empty']} answers were empty. Some wrappers return nothing "
                "when generation fails; empty answers are not cached and are asked again next time"
            )

    def _start(self, request: Instance) -> Play:
        _, _, _, _, doc_id, task, split = request.args
        doc = self.lm.task_dict[task][split][doc_id]
        return Play(request, doc, documents.episode(doc, self.setting))

    def _chosen(self, live: list[Play]) -> list[Play]:
        """Who is asked next: whole batches, as long as there is one, longest episodes first."""
        whole = len(live) - len(live) % self.batch or len(live)
        if whole == len(live):
            return live
        left = [play.episode.environment.max_turns - len(play.episode.turns) for play in live]
        order = sorted(range(len(live)), key=lambda i: -left[i])[:whole]
        return [live[i] for i in sorted(order)]

    def _ask(self, plays: list[Play], screen: Screen) -> None:
        """One turn of each play. A failure ends the plays at fault and no other."""
        try:
            outputs = self._generate(plays, screen)
        except Exception as error:
            at_fault = [play for play in plays if play.error is not None]
            if not at_fault and len(plays) > 1:
                half = len(plays) // 2
                self._ask(plays[:half], screen)
                self._ask(plays[half:], screen)
                return
            for play in at_fault or plays:
                self._fail(play, play.error or error)
            if rest := [play for play in plays if play.error is None]:
                self._ask(rest, screen)
            return
        for play, output in zip(plays, outputs, strict=True):
            if play.error is not None:  # its picture failed, and the wrapper carried on regardless
                self._fail(play, play.error)
            elif isinstance(output, Exception):
                self._fail(play, output)
            else:
                self._answer(play, output)

    def _answer(self, play: Play, output: str, reused: bool = False) -> None:
        play.answer(output, self.setting.strip_thinking, reused)
        if play.error is not None:
            self._fail(play, play.error)
        self.count["reused" if reused else "asked"] += 1
        self.count["empty"] += not output.strip()

    def _fail(self, play: Play, error: Exception) -> None:
        play.error = error
        self.count["failed"] += 1
        sample = f"{play.episode.dataset.value}, sample {play.episode.sample.id}"
        turn = len(play.episode.turns) + 1
        logger.error(f"{self.task}: {sample}, turn {turn}: {type(error).__name__}: {error}")
        if not self.count["asked"] and self.count["failed"] >= self.window:
            raise error  # nothing works: no use in a night of it

    def _generate(self, plays: list[Play], screen: Screen) -> list[str | Exception]:
        screen.show(plays)
        requests = [self._request(play, screen) for play in plays]
        guard = Guard(self.lm)
        if self.cache is None:
            responses = guard.generate_until(requests)
        else:
            responses = self.cache.execute(guard, "generate_until", requests)
        outputs: list[str | Exception] = []
        for play, request, response in zip(plays, requests, responses, strict=True):
            if failure := guard.failures.get(id(request)):
                outputs.append(GenerationError(failure))
                continue
            text, counts = unwrap_generation_output(response)
            outputs.append(text)
            play.tokens.update(counts.to_dict() if counts else {})
        return outputs

    def _request(self, play: Play, screen: Screen) -> Instance:
        _, gen_kwargs, _, _, doc_id, task, split = play.request.args
        gen_kwargs = copy.deepcopy(gen_kwargs)
        text = play.seen.text
        if getattr(self.lm, "is_simple", True):
            arguments = (text, gen_kwargs, screen, doc_id, task, split)
        else:
            arguments = (text, screen, gen_kwargs, doc_id, task, split)
        return Instance(
            request_type="generate_until",
            arguments=arguments,
            idx=_turn_key(play),
            metadata=play.request.metadata,
        )

    def _reuse_answers(self, play: Play) -> None:
        while self.reuse and not play.over and play.seen in play.answered:
            self._answer(play, play.answered[play.seen], reused=True)

    def _show_progress(self, bar: Any, plays: Sequence[Play]) -> None:
        over = [play for play in plays if play.over]
        if not over:
            return
        turns = sum(len(play.episode.turns) for play in plays)
        # Turns to come are guessed from the episodes that are over.
        per_episode = sum(len(play.episode.turns) for play in over) / len(over)
        bar.total = max(turns, round(per_episode * len(plays)))
        bar.n = turns
        done = [play.episode.summary() for play in over if play.error is None]
        if done:
            acc = 100 * sum(s.correct_prediction for s in done) / len(over)
            ps = sum(s.suggestions for s in done) / len(over)
            bar.set_postfix(done=f"{len(over)}/{len(plays)}", acc=f"{acc:.1f}", ps=f"{ps:.2f}")
        bar.refresh()


def _turn_key(play: Play) -> int:
    """Tells turns apart in the response cache, whose key has the text but neither picture nor
    history: 63 bits of a digest of both."""
    seen = play.seen
    parts = [
        play.episode.protocol.version,
        seen.image,
        seen.crop and [seen.crop.left, seen.crop.top, seen.crop.right, seen.crop.bottom],
        [turn.answer for turn in play.episode.turns],
    ]
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _batch_size(lm: Any) -> int:
    """The wrapper's batch size; 1 where it has none, or finds it out by itself ("auto")."""
    size = str(getattr(lm, "batch_size", 1))
    return int(size) if size.isdecimal() and int(size) > 0 else 1


def _window(batch: int) -> int:
    value = os.environ.get(WINDOW, "")
    if not value:
        return max(64, 8 * batch)
    if not value.isdecimal() or int(value) < 1:
        raise HarnessError(f"{WINDOW} is {value!r}; expected a number of episodes, 1 or more")
    return int(value)
