"""The judge stage: all open-ended answers of a task at once, between generation and metrics.

``JudgeFilter`` is the lmms-eval filter that the task YAMLs name. It never raises, because an
exception in a filter would end the run, and all that the model has generated would be lost.
Whatever goes wrong is written into the records as the reason why they have no verdict. The metrics
count these as ``unscored``, and ``proactivebench judge`` asks for the missing verdicts later.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lmms_eval.api.filter import Filter
from loguru import logger
from tqdm import tqdm

from proactivebench_tasks.config import JUDGE, JudgeKind
from proactivebench_tasks.errors import JudgeError, ProtocolError, RecordError
from proactivebench_tasks.judge import verdict as verdicts
from proactivebench_tasks.judge.base import Judge, Reply
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.judge.reply_cache import ReplyCache
from proactivebench_tasks.judge.settings import JudgeSettings
from proactivebench_tasks.protocol import versions
from proactivebench_tasks.transcripts.open_ended import Judgement, OpenEnded

#: What to do about answers without a verdict.
NEXT_STEP = "`proactivebench judge RESULTS_DIR` asks for what is missing"


class JudgeFilter(Filter):
    """From the texts of records to those of judged records, in the same order.

    ``resps`` holds a list of texts for each sample, one a repeat. A text that is no record of an
    open-ended sample stays as it is, and so does the record of a sample that failed: there is no
    answer to judge.
    """

    def apply(self, resps: Iterable[Sequence[str]], docs: object) -> list[list[str]]:
        texts = [list(each) for each in resps]
        due: dict[tuple[int, int], OpenEnded] = {}
        for i, repeats in enumerate(texts):
            for k, text in enumerate(repeats):
                try:
                    record = OpenEnded.from_json(text)
                except RecordError:
                    continue  # process_results finds the same, logs it, counts the sample as failed
                if record.error is None:
                    due[i, k] = record
        for (i, k), judged in zip(due, judge_or_explain(list(due.values())), strict=True):
            texts[i][k] = judged.to_json()
        return texts


@lru_cache(maxsize=1)
def make_judge(settings: JudgeSettings) -> Judge:
    """The judge of these settings. All tasks of a run get the same one, so its model loads once."""
    # Imported here, because each kind needs a library that is slow to import and that the other
    # kinds do not need.
    if settings.kind is JudgeKind.OPENAI:
        from proactivebench_tasks.judge.openai import OpenAIJudge

        return OpenAIJudge(settings)
    if settings.kind is JudgeKind.HF:
        from proactivebench_tasks.judge.hf import HFJudge

        return HFJudge(settings)
    if settings.kind is JudgeKind.LEXICAL:
        from proactivebench_tasks.judge.lexical import LexicalJudge

        return LexicalJudge()
    raise JudgeError(
        f"judge {settings.kind.value!r} judges nothing: set {JUDGE} to openai, hf or lexical"
    )


def require(kind: str) -> None:
    """Raise ``JudgeError`` or ``ConfigError`` unless answers of a task whose YAML asks for judge
    ``kind`` can be judged. Called before anything is generated."""
    if JudgeSettings.resolve(kind).kind is not JudgeKind.LATER:
        with ReplyCache():
            pass  # to open it is the check: it raises if the cache folder cannot be written to


def judge_or_explain(records: Sequence[OpenEnded]) -> list[OpenEnded]:
    """The records of one task, judged by the judge that the environment, or else the task, names.

    Never raises. If nothing can be judged, each record says in ``unscored`` why.
    """
    if not records:
        return []
    try:
        settings = JudgeSettings.resolve(records[0].judge.kind)
        if settings.kind is JudgeKind.LATER:
            logger.warning(
                f"{len(records)} answers generated, none judged yet; they are kept only with "
                f"--log_samples and --output_path RESULTS_DIR. Then {NEXT_STEP}"
            )
            return [record.judged(Judgement(kind=JudgeKind.LATER.value)) for record in records]
        with ReplyCache() as cache:
            return run(records, make_judge(settings), cache)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        logger.error(f"judging failed, the answers are kept: {reason}. {NEXT_STEP}")
        return [
            record.judged(record.judge.model_copy(update={"unscored": reason}))
            for record in records
        ]


def run(
    records: Sequence[OpenEnded], judge: Judge, cache: ReplyCache, again: bool = False
) -> list[OpenEnded]:
    """The records with the judge's verdicts, in the order given. Equal questions are asked once.

    Questions that the cache has a reply to are asked only if ``again`` is set; the new reply then
    takes the place of the old. A reply is in the cache before the progress bar counts it, so a run
    that is killed loses only the requests that are under way.

    A record whose protocol is not installed is unscored, for only the protocol can word a question.
    """
    questions: dict[str, Question] = {}
    positions: dict[str, list[int]] = {}
    judged = list(records)
    count: Counter[str] = Counter()
    faults = {version: _fault(version) for version in {r.protocol for r in records}}
    rank = int(os.environ.get("RANK", 0))
    with tqdm(total=len(records), desc="judging", unit="answer", disable=rank != 0) as bar:
        for i, record in enumerate(records):
            if fault := faults[record.protocol]:
                judged[i] = record.judged(_judgement(record, judge, Reply(None, fault)))
                count["unworded"] += 1
                _show(bar, count, judged[i])
                continue
            question = Question.of(record)
            key = question.key(judge.identity)
            questions[key] = question
            positions.setdefault(key, []).append(i)
        for key, reply in _replies(questions, judge, cache, again, count):
            for i in positions[key]:
                judged[i] = records[i].judged(_judgement(records[i], judge, reply))
                _show(bar, count, judged[i])
    _report(judged, judge, count)
    return judged


def _fault(version: str) -> str:
    """Why the protocol of this version cannot be had; empty if it can."""
    try:
        versions.of(version)
    except ProtocolError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _replies(
    questions: Mapping[str, Question],
    judge: Judge,
    cache: ReplyCache,
    again: bool,
    count: Counter[str],
) -> Iterator[tuple[str, Reply]]:
    """Each question's key and the reply to it: first those from the cache, then the judge's."""
    due = []
    for key in questions:
        if not again and (raw := cache.get(key)) is not None:
            count["cached"] += 1
            yield key, Reply(raw)
        else:
            due.append(key)
    if not due:
        return  # without asking the judge, which would load its model
    for i, reply in judge.ask([questions[key] for key in due]):
        count["asked"] += 1
        if reply.raw is not None:
            reply = Reply(cache.put(due[i], reply.raw, replace=again))
        yield due[i], reply


def _judgement(record: OpenEnded, judge: Judge, reply: Reply) -> Judgement:
    """What a record holds of a reply: all of it, and the verdict or why there is none."""
    verdict, unscored = None, reply.error
    if reply.raw is not None:
        try:
            verdict = tuple(verdicts.marks(reply.raw, record.valid_answers))
        except verdicts.Unusable as unusable:
            unscored = str(unusable)
    return Judgement.of(
        judge.identity,
        comparable=judge.comparable,
        raw=reply.raw,
        verdict=verdict,
        unscored=unscored,
    )


def _show(bar: Any, count: Counter[str], judged: OpenEnded) -> None:
    """Move the progress bar on by one answer, with the metrics so far."""
    score = verdicts.score(judged.judge.verdict, judged.dataset)
    count["done"] += 1
    count["acc"] += score.category
    count["ps"] += score.suggestion
    count["agg"] += score.aggregate
    count["unscored"] += judged.judge.verdict is None
    figures = {name: f"{100 * count[name] / count['done']:.1f}" for name in ("acc", "ps", "agg")}
    bar.set_postfix(figures | {"unscored": count["unscored"]}, refresh=False)
    bar.update()


def _report(judged: Sequence[OpenEnded], judge: Judge, count: Counter[str]) -> None:
    """Log how the judging went, and what to do about answers without a reply."""
    unscored = [record for record in judged if record.judge.unscored is not None]
    logger.info(
        f"judge {judge.identity.model}: {len(judged)} answers, {count['asked']} asked "
        f"about, {count['cached']} known, {len(unscored)} unscored"
    )
    if not judge.comparable:
        logger.warning(
            f"judged by {judge.identity.model}, which is no judge model: these numbers are "
            "comparable to no others"
        )
    if unscored:
        first = unscored[0]
        logger.warning(
            f"{len(unscored)} of {len(judged)} answers are unscored and count as 0; the first: "
            f"{first.dataset.value}, sample {first.id}: {first.judge.unscored}"
        )
    if missing := sum(record.judge.raw is None for record in unscored) - count["unworded"]:
        logger.error(f"{missing} answers got no reply from the judge: {NEXT_STEP}")
