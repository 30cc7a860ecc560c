"""Command ``proactivebench cache``: what the cache folder holds, and how to clear it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.data.cache_parts import CachePart
from proactivebench_tasks.files import format_size

app = typer.Typer()


def lines() -> Iterator[str]:
    """The parts of the cache folder and their sizes."""
    yield f"{cache_dir()}"
    for part in CachePart:
        yield f"  {part.value:<12}{format_size(part.size()):>12}  {part.what}"


@app.callback()
def cache(context: typer.Context) -> None:
    """The cache folder: what it holds, how large that is, and how to clear it.

    Example: proactivebench cache
    """
    if context.invoked_subcommand is None:
        typer.echo("\n".join(lines()))


@app.command()
def clear(
    parts: Annotated[
        list[CachePart] | None,
        typer.Argument(help="Which; default: indexes images rows, which runs make again."),
    ] = None,
) -> None:
    """Delete parts of the cache folder. No run should be going on.

    Example: proactivebench cache clear downloads
    """
    for part in parts or [part for part in CachePart if part.is_made_again]:
        typer.echo(f"{part.value:<12}{format_size(part.clear()):>12} deleted")
