"""Command ``proactivebench replay``: does this engine decide as the published package did?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proactivebench_tasks import conformance

_SHOWN = 20  # differences printed


def replay(
    files: Annotated[
        list[Path], typer.Argument(help="Recorded episodes or verdicts: .jsonl or .jsonl.gz.")
    ],
    wording: Annotated[
        bool, typer.Option("--wording/--no-wording", help="Compare the prompts' hashes, too.")
    ] = True,
) -> None:
    """Replay recorded decisions and compare every recorded field. Exit code 1 if any differs.

    Example: proactivebench replay --no-wording episodes.jsonl.gz
    """
    differing = False
    for file in files:
        outcome = conformance.replay(file, wording)
        typer.echo(str(outcome))
        for difference in outcome.differences[:_SHOWN]:
            typer.echo(f"  {difference}")
        differing |= bool(outcome.differences)
    raise typer.Exit(1 if differing else 0)
