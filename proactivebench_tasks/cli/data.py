"""Commands about the official data: fetch it, check it, look at the train split."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from proactivebench_tasks import config
from proactivebench_tasks.data import download as downloading
from proactivebench_tasks.data import train_split
from proactivebench_tasks.data import verify as verifying
from proactivebench_tasks.data.hub import LICENCE, Hub
from proactivebench_tasks.data.hub_store import downloads
from proactivebench_tasks.data.store import LocalStore, Store
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.errors import DataError
from proactivebench_tasks.files import format_size
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.samples import Dataset

_EXAMPLES = 3  # images that a line names

Datasets = Annotated[
    str,
    typer.Option(help=f"Some of {','.join(each.task for each in Dataset)}; default: all."),
]


def _data_folder(otherwise: str) -> Any:
    return typer.Option(help=f"The data folder. Default: ${config.DATA_DIR}, else {otherwise}.")


def download(
    datasets: Datasets = "all",
    data_dir: Annotated[Path | None, _data_folder("the cache folder")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be fetched, and how large.")
    ] = False,
) -> None:
    """Fetch rows and archives of some datasets. Resumable; run it again after any failure.

    Example: proactivebench download --datasets rod,quickdraw --dry-run
    """
    named = config.get().data_dir
    folder = data_dir or named or downloads()
    chosen = _datasets(datasets)
    if dry_run:
        wanted = downloading.plan(Hub(), chosen, folder, published.load())
        for each in wanted:
            typer.echo(
                f"{format_size(each.left):>13} of {format_size(each.file.size):>13}  {each.target}"
            )
        total, free = sum(each.left for each in wanted), downloading.free_space(folder)
        typer.echo(
            f"{format_size(total):>13} to fetch in all, beside the rows of "
            f"{', '.join(each.task for each in chosen)}; {format_size(free)} free"
        )
        return
    needed = downloading.download(Hub(), chosen, folder, published.load())
    for file in needed:
        typer.echo(f"{format_size(file.size):>13}  {folder / file.path}")
    typer.echo(f"The data are licensed {LICENCE} by their authors: no commercial use.")
    if data_dir is not None and folder != named:
        typer.echo(f"Set {config.DATA_DIR}={folder.absolute()} to use them.")


def verify(
    datasets: Datasets = "all",
    data_dir: Annotated[
        Path | None, _data_folder("what is on this disk, and with --quick the hub, too")
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="Only see whether the images are there; do not read them.")
    ] = False,
) -> None:
    """Check all samples of the evaluation and each image they can show. Exit code 1 on faults.

    Example: proactivebench verify --datasets rod --quick
    """
    wanted = _datasets(datasets)
    store = _store(data_dir)
    if not quick:
        store = store.on_disk()
    official = published.load()
    found = [verifying.verify(store, each, official, quick) for each in wanted]
    remarks = verifying.remarks(store)
    typer.echo(f"{'dataset':<30}{'samples':>14}{'images':>12}{'faults':>10}")
    for each in found:
        samples = f"{each.samples}" + (f"/{each.expected}" if each.expected else "")
        typer.echo(
            f"{each.dataset.value:<30}{samples:>14}{each.images:>12,}{len(each.faults):>10,}"
        )
    for each in found:
        for fault in each.faults:
            typer.echo(f"{each.dataset.task}: {fault}")
    for each in found:
        for oddity, images in each.odd.items():
            shown = ", ".join(images[:_EXAMPLES]) + (", ..." if len(images) > _EXAMPLES else "")
            count = f"{len(images):,} image" + ("s" if len(images) > 1 else "")
            typer.echo(f"{each.dataset.task}, odd: {oddity.value}: {count}, {shown}")
    if any(each.odd for each in found):
        typer.echo("odd images are shown as in the published evaluation, and are no faults")
    for remark in remarks:
        if not any(remark in fault for each in found for fault in each.faults):
            typer.echo(f"note: {remark}")
    raise typer.Exit(1 if any(each.faults for each in found) else 0)


def train_data(
    data_dir: Annotated[Path | None, _data_folder("the Hugging Face cache or the hub")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the split to this parquet file, too.")
    ] = None,
) -> None:
    """Get the train split, from parquet files in the data folder or from the hub, and show it.

    Example: proactivebench train-data --output train.parquet
    """
    table = train_split.load(data_dir)
    typer.echo(f"{len(table):,} rows (the paper's release has {train_split.ROWS:,})")
    for name, feature in table.features.items():
        typer.echo(f"  {name:<20}{feature}")
    if output is not None:
        table.to_parquet(output)
        typer.echo(f"written to {output}")


def _datasets(names: str) -> list[Dataset]:
    if names == "all":
        return list(Dataset)
    return [Dataset.of_task(name.strip()) for name in names.split(",")]


def _store(folder: Path | None) -> Store:
    if folder is None:
        return Suite.OFFICIAL.store
    if not folder.is_dir():
        raise DataError(f"--data-dir {folder} is no folder")
    return LocalStore(folder)
