"""Command ``proactivebench``: what is not an evaluation. Evaluations run through ``lmms-eval``."""

from __future__ import annotations

import typer
from typer.core import TyperGroup

from proactivebench_tasks.cli import chance, data, info, judge, protocol, replay
from proactivebench_tasks.errors import ProactiveBenchError


class _Commands(TyperGroup):
    """Our own errors are messages for the user, not tracebacks. Exit code 2."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except ProactiveBenchError as error:
            typer.echo(f"proactivebench: {error}", err=True)
            raise typer.Exit(2) from error


app = typer.Typer(cls=_Commands, help=__doc__, no_args_is_help=True, add_completion=False)
app.add_typer(protocol.app, name="protocol", invoke_without_command=True)
app.command()(replay.replay)
app.command()(judge.judge)
app.command()(chance.chance)
app.command()(data.download)
app.command()(data.verify)
app.command()(info.info)
app.command()(data.train_data)
