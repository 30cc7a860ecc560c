"""Runner: plays many episodes at once through any model wrapper, one turn of each a call.

A window of unfinished episodes is in play. Each call carries the next turn of as many of them as
make whole batches, the longest first; those that are over make room for new ones.

What a wrapper may rely on: a call holds one task, each document at most once, one shared callable
that finds the images from the document, and its own copy of the generation arguments.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from lmms_eval.api.instance import Instance
from tqdm import tqdm

from proactivebench_tasks import config
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.rollout import concurrency, lockstep
from proactivebench_tasks.rollout.continuous import ContinuousGenerator
from proactivebench_tasks.rollout.failures import FailurePolicy, Failures
from proactivebench_tasks.rollout.generate import Calls, Generator
from proactivebench_tasks.rollout.lockstep import Lockstep
from proactivebench_tasks.rollout.request import EpisodeRequest
from proactivebench_tasks.rollout.rollout import Outcome, Rollout, start
from proactivebench_tasks.rollout.tally import Tally
from proactivebench_tasks.rollout.visuals import DECODERS
from proactivebench_tasks.transcripts.answer import Answer
from proactivebench_tasks.transcripts.thinking import Tags


def run(
    lm: Any,
    requests: Sequence[Instance],
    response_cache: Any = None,
    tags_of: Callable[[str], Tags] = lambda task: (),
) -> list[Any]:
    """Play the episodes of all requests; returns a record each, in the order of the requests.

    ``tags_of`` says, by task, between which tags models think. Copies of requests that the harness
    adds to keep ranks in step get an empty response and no work.
    """
    tasks: dict[str, list[int]] = {}
    for position, request in enumerate(requests):
        if not request.metadata.get("__padding_only__"):
            tasks.setdefault(EpisodeRequest.of(request).task, []).append(position)
    responses: list[Any] = [""] * len(requests)
    with _setting_up(lm, response_cache) as session:
        # All runners first: what a later task lacks is said before an earlier one is played.
        runners = {
            task: TaskRunner(lm, task, requests[positions[0]], session, tags_of(task))
            for task, positions in tasks.items()
        }
        for task, positions in tasks.items():
            runner = runners[task]
            for repeat, wave in enumerate(_waves(requests, positions)):
                rollouts = runner.play([requests[position] for position in wave], repeat)
                for position, rollout in zip(wave, rollouts, strict=True):
                    responses[position] = rollout.response()
            runner.report()
        if session.step.needed:
            idle = requests[0]
            task = EpisodeRequest.of(idle).task
            runner = runners.get(task) or TaskRunner(lm, task, idle, session, ())
            session.step.drain(lambda: runner.empty_call(idle))
        session.failures.end()
    return responses


class Session:
    """What the tasks of a run share."""

    def __init__(self, lm: Any, response_cache: Any, threads: ExitStack) -> None:
        configured = config.get()
        self.batch = _batch_size(lm)
        self.step: Lockstep = lockstep.of(lm)
        self.concurrency = None if self.step.needed else concurrency.of(lm)
        most = self.concurrency.most if self.concurrency else 0
        #: Number of unfinished episodes in play.
        self.window = configured.window or max(64, 8 * self.batch, 2 * most)
        self.slow_call = configured.slow_call
        self.cache = response_cache
        self._decoders = _pool(threads, DECODERS, "decode")
        self._senders = _pool(threads, most, "request") if most else None
        is_alone = getattr(lm, "world_size", 1) == 1
        self.failures = Failures(FailurePolicy(configured.max_failed, self.window, is_alone))

    def generator(self, lm: Any, gen_kwargs: Mapping[str, Any]) -> Generator:
        """What makes the calls of a task, in the way that suits the wrapper."""
        each = Calls(self.step.call, self.slow_call, self._decoders)
        if self.concurrency is None or self._senders is None:
            return Generator(lm, gen_kwargs, self.cache, each, self.batch)
        return ContinuousGenerator(
            lm, gen_kwargs, self.cache, each, self.concurrency, self._senders
        )


def _pool(opened: ExitStack, threads: int, name: str) -> Executor:
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    opened.callback(pool.shutdown, wait=False, cancel_futures=True)
    return pool


@contextmanager
def _setting_up(lm: Any, response_cache: Any) -> Iterator[Session]:
    with ExitStack() as threads:
        try:
            yield Session(lm, response_cache, threads)
        except KeyboardInterrupt:
            cached = response_cache is not None
            kept = "the same command resumes" if cached else "with --use_cache it would resume"
            raise KeyboardInterrupt(f"interrupted while playing; {kept}") from None


def _waves(requests: Sequence[Instance], positions: Sequence[int]) -> list[list[int]]:
    """Positions in groups that hold each document once: repeats are played one after the other."""
    seen: Counter[object] = Counter()
    waves: list[list[int]] = []
    for position in positions:
        doc_id = EpisodeRequest.of(requests[position]).doc_id
        if seen[doc_id] == len(waves):
            waves.append([])
        waves[seen[doc_id]].append(position)
        seen[doc_id] += 1
    return waves


class TaskRunner:
    """Plays the episodes of one task."""

    def __init__(self, lm: Any, task: str, example: Instance, session: Session, tags: Tags) -> None:
        request = EpisodeRequest.of(example)
        self.lm = lm
        self.task = task
        self.session = session
        self.tags = tags
        self.variant = request.variant
        self.generator = session.generator(lm, request.gen_kwargs or {})
        # An equal observation gets an equal answer from a greedy model: it is not asked again.
        self.reuse = self.generator.is_greedy and getattr(lm, "deterministic", True)
        self.tally = Tally(task, self.variant, tags)
        if self.variant.several_images:
            self._require_conversations()
        if self.variant.open_ended:
            from proactivebench_tasks.judge import stage  # only these tasks have a judge

            stage.require(self.variant.judge)

    def play(self, requests: Sequence[Instance], repeat: int = 0) -> list[Rollout]:
        """Play one episode for each request; each document must be there once."""
        rollouts = [self._start(request, repeat) for request in requests]
        # The longest first, so that few are left at the end, when calls can no longer be full.
        queue = deque(sorted(rollouts, key=lambda rollout: -rollout.turns_left))
        live: list[Rollout] = []
        self.session.failures.start(len(rollouts), new_task=repeat == 0)
        self.tally.start(len(rollouts))
        rank = getattr(self.lm, "rank", 0)
        with tqdm(desc=self.task, unit="turn", disable=rank != 0) as bar:
            try:
                while queue or live:
                    while queue and len(live) < self.session.window:
                        live.append(queue.popleft())
                    for rollout, outcome in self.generator.outcomes(self._chosen(live)):
                        self._go_on(rollout, outcome)
                    live = [rollout for rollout in live if not rollout.over]
                    self.tally.show(bar)
            except BaseException:
                self.generator.interrupted()
                raise
        return rollouts

    def _go_on(self, rollout: Rollout, outcome: Outcome) -> None:
        """Let a rollout take what came of its turn, and the answers that are known already."""
        self._take(rollout, outcome)
        while self.reuse and not rollout.over and (known := rollout.known_answer()):
            self._take(rollout, known)
        if rollout.over:
            self.tally.end(rollout)

    def empty_call(self, request: Instance) -> None:
        """A call of the wrapper whose answer nobody reads."""
        self.generator.empty_call(self._start(request, 0))

    def report(self) -> None:
        """Log what this task cost, and what is odd about its answers."""
        self.tally.report(self.generator.generations)

    def _require_conversations(self) -> None:
        if self.generator.is_simple and not getattr(self.lm, "interleave_visuals", False):
            raise HarnessError(
                f"{self.task} shows a conversation of several images, which wrapper "
                f"{type(self.lm).__name__} cannot take; use a chat wrapper (qwen2_5_vl, llava_hf, "
                "openai), or one with an argument interleave_visuals=True"
            )

    def _start(self, request: Instance, repeat: int) -> Rollout:
        asked = EpisodeRequest.of(request)
        documents = asked.documents(self.lm)
        return start(request, repeat, documents[asked.doc_id], self.variant, documents, self.tags)

    def _chosen(self, live: list[Rollout]) -> list[Rollout]:
        """Who is asked next: whole batches, as long as there is one, longest episodes first.
        Not those that are being asked already."""
        idle = [rollout for rollout in live if rollout not in self.generator.asked]
        batch = self.generator.batch
        whole = len(idle) - len(idle) % batch or len(idle)
        if whole == len(idle):
            return idle
        order = sorted(range(len(idle)), key=lambda i: -idle[i].turns_left)[:whole]
        return [idle[i] for i in sorted(order)]

    def _take(self, rollout: Rollout, outcome: Outcome) -> None:
        """Let a rollout go on with what came of its turn, and keep count."""
        self.tally.take(outcome)
        if isinstance(outcome, Answer):
            self.session.failures.answered()
        turn = len(rollout.episode.turns) + 1
        rollout.take(outcome)
        if rollout.error is not None:
            self.tally.fail(rollout, turn, rollout.error)
            self.session.failures.failed(self.task, rollout.error)


def _batch_size(lm: Any) -> int:
    """The wrapper's batch size; 1 where it has none, or finds it out by itself ("auto")."""
    size = str(getattr(lm, "batch_size", 1))
    return int(size) if size.isdecimal() and int(size) > 0 else 1
