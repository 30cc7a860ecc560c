"""The judge stage: all open-ended answers of a task at once, between generation and metrics.

``JudgeFilter`` is the lmms-eval filter that the task YAMLs name. It never raises, because an
exception in a filter would end the run, and all that the model has generated would be lost.
Whatever goes wrong is written into the records as the reason why they have no verdict. The metrics
count these as ``unscored``, and ``proactivebench judge`` asks for the missing verdicts later.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

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

#: What this run was told of (see ``_say_once``).
_said: set[Hashable] = set()


class JudgeFilter:
    """From the texts of records to those of judged records, in the same order.

    It does not derive from lmms-eval's ``Filter``, which would import all of lmms-eval, and
    ``proactivebench judge`` does without.

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


def begin() -> None:
    """A run begins: it has a judge of its own, and is told again what holds for a whole run."""
    make_judge.cache_clear()
    _said.clear()


def _say_once(topic: Hashable, level: str, message: str) -> None:
    """Log what holds for a whole run, and not again after each of its tasks."""
    if topic not in _said:
        _said.add(topic)
        logger.log(level, message)


def require(kind: str) -> None:
    """Raise ``JudgeError`` or ``ConfigError`` unless answers of a task whose YAML asks for judge
    ``kind`` can be judged. Called for each task of a run, before anything is generated."""
    begin()
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
            _say_once(
                settings,
                "WARNING",
                "open-ended answers are not judged yet; they are kept only with --log_samples and "
                f"--output_path RESULTS_DIR. Then {NEXT_STEP}",
            )
            return [record.judged(Judgement(kind=JudgeKind.LATER.value)) for record in records]
        with ReplyCache() as cache:
            return run(records, make_judge(settings), cache, official=settings.official_parsing)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        _say_once(reason, "ERROR", f"judging failed, the answers are kept: {reason}. {NEXT_STEP}")
        return [
            record.judged(record.judge.model_copy(update={"unscored": reason}))
            for record in records
        ]


def run(
    records: Sequence[OpenEnded],
    judge: Judge,
    cache: ReplyCache,
    again: bool = False,
    official: bool = False,
) -> list[OpenEnded]:
    """The records with the judge's verdicts, in the order given. Equal questions are asked once.

    Questions that the cache has a reply to are asked only if ``again`` is set; the new reply then
    takes the place of the old. A reply is in the cache before the progress bar counts it, so a run
    that is killed loses only the requests that are under way. ``official`` scores every text of the
    judge, as the published script does, whether or not it is a whole reply (``Reply.fault``).

    When the judge cannot be asked any more, the records that have no reply yet say why. A record
    whose protocol is not installed is unscored, for only the protocol can word a question.
    """
    ended = ""
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
        replies = _replies(questions, judge, cache, again, official, count)
        try:
            for key, reply in replies:
                for i in positions.pop(key):
                    judged[i] = records[i].judged(_judgement(records[i], judge, reply))
                    _show(bar, count, judged[i])
        except JudgeError as error:
            ended = str(error)
        for i in sorted(i for left in positions.values() for i in left):
            not_asked = Reply(None, f"not asked: {ended}")
            judged[i] = records[i].judged(_judgement(records[i], judge, not_asked))
            _show(bar, count, judged[i])
    _report(judged, judge, count, ended)
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
    official: bool,
    count: Counter[str],
) -> Iterator[tuple[str, Reply]]:
    """Each question's key and the reply to it: first those from the cache, then the judge's."""
    due = []
    for key in questions:
        kept = None if again else cache.get(key)
        if kept and _counts(kept, official):
            count["cached"] += 1
            yield key, kept
            continue
        if kept:  # by an earlier version, or by a run that scores it as the published script does
            cache.drop(key, kept)
        due.append(key)
    if not due:
        return  # without asking the judge, which would load its model
    for i, reply in judge.ask([questions[key] for key in due]):
        count["asked"] += 1
        if reply.raw is not None and _counts(reply, official):
            reply = cache.put(due[i], reply.raw, reply.finish, replace=again)
        else:
            reply = Reply(None, reply.fault)
        yield due[i], reply


def _counts(reply: Reply, official: bool) -> bool:
    """Whether a verdict may be read from a reply. The published script reads one from any text."""
    return reply.fault is None or (official and bool((reply.raw or "").strip()))


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
        **({} if reply.finish is None else {"finish": reply.finish}),
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


def _report(judged: Sequence[OpenEnded], judge: Judge, count: Counter[str], ended: str) -> None:
    """Log how the judging went, and what to do about answers without a reply. ``ended``: why the
    judge could not be asked about all of them, if that is so."""
    unscored = [record for record in judged if record.judge.unscored is not None]
    logger.info(
        f"judge {judge.identity.model}: {len(judged)} answers, {count['asked']} asked "
        f"about, {count['cached']} known, {len(unscored)} unscored"
    )
    if not judge.comparable:
        _say_once(
            (judge, "not comparable"),
            "WARNING",
            f"judged by {judge.identity.model}, which is no judge model: these numbers are "
            "comparable to no others",
        )
    if ended:
        message = f"judging has ended: {ended}. What was judged is kept; {NEXT_STEP}"
        _say_once((judge, "ended"), "ERROR", message)
    elif unscored:
        first = unscored[0]
        missing = sum(record.judge.raw is None for record in unscored) - count["unworded"]
        logger.log(
            "ERROR" if missing else "WARNING",
            f"{len(unscored)} of {len(judged)} answers are unscored and count as 0; the first: "
            f"{first.dataset.value}, sample {first.id}: {first.judge.unscored}"
            + (f". {missing} got no reply from the judge: {NEXT_STEP}" if missing else ""),
        )
