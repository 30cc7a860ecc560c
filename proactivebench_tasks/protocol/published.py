"""The official protocol, read from the source of the published package ``proactivebench`` 0.1.1.

Nothing is imported or executed: the package needs torch, and its ``environment.py`` parses on
Python 3.12 and newer only. Four of its source files are read, from the installed package or from
its wheel, checked against pinned hashes, and the string constants are taken out of their text.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import io
import os
import random
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loguru import logger

from proactivebench_tasks import config
from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.errors import ProtocolError
from proactivebench_tasks.files import locked
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset

VERSION = "0.1.1"
WHEEL = f"proactivebench-{VERSION}-py3-none-any.whl"
WHEEL_SHA256 = "ff1833460195f58c72eafcbd6dde54731440b98202e7a5fe38b70c8feabcd576"
FILE_SHA256 = {
    "data_utils.py": "7ed1ce755a2bf25a8621eea30278977e85b143d7ffdadd4848123909e8962df2",
    "environment.py": "8bc6b8e53afeb2a476d7f1db7a7632f9c26025999559b7f7681cabe2f99ddf68",
    "open_ended_gen.py": "0535343aabc5ad784fad3552483b81ba4e0f24b05e25f84e017bc2a7ee31a6b3",
    "tests/oeg.py": "e7f66099339aad8587c38b6128fabd513f114b4145a6c51c1c309804a3cef664",
}
PIP_SECONDS = 300  # pip retries on its own; a hang must not hold the lock for ever

_CLASSES = {
    Dataset.ROD: "RealisticOcclusionDatasetEnvironment",
    Dataset.VSOD: "OcclusionDataSetMM20Environment",
    Dataset.MVPN: "MVPNEnvironment",
    Dataset.IMAGENETC: "ImageNetCEnvironment",
    Dataset.QUICKDRAW: "QuickDrawEnvironment",
    Dataset.CHANGEIT: "ChangeItEnvironment",
    Dataset.COCO: "COCO2014Environment",
}
#: The datasets of the published benchmark, over which its headline is the mean.
DATASETS = tuple(_CLASSES)
#: Of how many samples of a dataset the published open-ended runs are, at most.
OPEN_ENDED_SAMPLES = 100


@lru_cache(maxsize=1)
def load() -> Protocol:
    """The official protocol: from the installed package, else from the wheel in ``cache_dir()``.

    A missing wheel is fetched once, unless ``HF_HUB_OFFLINE`` or ``PROACTIVEBENCH_OFFLINE`` is set.
    Raises ``ProtocolError``, which names the command that fetches it, if it cannot be had.
    """
    sources, origin = _installed() or _wheel()
    return _protocol(sources, origin)


def is_here() -> bool:
    """Whether ``load`` can do without fetching anything."""
    try:
        return _installed() is not None or _intact(cache_dir() / WHEEL) is not None
    except OSError:
        return False


def fetch() -> Path:
    """Have pip download the wheel into ``cache_dir()`` unless an intact one is there; its path.

    Safe in several processes at once: one downloads, the others wait and use its file.
    """
    wheel = cache_dir() / WHEEL
    try:
        wheel.parent.mkdir(parents=True, exist_ok=True)
        with locked(wheel.with_name(f"{WHEEL}.lock")):
            if _intact(wheel) is not None:
                return wheel
            if wheel.exists():
                logger.warning(f"{wheel} is damaged (wrong SHA-256); deleting and fetching again")
                wheel.unlink()
            logger.info(f"fetching the official ProactiveBench wording ({WHEEL}) to {wheel}")
            with TemporaryDirectory(dir=wheel.parent) as folder:
                _pip_download(folder)
                download = Path(folder, WHEEL)
                if _intact(download) is None:
                    got = {path.name: _sha256(path.read_bytes()) for path in Path(folder).iterdir()}
                    raise _unavailable(f"pip brought {got}, expected SHA-256 {WHEEL_SHA256}")
                os.replace(download, wheel)
    except OSError as error:
        raise _unavailable(f"{wheel} cannot be written: {config.unwritable(error)}") from error
    return wheel


def open_ended_subset(count: int) -> list[int]:
    """Which of ``count`` rows that are evaluated the published open-ended runs take, by position.

    Source: ``tests/oeg.py`` of the published package, which shuffles the filtered rows.
    """
    order = list(range(count))
    random.Random(0).shuffle(order)
    return order[:OPEN_ENDED_SAMPLES]


def _pip_download(folder: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--disable-pip-version-check", "--python-version", "3.12"]
    command += ["--only-binary=:all:", "--dest", folder, f"proactivebench=={VERSION}"]
    try:
        run = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PIP_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise _unavailable(f"pip did not finish within {PIP_SECONDS} s") from error
    if "No module named pip" in run.stderr:
        raise _unavailable(f"{sys.executable} has no pip (`-m ensurepip` adds it)")
    if run.returncode != 0:
        said = " / ".join(run.stderr.strip().splitlines()[-3:])  # why it retried, then the errors
        raise _unavailable(f"pip failed with exit status {run.returncode}: {said}")


def _unavailable(reason: str) -> ProtocolError:
    return ProtocolError(
        f"cannot get the official wording (PyPI package proactivebench {VERSION}): {reason}. "
        "To fetch it, run `proactivebench protocol fetch` where there is network and pip; or copy "
        f"{WHEEL} into {cache_dir()}."
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _intact(wheel: Path) -> bytes | None:
    """The wheel's content if the file is there and is the published one."""
    try:
        data = wheel.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return data if _sha256(data) == WHEEL_SHA256 else None


