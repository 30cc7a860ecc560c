"""Command ``proactivebench``: what is not an evaluation. Evaluations run through ``lmms-eval``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from proactivebench_tasks import protocol as protocols
from proactivebench_tasks import published
from proactivebench_tasks.errors import ProactiveBenchError
from proactivebench_tasks.replay import replay as replay_file
from proactivebench_tasks.samples import Dataset

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
protocol_app = typer.Typer(help="Official wording and sample ids: version, origin, id counts.")
app.add_typer(protocol_app, name="protocol", invoke_without_command=True)

_SHOWN = 20  # differences printed


@contextmanager
def _complaints() -> Iterator[None]:
    """Our own errors are messages for the user, not tracebacks. Exit code 2."""
    try:
        yield
    except ProactiveBenchError as error:
        typer.echo(f"proactivebench: {error}", err=True)
        raise typer.Exit(2) from error


@protocol_app.callback()
def protocol(context: typer.Context) -> None:
    """Show the official protocol: version, origin, number of sample ids of each dataset."""
    if context.invoked_subcommand is not None:
        return
    with _complaints():
        official = protocols.get("official")
    typer.echo(f"version  {official.version}\norigin   {official.origin}\nsample ids")
    assert official.sample_ids is not None
    for dataset in Dataset:
        typer.echo(f"  {dataset.value:<28}{len(official.sample_ids[dataset]):>6}")
    typer.echo(f"  {'all':<28}{sum(map(len, official.sample_ids.values())):>6}")


@protocol_app.command()
def fetch() -> None:
    """Fetch the published package that holds the protocol, check it, and keep it in the cache."""
    with _complaints():
        typer.echo(published.fetch())


@app.command()
def replay(
    files: Annotated[list[Path], typer.Argument(help="Recorded episodes: .jsonl or .jsonl.gz.")],
    wording: Annotated[
        bool, typer.Option("--wording/--no-wording", help="Compare the prompts' hashes, too.")
    ] = True,
) -> None:
    """Replay recorded episodes and compare every recorded field. Exit code 1 if any differs."""
    differing = False
    for file in files:
        with _complaints():
            report = replay_file(file, wording)
        typer.echo(f"{report.episodes} episodes, {len(report.differences)} differ")
        for difference in report.differences[:_SHOWN]:
            typer.echo(f"  {difference}")
        differing |= bool(report.differences)
    raise typer.Exit(1 if differing else 0)
