"""Command ``proactivebench``: what is not an evaluation. Evaluations run through ``lmms-eval``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from proactivebench_tasks.baselines import chance as chances
from proactivebench_tasks.cli import judge as judge_command
from proactivebench_tasks.cli.info import describe
from proactivebench_tasks.conformance import replay as replay_file
from proactivebench_tasks.data import download as downloading
from proactivebench_tasks.data import suite as sources
from proactivebench_tasks.data import verify as verifying
from proactivebench_tasks.data.hub import LICENCE, Hub
from proactivebench_tasks.data.hub_store import RemoteData, downloads
from proactivebench_tasks.data.store import Data, DataFolder
from proactivebench_tasks.data.suite import Source
from proactivebench_tasks.data.train_split import ROWS
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.errors import DataError, ProactiveBenchError
from proactivebench_tasks.protocol import protocol as protocols
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.samples import Dataset

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
protocol_app = typer.Typer(help="Official wording and sample ids: version, origin, id counts.")
app.add_typer(protocol_app, name="protocol", invoke_without_command=True)

_SHOWN = 20  # differences printed

Datasets = Annotated[
    str,
    typer.Option(help=f"Some of {','.join(each.task for each in Dataset)}; default: all."),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help=f"The data folder. Default: ${sources.DATA_DIR}, else the cache folder."),
]


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
    files: Annotated[
        list[Path], typer.Argument(help="Recorded episodes or verdicts: .jsonl or .jsonl.gz.")
    ],
    wording: Annotated[
        bool, typer.Option("--wording/--no-wording", help="Compare the prompts' hashes, too.")
    ] = True,
) -> None:
    """Replay recorded decisions and compare every recorded field. Exit code 1 if any differs."""
    differing = False
    for file in files:
        with _complaints():
            report = replay_file(file, wording)
        typer.echo(str(report))
        for difference in report.differences[:_SHOWN]:
            typer.echo(f"  {difference}")
        differing |= bool(report.differences)
    raise typer.Exit(1 if differing else 0)


app.command()(_complaints()(judge_command.judge))


@app.command()
def chance(
    demo: Annotated[bool, typer.Option(help="For the bundled demo data.")] = False,
) -> None:
    """What a uniform guesser reaches, exactly, from the rows alone: acc and ps of each variant."""
    source = Source.DEMO if demo else Source.OFFICIAL
    with _complaints():
        samples = {
            each: [row[2] for row in sources.read(sources.prepared(source, each), each)]
            for each in Dataset
        }
        levels = {
            mode: {
                each: chances.mean(chances.of_sample(each, one, mode) for one in samples[each])
                for each in Dataset
            }
            for mode in Mode
        }
    typer.echo(" " * 12 + "".join(f"{mode.value + ': acc':>16}{'ps':>7}" for mode in Mode))
    for each in Dataset:
        row = "".join(f"{levels[m][each].acc:>16.2f}{levels[m][each].ps:>7.3f}" for m in Mode)
        typer.echo(f"{each.task:<12}{row}")
    means = [chances.mean(levels[mode].values()) for mode in Mode]
    typer.echo(f"{'mean':<12}" + "".join(f"{m.acc:>16.2f}{m.ps:>7.3f}" for m in means))


@app.command()
def download(
    datasets: Datasets = "all",
    data_dir: DataDir = None,
) -> None:
    """Fetch rows and archives of some datasets. Resumable; run it again after any failure."""
    with _complaints():
        wanted = _datasets(datasets)
        folder = data_dir or _named_folder() or downloads()
        needed = downloading.download(Hub(), wanted, folder, protocols.get("official"))
    for file in needed:
        typer.echo(f"{file.size / 1e9:>10,.2f} GB  {folder / file.path}")
    typer.echo(f"The data are licensed {LICENCE} by their authors: no commercial use.")
    if data_dir is not None and folder != _named_folder():
        typer.echo(f"Set {sources.DATA_DIR}={folder.absolute()} to use them.")


@app.command()
def verify(
    datasets: Datasets = "all",
    data_dir: DataDir = None,
    quick: Annotated[
        bool, typer.Option(help="Only see whether the pictures are there; do not read them.")
    ] = False,
) -> None:
    """Check all samples of the evaluation and each picture they can show. Exit code 1 on faults."""
    with _complaints():
        wanted = _datasets(datasets)
        data = _data(data_dir)
        if isinstance(data, RemoteData) and not quick:
            if not downloads().is_dir():
                raise DataError(
                    "nothing was downloaded, so all pictures would be read from the hub. Run "
                    "`proactivebench download` before, or name a folder with --data-dir or "
                    f"{sources.DATA_DIR}; or add --quick, which only looks for the pictures' names"
                )
            data = DataFolder(downloads())
        official = protocols.get("official")
        reports = [verifying.verify(data, each, official, quick) for each in wanted]
        remarks = verifying.remarks(data)
    typer.echo(f"{'dataset':<30}{'samples':>14}{'pictures':>12}{'faults':>10}")
    for report in reports:
        samples = f"{report.samples}" + (f"/{report.expected}" if report.expected else "")
        typer.echo(
            f"{report.dataset.value:<30}{samples:>14}{report.pictures:>12,}{len(report.faults):>10,}"
        )
    for report in reports:
        for fault in report.faults:
            typer.echo(f"{report.dataset.task}: {fault}")
    for remark in remarks:
        typer.echo(f"note: {remark}")
    raise typer.Exit(1 if any(report.faults for report in reports) else 0)


@app.command()
def info() -> None:
    """Where data, protocol and caches are, how large, which versions, and what is missing."""
    with _complaints():
        for line in describe():
            typer.echo(line)


@app.command()
def train_data(
    data_dir: DataDir = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the split to this parquet file, too.")
    ] = None,
) -> None:
    """Get the train split, from parquet files in the data folder or from the hub, and show it."""
    with _complaints():
        table = sources.train(data_dir)
    typer.echo(f"{len(table):,} rows (the paper's release has {ROWS:,})")
    for name, feature in table.features.items():
        typer.echo(f"  {name:<20}{feature}")
    if output is not None:
        table.to_parquet(output)
        typer.echo(f"written to {output}")


def _datasets(names: str) -> list[Dataset]:
    if names == "all":
        return list(Dataset)
    return [Dataset.of_task(name.strip()) for name in names.split(",")]


def _named_folder() -> Path | None:
    named = os.environ.get(sources.DATA_DIR)
    return Path(named).expanduser() if named else None


def _data(folder: Path | None) -> Data:
    if folder is None:
        return Source.OFFICIAL.data
    if not folder.is_dir():
        raise DataError(f"--data-dir {folder} is no folder")
    return DataFolder(folder)
