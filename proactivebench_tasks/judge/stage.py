"""The judge stage: all open-ended answers of a task at once, between generation and metrics.

``JudgeFilter`` is the lmms-eval filter that the task YAMLs name. It never raises: an exception here
would end the run and take its generations along. What goes wrong is a reason in the record, counted
as ``unscored``, and ``proactivebench judge`` makes up for it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.api.filter import Filter
from loguru import logger
from tqdm import tqdm

from proactivebench_tasks.judge import verdict as verdicts
from proactivebench_tasks.judge.base import Judge, Reply, make
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.judge.reply_cache import VerdictCache
from proactivebench_tasks.judge.settings import JudgeSettings, Kind
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.transcripts.transcript import dumps

Record = dict[str, Any]

#: What a record holds of a judge beside its identity.
_SAID = ("comparable", "raw", "verdict", "unscored")

#: What to do about answers without a verdict.
MAKE_UP = "`proactivebench judge RESULTS_DIR` asks for what is missing"


class JudgeFilter(Filter):
    """Transcripts in, transcripts with verdicts out, in the same order."""

    def apply(self, resps: Iterable[str], docs: object) -> list[str]:
        texts = list(resps)
        due: dict[int, Record] = {}
        for i, text in enumerate(texts):
            record = open_ended(text)
            if record is not None and record["error"] is None:
                due[i] = record
        for i, judged in zip(due, settle(list(due.values())), strict=True):
            texts[i] = dumps(judged)
        return texts


def require(kind: str) -> None:
    """``JudgeError`` unless a judge is configured for a task whose YAML asks for ``kind``."""
    if JudgeSettings.resolve(kind).kind is not Kind.LATER:
        with VerdictCache():
            pass  # it can be written to


def open_ended(text: str) -> Record | None:
    """The record of an open-ended sample, or ``None`` if the text is none."""
    try:
        record = json.loads(text)
    except ValueError:
        return None
    whole = isinstance(record, dict) and {"valid_answers", "judge", "error"} <= record.keys()
    return record if whole else None


def said_by(record: Record) -> dict[str, Any]:
    """The identity of the judge that a record's verdict is from."""
    return {k: v for k, v in record["judge"].items() if k not in _SAID}


def settle(records: Sequence[Record]) -> list[Record]:
    """Judge by the judge that the environment or else the records ask for. Never raises."""
    if not records:
        return []
    try:
        settings = JudgeSettings.resolve(records[0]["judge"]["kind"])
        if settings.kind is Kind.LATER:
            logger.warning(
                f"{len(records)} answers generated, none judged yet; they are kept only with "
                f"--log_samples and --output_path RESULTS_DIR. Then {MAKE_UP}"
            )
            return [{**r, "judge": {"kind": Kind.LATER.value}} for r in records]
        with VerdictCache() as cache:
            return run(records, make(settings), cache)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        logger.error(f"judging failed, the answers are kept: {reason}. {MAKE_UP}")
        return [{**r, "judge": {**r["judge"], "unscored": reason}} for r in records]


def run(
    records: Sequence[Record], judge: Judge, cache: VerdictCache, again: bool = False
) -> list[Record]:
    """The records with verdicts, in their order. Equal questions are asked once.

    ``again`` asks anew what the cache knows. Each reply is in the cache when its bar moves on.
    """
    questions: dict[str, Question] = {}
    positions: dict[str, list[int]] = {}
    for i, record in enumerate(records):
        question = Question.of(record)
        key = question.key(judge.identity)
        questions[key] = question
        positions.setdefault(key, []).append(i)
    judged = list(records)
    count: Counter[str] = Counter()
    rank = int(os.environ.get("RANK", 0))
    with tqdm(total=len(records), desc="judging", unit="answer", disable=rank != 0) as bar:
        for key, reply in _replies(questions, judge, cache, again, count):
            for i in positions[key]:
                judged[i] = _judged(records[i], judge, reply)
                _show(bar, count, judged[i])
    _report(judged, judge, count)
    return judged


def _replies(
    questions: Mapping[str, Question],
    judge: Judge,
    cache: VerdictCache,
    again: bool,
    count: Counter[str],
) -> Iterator[tuple[str, Reply]]:
    """The reply to each question by its key: those at hand, then those that are asked for."""
    due = []
    for key in questions:
        if not again and (raw := cache.get(key)) is not None:
            count["cached"] += 1
            yield key, Reply(raw)
        else:
            due.append(key)
    if not due:
        return  # the judge need not even be loaded
    for i, reply in judge.ask([questions[key] for key in due]):
        count["asked"] += 1
        if reply.raw is not None:
            reply = Reply(cache.put(due[i], reply.raw, replace=again))
        yield due[i], reply


def _judged(record: Record, judge: Judge, reply: Reply) -> Record:
    """The record with all that the judge said, and why it counts for nothing if it does."""
    verdict, unscored = None, reply.error
    if reply.raw is not None:
        try:
            verdict = verdicts.marks(reply.raw, record["valid_answers"])
        except verdicts.Unusable as unusable:
            unscored = str(unusable)
    said = {
        **judge.identity,
        "comparable": judge.comparable,
        "raw": reply.raw,
        "verdict": verdict,
        "unscored": unscored,
    }
    return {**record, "judge": said}


def _show(bar: Any, count: Counter[str], judged: Record) -> None:
    score = verdicts.score(judged["judge"]["verdict"], Dataset.parse(judged["dataset"]))
    count["done"] += 1
    count["acc"] += score.category
    count["ps"] += score.suggestion
    count["agg"] += score.aggregate
    count["unscored"] += judged["judge"]["verdict"] is None
    figures = {name: f"{100 * count[name] / count['done']:.1f}" for name in ("acc", "ps", "agg")}
    bar.set_postfix(figures | {"unscored": count["unscored"]}, refresh=False)
    bar.update()


def _report(judged: Sequence[Record], judge: Judge, count: Counter[str]) -> None:
    unscored = [r for r in judged if r["judge"]["unscored"] is not None]
    logger.info(
        f"judge {judge.identity['model']}: {len(judged)} answers, {count['asked']} asked "
        f"about, {count['cached']} known, {len(unscored)} unscored"
    )
    if not judge.comparable:
        logger.warning(
            f"judged by {judge.identity['model']}, no judge model: these numbers compare to nothing"
        )
    if unscored:
        first = unscored[0]
        logger.warning(
            f"{len(unscored)} of {len(judged)} answers are unscored and count as 0; the first: "
            f"{first['dataset']}, sample {first['id']}: {first['judge']['unscored']}"
        )
    if missing := sum(r["judge"]["raw"] is None for r in unscored):
        logger.error(f"{missing} answers got no reply from the judge: {MAKE_UP}")