def _installed() -> tuple[Mapping[str, str], str] | None:
    """Source texts and folder of the installed package; None if absent or another version."""
    try:
        package = importlib.metadata.distribution("proactivebench")
    except importlib.metadata.PackageNotFoundError:
        return None
    folder = Path(str(package.locate_file("proactivebench")))
    try:
        return _checked(lambda name: (folder / name).read_bytes(), folder), str(folder)
    except ProtocolError as error:
        logger.warning(
            f"the installed proactivebench {package.version} is not {VERSION} as published "
            f"({error}); using the wheel instead"
        )
        return None


def _wheel() -> tuple[Mapping[str, str], str]:
    """Source texts and path of the cached wheel."""
    path = cache_dir() / WHEEL
    try:
        data = _intact(path)
        if data is None:
            if variable := _forbidden():
                raise _unavailable(f"{variable} is set and there is no intact {path}")
            data = fetch().read_bytes()
    except OSError as error:
        raise _unavailable(f"{type(error).__name__}: {error}") from error
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return _checked(lambda name: archive.read(f"proactivebench/{name}"), path), str(path)


def _forbidden() -> str | None:
    """The variable that forbids to fetch anything, if one does."""
    if config.get().offline:
        return "PROACTIVEBENCH_OFFLINE"
    # Read here, not by huggingface_hub, which takes long to import and is not needed. Like there,
    # the second counts where the first is not set.
    told = {
        "HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE"),
        "TRANSFORMERS_OFFLINE": os.environ.get("TRANSFORMERS_OFFLINE"),
    }
    name, value = next(((name, value) for name, value in told.items() if value), ("", ""))
    return name if value.upper() in {"1", "ON", "YES", "TRUE"} else None


def _checked(read: Callable[[str], bytes], origin: Path) -> Mapping[str, str]:
    """The texts of the pinned files, each with its pinned hash."""
    texts = {}
    for name, expected in FILE_SHA256.items():
        try:
            data = read(name)
        except (OSError, KeyError) as error:
            raise ProtocolError(f"{origin}: cannot read proactivebench/{name}: {error}") from error
        if _sha256(data) != expected:
            raise ProtocolError(
                f"{origin}: proactivebench/{name} has SHA-256 {_sha256(data)}, expected {expected}"
            )
        texts[name] = data.decode("utf-8")
    return texts


def _protocol(sources: Mapping[str, str], origin: str) -> Protocol:
    def texts(name: str, dataset: Dataset, count: int = 1) -> list[str]:
        return _literals(sources, "environment.py", name, f"class {_CLASSES[dataset]}", count)

    template = "def apply_multi_choice_template"
    intro, request = _literals(sources, "data_utils.py", "user_prompt", template, 2)
    zoom_hint, camera_hint = texts("hint_prompt", Dataset.COCO, 2)
    hints = {d.task: texts("hint_prompt", d)[0] for d in DATASETS if d is not Dataset.COCO}
    (ids,) = _literals(sources, "data_utils.py", "FILTER", None, 1)
    (judge_system,) = _literals(sources, "open_ended_gen.py", "SYSTEM_PROMPT", None, 1)
    (judge_user,) = _literals(sources, "open_ended_gen.py", "USER_PROMPT", None, 1)
    (oeg_hint,) = _literals(sources, "tests/oeg.py", r'state\[\s*"prompt"\s*\]', "def main", 1)
    return Protocol(
        version=f"proactivebench-{VERSION}",
        origin=origin,
        options_intro=intro,
        options_request=request,
        prefix={d: texts("pre_prompt", d)[0] for d in (Dataset.VSOD, Dataset.CHANGEIT)},
        hint=hints | {"coco": camera_hint, "coco_zoom": zoom_hint},
        reference_question={Dataset.ROD: texts("reference_prompt", Dataset.ROD)[0]},
        chain_of_thought={d: texts("cot_prompt", d)[0] for d in (Dataset.ROD, Dataset.MVPN)},
        oeg_hint=oeg_hint,
        judge_system=judge_system,
        judge_user=judge_user,
        sample_ids={d: frozenset(ids[d.value]) for d in DATASETS},
    )


def _literals(
    sources: Mapping[str, str], file: str, target: str, scope: str | None, count: int
) -> list[Any]:
    """The literals that are assigned (``=`` or ``+=``) to ``target``, in source order.

    ``scope`` is the start of a top-level statement whose block is searched; None means top level.
    Text is matched, not a syntax tree, because the file as a whole may not parse on this Python.
    """
    source, indent = sources[file], ""
    if scope is not None:
        block = re.search(rf"^{scope}\b.*\n(?:[ )].*\n|\n)*", source, re.MULTILINE)
        source, indent = (block.group() if block else ""), " +"
    found = []
    for match in re.finditer(rf"^{indent}{target} \+?= ", source, re.MULTILINE):
        lines = source[match.end() :].splitlines()
        for end in range(1, len(lines) + 1):  # a literal may span lines: take as many as it needs
            try:
                found.append(ast.literal_eval("\n".join(lines[:end])))
            except SyntaxError:
                continue
            except ValueError:  # complete, but no literal
                pass
            break
    if len(found) != count:
        raise ProtocolError(
            f"proactivebench/{file}: expected {count} literal(s) assigned to {target} in "
            f"{scope or 'the module'}, found {len(found)}"
        )
    return found
