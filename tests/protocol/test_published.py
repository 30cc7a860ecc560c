"""Reading the published package, from its wheel or installed, and what is said if it cannot be had.

The fast tests use a small wheel with words of their own and a stand-in for pip that comes first on
``PYTHONPATH``; the ones marked ``network`` use the real wheel.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from proactivebench_tasks.config import cache_dir
from proactivebench_tasks.errors import ProtocolError
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset

COMMAND = "`proactivebench protocol fetch`"

ENVIRONMENT = """
UNPARSABLE_BEFORE_3_12 = f"{", ".join(["a", f"{1 + 1}"])}"

class RealisticOcclusionDatasetEnvironment(Base):
    def __init__(
        self,
        row,
    ):
        reference_prompt = "rod reference"  # with a comment
        hint_prompt = "rod hint"

        cot_prompt = (
            "rod "
            'thought'
        )
        super().__init__(hint_prompt=hint_prompt, note=f"{", ".join("ab")}")

class OcclusionDataSetMM20Environment(Base):
    def __init__(self):
        pre_prompt = "vsod prefix"
        hint_prompt = "vsod \\"hint\\" (it's)"
class MVPNEnvironment(Base):
    def __init__(self):
        hint_prompt = "mvpn hint"
        cot_prompt = "mvpn thought"
class ImageNetCEnvironment(Base):
    def __init__(self):
        hint_prompt = "imagenetc hint"
class QuickDrawEnvironment(Base):
    def __init__(self):
        hint_prompt = "quickdraw hint"
class ChangeItEnvironment(Base):
    def __init__(self):
        pre_prompt = "changeit prefix"
        hint_prompt = "changeit hint"
class COCO2014Environment(Base):
    def __init__(self):
        if zoom:
            hint_prompt = "zoom hint"
        else:
            hint_prompt = "camera hint"
"""

DATA_UTILS = f"""
FILTER = {{
    {", ".join(f"{d.value!r}: [{i}, {i + 100}]" for i, d in enumerate(Dataset))}
}}

def other():
    user_prompt = "not this one"

def apply_multi_choice_template(question, options, short=True):
    user_prompt = question
    user_prompt += " intro\\n"
    user_prompt += "".join(options)
    if short:
        user_prompt += "request"
    return user_prompt
"""

SOURCES = {
    "environment.py": ENVIRONMENT,
    "data_utils.py": DATA_UTILS,
    "open_ended_gen.py": (
        'SYSTEM_PROMPT = "judge\\nsystem"\n\n'
        'USER_PROMPT = "{user_prompt}|{correct_answers}|{generated_answer}"\n'
        "def f():\n    USER_PROMPT = 'not this one'\n"
    ),
    "tests/oeg.py": 'def main():\n    state[\n        "prompt"\n    ] += " oeg hint"\n',
}

PIP = """
import os, pathlib, shutil, sys
with open(os.environ["PIP_CALLS"], "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
waiting = os.environ.get("PIP_WAITS_FOR")
while waiting and len(list(pathlib.Path(waiting).iterdir())) < 2:
    pass
if "PIP_SAYS" in os.environ:
    sys.exit(os.environ["PIP_SAYS"])
shutil.copy(os.environ["PIP_DELIVERS"], sys.argv[sys.argv.index("--dest") + 1])
"""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make_wheel(folder: Path, sources: Mapping[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / published.WHEEL
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in sources.items():
            archive.writestr(f"proactivebench/{name}", text)
    return path


def pin(monkeypatch: pytest.MonkeyPatch, wheel: Path, sources: Mapping[str, str]) -> None:
    monkeypatch.setattr(published, "WHEEL_SHA256", sha256(wheel.read_bytes()))
    hashes = {name: sha256(text.encode()) for name, text in sources.items()}
    monkeypatch.setattr(published, "FILE_SHA256", hashes)


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, wheel: Path, version: str) -> Path:
    """Lay the wheel's files out as an installed package that Python finds first."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    info = folder / f"proactivebench-{version}.dist-info"
    info.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: proactivebench\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata)
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    return folder / "proactivebench"


