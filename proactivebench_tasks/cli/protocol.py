"""Commands about the official protocol: the wording and the sample ids."""

from __future__ import annotations

import typer

from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.samples import Dataset

app = typer.Typer(help="Official wording and sample ids: version, origin, id counts.")


@app.callback()
def protocol(context: typer.Context) -> None:
    """Show the official protocol: version, origin, number of sample ids of each dataset."""
    if context.invoked_subcommand is not None:
        return
    official = published.load()
    typer.echo(f"version  {official.version}\norigin   {official.origin}\nsample ids")
    assert official.sample_ids is not None
    for dataset in Dataset:
        typer.echo(f"  {dataset.value:<28}{len(official.sample_ids[dataset]):>6}")
    typer.echo(f"  {'all':<28}{sum(map(len, official.sample_ids.values())):>6}")


@app.command()
def fetch() -> None:
    """Fetch the published package that holds the protocol, check it, and keep it in the cache."""
    typer.echo(published.fetch())
