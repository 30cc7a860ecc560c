"""The episode runner: plays many episodes at once through any model wrapper, turn by turn.

lmms-eval plays multi-turn tasks (``output_type: generate_until_agentic``) one request at a time,
whatever the batch size, and its response cache takes turns for one another. Here every call
carries one turn of many episodes. Requests of other tasks go to lmms-eval's own loop, untouched.
This can go once that loop batches across documents and its cache key covers the image.

What a wrapper may rely on: a call holds one task, each document at most once, one shared callable
that finds the picture from the document, and its own copy of the generation arguments.
"""

from __future__ import annotations

import functools
import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.instance import Instance
from loguru import logger
from tqdm import tqdm

from proactivebench_tasks.data.images import whole_pictures_only
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.model_patches import response_cache as cache_resume
from proactivebench_tasks.rollout import failures, lockstep
from proactivebench_tasks.rollout.generate import Caller
from proactivebench_tasks.rollout.lockstep import Lockstep
from proactivebench_tasks.rollout.rollout import Play, start
from proactivebench_tasks.rollout.visuals import DECODERS, Screen
from proactivebench_tasks.transcripts.variant import Setting

#: Number of unfinished episodes kept in play; the default is 8 batches, at least 64.
WINDOW = "PROACTIVEBENCH_WINDOW"