@pytest.fixture(scope="session")
def real_wheel() -> Path:
    return published.fetch()


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache folder, a network that is allowed, nothing loaded."""
    monkeypatch.setenv("PROACTIVEBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    monkeypatch.delenv("PROACTIVEBENCH_OFFLINE", raising=False)
    published.load.cache_clear()
    yield
    published.load.cache_clear()


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "_installed", lambda: None)


@pytest.fixture
def pip_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``python -m pip`` is a stand-in that delivers the small wheel; the file of its calls."""
    (tmp_path / "standin/pip").mkdir(parents=True)
    (tmp_path / "standin/pip/__init__.py").touch()
    (tmp_path / "standin/pip/__main__.py").write_text(PIP)
    wheel = make_wheel(tmp_path / "index", SOURCES)
    pin(monkeypatch, wheel, SOURCES)
    calls = tmp_path / "calls"
    calls.touch()
    ours = str(Path(published.__file__).parents[2])
    path = [str(tmp_path / "standin"), ours, os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    monkeypatch.setenv("PIP_CALLS", str(calls))
    monkeypatch.setenv("PIP_DELIVERS", str(wheel))
    return calls


def test_every_text_is_found_though_the_source_need_not_parse(
    not_installed: None, pip_calls: Path
) -> None:
    assert published.load() == Protocol(
        version="proactivebench-0.1.1",
        origin="no part of equality",
        options_intro=" intro\n",
        options_request="request",
        prefix={Dataset.VSOD: "vsod prefix", Dataset.CHANGEIT: "changeit prefix"},
        hint={
            "rod": "rod hint",
            "vsod": 'vsod "hint" (it\'s)',
            "mvpn": "mvpn hint",
            "imagenetc": "imagenetc hint",
            "quickdraw": "quickdraw hint",
            "changeit": "changeit hint",
            "coco": "camera hint",
            "coco_zoom": "zoom hint",
        },
        reference_question={Dataset.ROD: "rod reference"},
        chain_of_thought={Dataset.ROD: "rod thought", Dataset.MVPN: "mvpn thought"},
        oeg_hint=" oeg hint",
        judge_system="judge\nsystem",
        judge_user="{user_prompt}|{correct_answers}|{generated_answer}",
        sample_ids={d: frozenset({i, i + 100}) for i, d in enumerate(Dataset)},
    )


def test_missing_wheel_is_fetched_once_and_said(
    not_installed: None, pip_calls: Path, log: list[str]
) -> None:
    assert published.load() is published.load()
    (call,) = pip_calls.read_text().splitlines()
    assert "--no-deps" in call and call.endswith("proactivebench==0.1.1")
    assert [line.split()[0] for line in log] == ["INFO"]
    assert published.load().origin == str(cache_dir() / published.WHEEL)


def test_cached_wheel_is_used_offline(
    not_installed: None, pip_calls: Path, monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    published.fetch()
    monkeypatch.setenv("PROACTIVEBENCH_OFFLINE", "1")
    assert published.load().options_request == "request"
    assert len(pip_calls.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "PROACTIVEBENCH_OFFLINE"]
)
def test_offline_without_a_wheel_is_an_error_at_once(
    not_installed: None, pip_calls: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(ProtocolError, match=f"{variable} is set.*{COMMAND}"):
        published.load()
    assert pip_calls.read_text() == ""


def test_network_is_allowed_where_the_hub_s_client_allows_it(
    not_installed: None, pip_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own variable comes before the one that it takes over."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "1")
    published.load()
    assert pip_calls.read_text()


def test_damaged_wheel_is_said_deleted_and_fetched_again(
    not_installed: None, pip_calls: Path, log: list[str]
) -> None:
    wheel = published.fetch()
    wheel.write_bytes(wheel.read_bytes()[:-1])
    log.clear()
    assert published.load().options_request == "request"
    assert log[0].startswith(f"WARNING {wheel} is damaged")


def test_damaged_wheel_is_gone_even_if_pip_fails(
    pip_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = published.fetch()
    wheel.write_bytes(b"damaged")
    monkeypatch.setenv("PIP_SAYS", "ERROR: no route to the index")
    with pytest.raises(ProtocolError, match="no route to the index"):
        published.fetch()
    assert not wheel.exists()


def test_download_with_another_hash_is_refused_and_not_kept(
    pip_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "WHEEL_SHA256", "0" * 64)
    with pytest.raises(ProtocolError, match=f"expected SHA-256 0000.*{COMMAND}"):
        published.fetch()
    assert [path.name for path in cache_dir().iterdir()] in ([], [f"{published.WHEEL}.lock"])


def test_source_file_with_another_hash_is_refused(
    not_installed: None, pip_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(published.FILE_SHA256, "tests/oeg.py", "0" * 64)
    with pytest.raises(ProtocolError, match=r"proactivebench/tests/oeg\.py has SHA-256"):
        published.load()


@pytest.mark.parametrize(
    ("file", "old", "named"),
    [
        ("environment.py", "cot_prompt", "1 literal.* to cot_prompt in class Realistic.* found 0"),
        ("environment.py", "class MVPNEnvironment", "class MVPNEnvironment, found 0"),
        ("data_utils.py", "FILTER", "FILTER in the module, found 0"),
        ("data_utils.py", '"request"', "2 literal.*user_prompt.*found 1"),
    ],
)
def test_text_that_is_not_there_is_named(
    not_installed: None,
    pip_calls: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    file: str,
    old: str,
    named: str,
) -> None:
    sources = {**SOURCES, file: SOURCES[file].replace(old, "gone")}
    wheel = make_wheel(tmp_path / "other", sources)
    pin(monkeypatch, wheel, sources)
    monkeypatch.setenv("PIP_DELIVERS", str(wheel))
    with pytest.raises(ProtocolError, match=f"proactivebench/{file}.*{named}"):
        published.load()


def test_pip_failure_is_quoted(pip_calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_SAYS", "ERROR: no route to the index")
    with pytest.raises(ProtocolError, match=f"status 1: ERROR: no route to the index.*{COMMAND}"):
        published.fetch()


def test_missing_pip_is_said(pip_calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_SAYS", f"{sys.executable}: No module named pip")
    with pytest.raises(ProtocolError, match=f"has no pip.*ensurepip.*{COMMAND}"):
        published.fetch()


def test_hanging_pip_is_given_up(pip_calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "PIP_SECONDS", 0.2)
    monkeypatch.setenv("PIP_WAITS_FOR", str(cache_dir().parent / "index"))  # one file, for ever
    with pytest.raises(ProtocolError, match=f"did not finish within 0.2 s.*{COMMAND}"):
        published.fetch()


def test_unusable_cache_folder_is_an_error_of_ours(not_installed: None, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(ProtocolError, match=str(tmp_path / "cache")):
        published.load()


def test_two_processes_fetch_once(
    pip_calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    started.mkdir()
    monkeypatch.setenv("PIP_WAITS_FOR", str(started))  # the first holds on until both are there
    code = (
        "import os, pathlib; from proactivebench_tasks.protocol import published; "
        f"published.WHEEL_SHA256 = {published.WHEEL_SHA256!r}; "
        f"pathlib.Path({str(started)!r}, str(os.getpid())).touch(); print(published.fetch())"
    )
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].strip() for process in both] == [
        str(cache_dir() / published.WHEEL)
    ] * 2
    assert len(pip_calls.read_text().splitlines()) == 1


def test_installed_package_is_read_without_a_wheel(
    pip_calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "index" / published.WHEEL
    folder = install(monkeypatch, tmp_path / "site", wheel, "0.1.1")
    assert published.load().origin == str(folder)
    assert pip_calls.read_text() == ""


def test_other_installed_version_is_named_and_the_wheel_used(
    pip_calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    other = {**SOURCES, "tests/oeg.py": "changed"}
    install(monkeypatch, tmp_path / "site", make_wheel(tmp_path / "other", other), "0.2.0")
    assert published.load().oeg_hint == " oeg hint"
    assert log[0].startswith("WARNING") and "0.2.0" in log[0]


def test_cache_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("PROACTIVEBENCH_CACHE")
    assert cache_dir().name in {"proactivebench", "Cache"}


@pytest.mark.network
def test_real_wheel_and_real_installed_package_give_one_protocol_unimported(
    real_wheel: Path, official: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install(monkeypatch, tmp_path / "site", real_wheel, "0.1.1")
    installed = published.load()
    assert installed.origin == str(folder)
    published.load.cache_clear()
    monkeypatch.setattr(published, "_installed", lambda: None)
    monkeypatch.setenv("PROACTIVEBENCH_CACHE", str(real_wheel.parent))
    from_wheel = published.load()
    assert from_wheel.origin == str(real_wheel)
    assert installed == from_wheel == official
    assert "proactivebench" not in sys.modules
