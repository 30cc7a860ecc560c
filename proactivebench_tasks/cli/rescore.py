"""Command ``proactivebench rescore``: the numbers of a finished run, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def rescore(
    results: Annotated[
        list[Path],
        typer.Argument(help="Folders that lmms-eval wrote samples to, or samples files."),
    ],
) -> None:
    """Make the numbers of finished runs again from their stored answers, without a model.

    Writes rescored copies beside the run's own files, and says what is not as in these. Runs with
    --predict_only have no numbers before. Exit code 1 if a sample could not be scored.

    Example: proactivebench rescore results/
    """
    # Imported here, because most commands do not need it.
    from proactivebench_tasks.results import rescore as stored
    from proactivebench_tasks.results.table import render
    from proactivebench_tasks.transcripts.open_ended import OpenEnded
    from proactivebench_tasks.transcripts.transcript import Transcript

    left_out = 0
    for run in stored.runs(results, Transcript.KIND, OpenEnded.KIND):
        outcome = stored.rescore(run)
        left_out += outcome.left_out
        table = render(outcome.results)
        typer.echo("\n".join([str(outcome.path), "", table, "", *outcome.differences(), ""]))
    raise typer.Exit(1 if left_out else 0)
