"""Command ``proactivebench``: what is not an evaluation. Evaluations run through ``lmms-eval``."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer
from typer.core import TyperGroup

from proactivebench_tasks.cli import cache, chance, data, info, judge, protocol, replay, rescore
from proactivebench_tasks.errors import ProactiveBenchError


class _Commands(TyperGroup):
    """Our own errors are messages for the user, not tracebacks. Exit code 2."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except ProactiveBenchError as error:
            typer.echo(f"proactivebench: {error}", err=True)
            raise typer.Exit(2) from error


app = typer.Typer(cls=_Commands, no_args_is_help=True, add_completion=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(importlib.metadata.version("proactivebench-tasks"))
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """What is not an evaluation of ProactiveBench. Evaluations run through lmms-eval.

    Example: proactivebench info
    """


app.add_typer(protocol.app, name="protocol", invoke_without_command=True)
app.command()(replay.replay)
app.command()(judge.judge)
app.command()(rescore.rescore)
app.command()(chance.chance)
app.add_typer(cache.app, name="cache", invoke_without_command=True)
app.command()(data.download)
app.command()(data.verify)
app.command()(info.info)
app.command()(data.train_data)
