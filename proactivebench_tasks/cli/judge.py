"""Command ``proactivebench judge``: judge the open-ended answers of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proactivebench_tasks.config import JudgeKind


def judge(
    results: Annotated[Path, typer.Argument(help="Folder that lmms-eval wrote samples to.")],
    again: Annotated[
        bool, typer.Option("--again", help="Ask anew about answers that have been judged.")
    ] = False,
    official_parsing: Annotated[
        bool,
        typer.Option(
            "--official-parsing",
            help="Score any text of the judge, also one that was cut off, as the published script.",
        ),
    ] = False,
) -> None:
    """Judge the open-ended answers of a finished run, and write judged results beside its own.

    The judge is the one that PROACTIVEBENCH_JUDGE names, else the one that the run was made with.
    Exit code 1 if an answer got no reply; run the command once more then.

    Example: PROACTIVEBENCH_JUDGE=openai PROACTIVEBENCH_JUDGE_URL=http://127.0.0.1:8000/v1
    proactivebench judge results/
    """
    # Imported here, because most commands do not need it.
    from proactivebench_tasks.judge import stage
    from proactivebench_tasks.judge.reply_cache import ReplyCache
    from proactivebench_tasks.judge.settings import JudgeSettings
    from proactivebench_tasks.results.judged import open_ended_runs
    from proactivebench_tasks.results.table import render

    JudgeSettings.resolve(
        JudgeKind.LATER.value
    )  # a wrong variable is told of before files are read
    runs = open_ended_runs(results)
    kinds = ["" if run.kind == JudgeKind.LATER.value else run.kind for run in runs]
    stage.begin()
    missing = 0
    for run, settings in zip(runs, map(JudgeSettings.resolve, kinds), strict=True):
        judge = stage.make_judge(settings)
        with ReplyCache() as cache:
            outcome = run.judge(judge, cache, again, official_parsing or settings.official_parsing)
        missing += run.missing
        typer.echo(f"{outcome.path}\n\n{render(outcome.results)}\n")
    raise typer.Exit(1 if missing else 0)