def apply(ours: Callable[..., str]) -> None:
    """Route the requests whose ``doc_to_text`` is ``ours`` to this runner."""
    from lmms_eval import evaluator

    name = "_run_generate_until_agentic"
    original = getattr(evaluator, name, None)
    if original is None:
        raise HarnessError(
            f"this lmms-eval has no evaluator.{name}, so ProactiveBench cannot run in it; "
            "supported are lmms-eval 0.7.0 to 0.7.3: pip install 'lmms-eval>=0.7,<0.8'"
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
        played = iter(run(lm, mine, response_cache) if mine else ())
        return [next(played if mine else other) for mine in is_ours]

    dispatch.routes = ours  # type: ignore[attr-defined]
    evaluator._run_generate_until_agentic = dispatch


def run(lm: Any, requests: Sequence[Instance], response_cache: Any = None) -> list[Any]:
    """Play the episodes of all requests; returns a transcript each, in the order of the requests.

    Copies that the harness adds to keep ranks in step get an empty response and no work.
    """
    responses: list[Any] = [""] * len(requests)
    if response_cache is not None:
        cache_resume.adopt(response_cache)
    tasks: dict[str, list[int]] = {}
    for position, request in enumerate(requests):
        if not request.metadata.get("__padding_only__"):
            tasks.setdefault(request.args[5], []).append(position)
    step, ledger = lockstep.of(lm), Ledger()
    # All runners first: what a later task lacks is said before an earlier one is played.
    runners = {
        task: Runner(lm, task, requests[positions[0]], response_cache, step, ledger)
        for task, positions in tasks.items()
    }
    try:
        with whole_pictures_only():
            for task, positions in tasks.items():
                for repeat, wave in enumerate(_waves(requests, positions)):
                    plays = runners[task].play([requests[position] for position in wave], repeat)
                    for position, play in zip(wave, plays, strict=True):
                        responses[position] = play.response()
                runners[task].report()
            if step.needed:
                idle = requests[0]
                runner = Runner(lm, idle.args[5], idle, None, step, ledger)
                step.drain(runner.empty_call(idle))
    except KeyboardInterrupt:
        cached = response_cache is not None
        kept = "the same command resumes" if cached else "with --use_cache it would resume"
        raise KeyboardInterrupt(f"interrupted while playing; {kept}") from None
    # One rank of several may hold few samples; it must not end the run for the others.
    if ledger.failed == ledger.episodes and getattr(lm, "world_size", 1) == 1:
        ledger.raise_first()
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


@dataclass
class Ledger:
    """How a run fares over all its tasks, to tell a model that does not work from bad samples."""

    episodes: int = 0
    answers: int = 0
    failed: int = 0
    first_error: Exception | None = None

    def enter(self, error: Exception) -> None:
        self.failed += 1
        self.first_error = self.first_error or error

    def raise_first(self) -> None:
        if self.first_error is not None:
            raise self.first_error


class Runner:
    """Plays the episodes of one task."""

    def __init__(
        self,
        lm: Any,
        task: str,
        example: Instance,
        response_cache: Any,
        step: Lockstep,
        ledger: Ledger,
    ) -> None:
        _, gen_kwargs, _, doc_to_text, _, _, _ = example.args
        self.lm = lm
        self.task = task
        self.setting = Setting.parse(doc_to_text.keywords.get("lmms_eval_specific_kwargs"))
        self.batch = _batch_size(lm)
        self.window = _window(self.batch)
        self.caller = Caller(lm, gen_kwargs or {}, response_cache, self.batch, step.call)
        # An equal observation gets an equal answer from a greedy model: it is not asked again.
        self.reuse = self.caller.greedy and getattr(lm, "deterministic", True)
        failures.allowed(1)  # a value that makes no sense is said now, not at the first failure
        self.count: Counter[str] = Counter()
        self.ledger = ledger
        if self.setting.several_pictures:
            self._require_conversations()
        if self.setting.open_ended:
            from proactivebench_tasks.judge import stage  # only these tasks have a judge

            stage.require(self.setting.judge)

    def play(self, requests: Sequence[Instance], repeat: int = 0) -> list[Play]:
        """Play one episode for each request; each document must be there once."""
        plays = [self._start(request, repeat) for request in requests]
        # The longest first, so that few are left at the end, when calls can no longer be full.
        queue = deque(sorted(plays, key=lambda play: -play.turns_left))
        live: list[Play] = []
        self.count["episodes"] += len(plays)
        self.ledger.episodes += len(plays)
        rank = getattr(self.lm, "rank", 0)
        pool = ThreadPoolExecutor(DECODERS, thread_name_prefix="decode")
        screen = Screen(pool, chat=not self.caller.simple)
        with pool, tqdm(desc=self.task, unit="turn", disable=rank != 0) as bar:
            while queue or live:
                while queue and len(live) < self.window:
                    live.append(queue.popleft())
                for play, outcome in self.caller.ask(self._chosen(live), screen):
                    self._take(play, outcome)
                for play in live:
                    while self.reuse and not play.over and play.conversation in play.answered:
                        self._take(play, play.answered[play.conversation], reused=True)
                    if play.over:
                        self.count.update(over=1, **play.tally())
                live = [play for play in live if not play.over]
                self._show_progress(bar)
        return plays

    def empty_call(self, request: Instance) -> Callable[[], object]:
        """A call of the wrapper whose answer nobody reads."""
        caller = Caller(self.lm, self.caller.gen_kwargs, None, self.batch)
        screen = Screen(ThreadPoolExecutor(1), chat=not caller.simple)
        return lambda: caller.ask([self._start(request, 0)], screen)

    def report(self) -> None:
        """Log what this task cost."""
        count = self.count
        logger.info(
            f"{self.task}: {self.caller.called} answers from the model, "
            f"{max(0, count['asked'] - self.caller.called)} from the cache, {count['reused']} "
            f"reused; {count['failed']} of {count['episodes']} samples failed"
        )
        if count["empty"]:
            logger.warning(
                f"{self.task}: {count['empty']} answers were empty. Some wrappers return nothing "
                "when generation fails; empty answers are not cached and are asked again next time"
            )

    def _require_conversations(self) -> None:
        if self.caller.simple and not getattr(self.lm, "interleave_visuals", False):
            raise HarnessError(
                f"{self.task} shows a conversation of several pictures, which wrapper "
                f"{type(self.lm).__name__} cannot take; use a chat wrapper (qwen2_5_vl, llava_hf, "
                "openai), or one with an argument interleave_visuals=True"
            )

    def _start(self, request: Instance, repeat: int) -> Play:
        _, _, _, _, doc_id, task, split = request.args
        documents = self.lm.task_dict[task][split]
        return start(request, repeat, documents[doc_id], self.setting, documents)

    def _chosen(self, live: list[Play]) -> list[Play]:
        """Who is asked next: whole batches, as long as there is one, longest episodes first."""
        whole = len(live) - len(live) % self.batch or len(live)
        if whole == len(live):
            return live
        order = sorted(range(len(live)), key=lambda i: -live[i].turns_left)[:whole]
        return [live[i] for i in sorted(order)]

    def _take(self, play: Play, outcome: str | Exception, reused: bool = False) -> None:
        """Let a play have its answer, or its error."""
        if isinstance(outcome, str):
            self.count["reused" if reused else "asked"] += 1
            self.ledger.answers += 1
            self.count["empty"] += not outcome.strip()
            play.answer(outcome, reused)
        else:
            play.error = outcome
        if play.error is not None:
            self._failed(play, play.error)

    def _failed(self, play: Play, error: Exception) -> None:
        self.count["failed"] += 1
        self.ledger.enter(error)
        sample = f"{play.episode.dataset.value}, sample {play.episode.sample.id}"
        turn = len(play.episode.turns) + 1
        logger.error(f"{self.task}: {sample}, turn {turn}: {type(error).__name__}: {error}")
        if not self.ledger.answers and self.ledger.failed >= self.window:
            self.ledger.raise_first()  # nothing works: no use in a night of it
        if self.count["failed"] > failures.allowed(self.count["episodes"]):
            raise HarnessError(
                f"{self.task}: {self.count['failed']} of {self.count['episodes']} samples failed, "
                f"more than {failures.MAX_FAILED} allows; the last: {error}"
            ) from error

    def _show_progress(self, bar: Any) -> None:
        count = self.count
        bar.n = count["asked"] + count["reused"]
        if over := count["over"]:
            # Turns to come are guessed from the episodes that are over.
            bar.total = max(bar.n, round(count["turns"] / over * count["episodes"]))
            figures = {"done": f"{over}/{count['episodes']}"}
            if not self.setting.open_ended:
                figures["acc"] = f"{100 * count['solved'] / over:.1f}"
                figures["ps"] = f"{count['suggestions'] / over:.2f}"
            bar.set_postfix(figures, refresh=False)
        bar.refresh()


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
