"""Train split: the rows that the benchmark's authors offer for training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.file_download import repo_folder_name

from proactivebench_tasks import config
from proactivebench_tasks.data.hub import REPO, hub_errors
from proactivebench_tasks.errors import DataError

#: The columns that every copy of the split has.
COLUMNS = (
    "prompt",
    "ground_truth",
    "proactive_actions",
    "options",
    "qwen_conf",
    "qwen_delta",
    "llava_conf",
    "llava_delta",
    "images",
)
#: Rows of the paper's release.
ROWS = 26_879

_COMMAND = f"hf download {REPO} --repo-type dataset --include 'data/*' --local-dir"
_ELSEWHERE = (
    f"Where there is network, run `{_COMMAND} DIR`; then `proactivebench train-data --data-dir DIR`"
)
_SECONDS = 10.0  # that the hub may take to say that it is there


def load(data_dir: Path | None = None) -> Any:
    """The split as a ``datasets.Dataset`` with at least ``COLUMNS``.

    It is read from the files ``train*.parquet`` in or beside ``data_dir``. Without ``data_dir`` it
    is read from those in or beside the folder that ``PROACTIVEBENCH_DATA_DIR`` names, from the
    Hugging Face cache, or from the hub. Raises ``DataError`` when the split cannot be had or lacks
    a column.
    """
    folder = data_dir or config.get().data_dir
    files = _parquet(folder) if folder else []
    if not files and data_dir is None and not (files := _cached()):
        with hub_errors("the train split", _ELSEWHERE):
            # Asked first, because datasets asks for half a minute before it gives up.
            huggingface_hub.HfApi().dataset_info(REPO, timeout=_SECONDS)

    from datasets import load_dataset  # takes a second to import

    if files:
        where = str(files[0].parent)
        try:
            table = load_dataset("parquet", data_files=list(map(str, files)), split="train")
        except Exception as error:  # pyarrow's and datasets' errors have no common base
            raise DataError(f"the train split in {where} cannot be read: {error}") from error
    elif data_dir is not None:
        raise DataError(
            f"there is no train*.parquet in {folder}, its folder `data`, or beside them; "
            f"`{_COMMAND} {folder}` fetches them"
        )
    else:
        where = f"hub:{REPO}"
        with hub_errors("the train split", _ELSEWHERE):
            try:
                table = load_dataset(REPO, split="train")
            except ValueError as error:  # how datasets says that its cache has nothing
                raise OSError(str(error)) from error
    if lacking := [name for name in COLUMNS if name not in table.column_names]:
        raise DataError(
            f"the train split of {where} lacks the column(s) {', '.join(lacking)}; it has "
            f"{', '.join(table.column_names)}"
        )
    return table


def _cached() -> list[Path]:
    """The train split's files in the Hugging Face cache, if it has them. Nobody is asked."""
    repository = Path(constants.HF_HUB_CACHE, repo_folder_name(repo_id=REPO, repo_type="dataset"))
    for snapshot in repository.glob("snapshots/*"):
        if found := sorted(snapshot.glob("data/train*.parquet")):
            return found
    return []


def _parquet(folder: Path) -> list[Path]:
    """The train split's files in or beside a data folder, from the first place that has some.

    On the hub they are in the folder ``data``, beside the data folder, which is ``test``.
    """
    for place in (folder, folder / "data", folder.parent / "data", folder.parent):
        if found := sorted(place.glob("train*.parquet")):
            return found
    return []
