"""Commands about the official protocol: the wording and the sample ids."""

from __future__ import annotations

import typer

from proactivebench_tasks.protocol import published

app = typer.Typer()


@app.callback()
def protocol(context: typer.Context) -> None:
    """Official wording and sample ids: version, origin, number of ids of each dataset.

    Example: proactivebench protocol
    """
    if context.invoked_subcommand is not None:
        return
    official = published.load()
    typer.echo(f"version  {official.version}\norigin   {official.origin}\nsample ids")
    assert official.sample_ids is not None
    for dataset, ids in official.sample_ids.items():
        typer.echo(f"  {dataset.value:<28}{len(ids):>6}")
    typer.echo(f"  {'all':<28}{sum(map(len, official.sample_ids.values())):>6}")


@app.command()
def fetch() -> None:
    """Fetch the published package that holds the protocol, check it, and keep it in the cache.

    Example: proactivebench protocol fetch
    """
    typer.echo(published.fetch())
