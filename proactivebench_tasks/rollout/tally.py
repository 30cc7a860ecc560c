"""Tally: what a task's rollouts have come to so far, for the progress bar and the log."""

from __future__ import annotations

from collections import Counter
from typing import Any

from loguru import logger

from proactivebench_tasks.environments.lenient import Mismatch
from proactivebench_tasks.results.metrics import MANY_MISMATCHES
from proactivebench_tasks.rollout.rollout import Outcome, Rollout
from proactivebench_tasks.transcripts.answer import Answer, Origin
from proactivebench_tasks.transcripts.thinking import Tags, spoken
from proactivebench_tasks.transcripts.variant import Variant

_EXAMPLES, _EXAMPLE_LENGTH = 3, 80

_MORE_ROOM = "`--gen_kwargs max_new_tokens=4096` gives it more room"

#: What may be wrong if most answers are no option for this reason.
_ADVICE = {
    Mismatch.NOTHING: "Answers are empty: does the wrapper fail without saying so, or does a "
    "server spend the limit on reasoning?",
    Mismatch.CUT: f"The model thinks longer than it may write: {_MORE_ROOM}.",
    Mismatch.OTHER_FORM: "The published rules take a letter or an option's whole text alone; "
    "acc_lenient counts these answers.",
    Mismatch.TEXT_BEFORE: "The model explains itself; acc_lenient counts these answers.",
    Mismatch.TEXT_AFTER: "The model explains itself; acc_lenient counts these answers.",
    Mismatch.SEVERAL: "The model names several options where it may name one.",
    Mismatch.NO_SUCH_LETTER: "The model names letters that are not on the list: does it get the "
    "whole prompt?",
    Mismatch.OTHER_SCRIPT: "The model answers in another language.",
    Mismatch.OTHER: "Does the model get image and prompt through its chat template? If it thinks "
    "aloud between tags of its own, name them with --reasoning_tags.",
}


class Tally:
    """``tags`` are those between which the model thinks."""

    def __init__(self, task: str, variant: Variant, tags: Tags) -> None:
        self._task = task
        self._variant = variant
        self._tags = tags
        self._count: Counter[str] = Counter()
        self._origins: Counter[Origin] = Counter()  # of answers
        self._mismatches: Counter[Mismatch] = Counter()  # last answers that were no option
        self._mismatched: list[str] = []  # some of them

    def start(self, episodes: int) -> None:
        """So many more episodes are played."""
        self._count["episodes"] += episodes

    def take(self, outcome: Outcome) -> None:
        """This came of a turn."""
        if isinstance(outcome, Answer):
            self._origins[outcome.origin] += 1
            self._count["empty"] += not outcome.text.strip()
            if outcome.origin is not Origin.EPISODE:
                self._count["cut"] += spoken(outcome.text, self._tags).is_cut

    def fail(self, rollout: Rollout, turn: int, error: Exception) -> None:
        """A sample failed, in this turn."""
        self._count["failed"] += 1
        sample = f"{rollout.episode.dataset.value}, sample {rollout.episode.sample.id}"
        logger.error(f"{self._task}: {sample}, turn {turn}: {type(error).__name__}: {error}")

    def end(self, rollout: Rollout) -> None:
        """A rollout is over."""
        self._count.update(over=1, **rollout.tally())
        if (why := rollout.mismatch()) is not None:
            self._mismatches[why] += 1
            if len(self._mismatched) < _EXAMPLES:
                self._mismatched.append(rollout.answers[-1].text[:_EXAMPLE_LENGTH])

    def show(self, bar: Any) -> None:
        """Bring the progress bar up to date."""
        count = self._count
        bar.n = self._origins.total()
        if over := count["over"]:
            # Turns to come are guessed from the episodes that are over.
            bar.total = max(bar.n, round(count["turns"] / over * count["episodes"]))
            figures = {"done": f"{over}/{count['episodes']}"}
            if not self._variant.open_ended:
                figures["acc"] = f"{100 * count['solved'] / over:.1f}"
                figures["ps"] = f"{count['suggestions'] / over:.2f}"
            bar.set_postfix(figures, refresh=False)
        bar.refresh()

    def report(self, generations: int) -> None:
        """Log what the task cost, and what is odd about its answers."""
        count, origins = self._count, self._origins
        logger.info(
            f"{self._task}: {generations} generations for {origins[Origin.MODEL]} answers, "
            f"{origins[Origin.CACHE]} answers from the cache, {origins[Origin.EPISODE]} reused; "
            f"{count['failed']} of {count['episodes']} samples failed"
        )
        if count["empty"]:
            logger.warning(
                f"{self._task}: {count['empty']} answers were empty. Some wrappers return nothing "
                "when generation fails; empty answers are not cached and are asked again next time"
            )
        if count["cut"]:
            logger.warning(
                f"{self._task}: {count['cut']} of {origins.total()} answers were cut off while the "
                f"model was thinking, so nothing of them is graded: {_MORE_ROOM}"
            )
        if 100 * self._mismatches.total() > MANY_MISMATCHES * count["over"]:
            self._report_mismatches()

    def _report_mismatches(self) -> None:
        most = self._mismatches.most_common(3)
        share = 100 * self._mismatches.total() / self._count["over"]
        logger.warning(
            f"{self._task}: the last answers of {share:.0f} % of the samples were no option of the "
            f"list ({', '.join(f'{why.value}: {number}' for why, number in most)}), for example "
            f"{', '.join(map(repr, self._mismatched))}. {_ADVICE[most[0][0]]}"
        )
