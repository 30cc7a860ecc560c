"""What must stay true of it all: who imports whom, how tasks are named, whose words these are."""

from __future__ import annotations

import ast
import gzip
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from proactivebench_tasks import model_patches, task_yamls
from proactivebench_tasks.data import prepared
from proactivebench_tasks.model_patches import place
from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset

ROOT = Path(__file__).parents[1]
NAME = "proactivebench_tasks"
HEAVY = {"torch", "PIL", "numpy", "datasets", "lmms_eval", "transformers", "huggingface_hub"}

#: The house from the roof down: a module imports from its own room and from those below it.
ROOMS = (
    "__main__",
    "cli",
    "plugin",
    "hooks",
    "model_patches",
    "baselines",
    "rollout",
    "results",
    "conformance",
    "judge",
    "data",
    "transcripts",
    "environments",
    "demo",
    "protocol",
    "config",
    "files",
    "file_kinds",
    "errors",
)
#: Where images lie and how they are read knows nothing of what an episode is.
STORAGE = ("store", "hub", "hub_store", "image_cache", "zip_archive", "zip_index")


# Imports


def loaded_by(module: str) -> set[str]:
    """Top-level modules that importing a module loads in a fresh interpreter."""
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def modules() -> dict[str, Path]:
    """All modules of the package by their dotted names below it; packages by their own."""
    found = {}
    for folder, prefix in ((ROOT / NAME, ()), (ROOT / "model_patches", ("model_patches",))):
        for file in folder.rglob("*.py"):
            parts = (*prefix, *file.relative_to(folder).with_suffix("").parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    del found[""]  # the package itself, which holds its docstring
    return found


MODULES = modules()


def imports(file: Path) -> set[str]:
    """The modules of the package that a module imports, wherever in it: also inside of functions
    and for typing only."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith(f"{NAME}."):
                below = name.removeprefix(f"{NAME}.")
                found.add(below if below in MODULES else below.rpartition(".")[0])
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """What lies on a circle of imports: names that reach themselves."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for after in graph.get(todo.pop(), set()) - seen:
                seen.add(after)
                todo.append(after)
        return seen

    return [[name, *sorted(reached(name))] for name in graph if name in reached(name)]


def test_every_module_has_a_room() -> None:
    rooms = {name.partition(".")[0] for name in MODULES}
    assert rooms == set(ROOMS)


def test_the_order_of_the_rooms_is_the_documented_one() -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    order = page.partition("From the roof: ")[2].partition(". ")[0]
    assert ("__main__", *re.findall(r"`(\w+)`", order)) == ROOMS


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down(module: str) -> None:
    room = module.partition(".")[0]
    below = set(ROOMS[ROOMS.index(room) :])
    odd = {name for name in imports(MODULES[module]) if name.partition(".")[0] not in below}
    assert odd == set()


def test_no_circle_of_files_and_none_of_rooms() -> None:
    files = {name: imports(file) - {name} for name, file in MODULES.items()}
    assert circles(files) == []
    rooms: dict[str, set[str]] = {}
    for name, imported in files.items():
        room = name.partition(".")[0]
        rooms.setdefault(room, set()).update(i.partition(".")[0] for i in imported)
    assert circles({room: into - {room} for room, into in rooms.items()}) == []


def test_a_circle_would_be_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "b", "c"], ["c", "b", "c"]]
    assert {"errors", "protocol.samples"} <= imports(MODULES["environments.environment"])


@pytest.mark.parametrize("module", STORAGE)
def test_storage_knows_no_engine(module: str) -> None:
    rooms = {name.partition(".")[0] for name in imports(MODULES[f"data.{module}"])}
    assert rooms <= {"data", "protocol", "config", "files", "file_kinds", "errors"}


@pytest.mark.parametrize(
    "module",
    [
        "environments",
        "environments.episode",
        "protocol.samples",
        "protocol.builtin",
        "baselines.policies",
        "transcripts.transcript",
        "transcripts.reader",
        "results.statistics",
        "results.summary",
        "results.table",
        "errors",
    ],
)
def test_engine_and_records_load_nothing_heavy(module: str) -> None:
    assert not loaded_by(f"{NAME}.{module}") & HEAVY


def test_what_every_start_of_the_harness_loads_is_light() -> None:
    assert not loaded_by(f"{NAME}.plugin") & HEAVY


def test_command_loads_no_harness_and_no_torch() -> None:
    loaded = loaded_by(f"{NAME}.cli.app")
    assert not loaded & {"torch", "lmms_eval", "transformers"}


ENGINE = [name for name in MODULES if name == "protocol.samples" or "environments." in name]


@pytest.mark.parametrize("module", ENGINE)
def test_engine_reads_no_files_clocks_or_global_chance(module: str) -> None:
    nodes = list(ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))))
    imported = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    assert imported <= {"random", "re", "hashlib", "string", "math", "itertools", "functools"}
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    assert not named & {"open", "Path", "print", "input"}
    drawn = {
        n.attr for n in nodes if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "random"
    }
    assert drawn <= {"Random"}  # a source of its own, with a seed


def opened_without_encoding(source: str) -> list[int]:
    """The lines on which a text file is opened in whatever encoding the machine has."""
    found = []
    for call in (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        texts = [a.value for a in call.args if isinstance(a, ast.Constant)]
        is_binary = any(isinstance(t, str) and re.fullmatch(r"[rwax+]*b[rwax+]*", t) for t in texts)
        on_path = name in ("read_text", "write_text")
        is_file = on_path or (name == "open" and isinstance(call.func, ast.Name))
        is_path = name == "open" and ast.unparse(call.func).endswith(("path.open", "file.open"))
        given = any(keyword.arg == "encoding" for keyword in call.keywords)
        given |= on_path and len(call.args) == (1 if name == "read_text" else 2)
        if (is_file or is_path) and not is_binary and not given:
            found.append(call.lineno)
    return found


@pytest.mark.parametrize("module", sorted(MODULES))
def test_text_files_are_opened_with_an_encoding(module: str) -> None:
    assert opened_without_encoding(MODULES[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("open('a')", [1]),
        ("open('a', 'w')", [1]),
        ("path.open()", [1]),
        ("x.read_text()", [1]),
        ("x.write_text('a')", [1]),
        ("open('a', 'rb')", []),
        ("path.open('a+b')", []),
        ("open('a', encoding='utf-8')", []),
        ("x.read_text('utf-8')", []),
        ("x.write_text('a', 'utf-8')", []),
    ],
)
def test_an_opening_without_encoding_would_be_seen(source: str, lines: list[int]) -> None:
    assert opened_without_encoding(source) == lines


# Patches

NO_PATCHES = {"model_patches.place", "model_patches.wrappers"}  # which find and enter them
PATCHES = [name for name in MODULES if name.startswith("model_patches.") and name not in NO_PATCHES]


@pytest.mark.parametrize("module", PATCHES)
def test_a_patch_says_since_when_it_is_needed_and_when_it_can_go(module: str) -> None:
    said = ast.get_docstring(ast.parse(MODULES[module].read_text(encoding="utf-8"))) or ""
    text = " ".join(said.split())
    assert re.search(r"Needed since lmms-eval \d+\.\d+\.\d+\b", text)
    assert re.search(r"can go once", text)


@pytest.mark.parametrize("module", PATCHES)
def test_a_patch_finds_what_it_changes_or_says_that_it_is_gone(module: str) -> None:
    """A plain ``getattr`` of the harness would make a patch that just does nothing."""
    if module.rpartition(".")[2] in ("quiet", "input_media", "finish_reason"):
        return  # they patch loggers wherever they are, what 0.7.0 has not, and the openai client
    assert "place.find(" in MODULES[module].read_text(encoding="utf-8")


def test_the_page_says_where_each_patch_is_applied() -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    table = page.partition("| patch |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \|", table, re.MULTILINE)
    assert sorted(f"model_patches.{patch}" for patch, _ in rows) == sorted(PATCHES)
    for patch, appliers in rows:
        for by in re.findall(r"`(\w+)`", appliers.partition(", by ")[0]):
            file = MODULES.get(by) or MODULES[f"model_patches.{by}"]
            assert f"model_patches.{patch}" in imports(file), f"{by} does not apply {patch}"


def test_the_releases_of_the_harness_are_the_same_everywhere() -> None:
    ci = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    tried = re.findall(r'lmms-eval: \[?"([\d.]+)"', ci)
    assert (min(tried), max(tried)) == (place.OLDEST, place.NEWEST)
    limits = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    assert f"lmms-eval {place.OLDEST} to {place.NEWEST}," in limits


# Tasks


@pytest.fixture(scope="module")
def index() -> dict[str, dict[str, Any]]:
    """What lmms-eval finds in our folder: names, with their kinds and files."""
    from lmms_eval.tasks import TaskManager

    folder = str(Path(task_yamls.__file__).parent)
    return TaskManager(include_path=folder, include_defaults=False).task_index


def test_wildcard_names_leaf_tasks_of_the_two_modes_and_nothing_else(
    index: dict[str, dict[str, Any]],
) -> None:
    matching = {name for name in index if fnmatch(name, "proactivebench_*")}
    tasks = "|".join(dataset.task for dataset in Dataset)
    odd = {n for n in matching if not re.fullmatch(rf"proactivebench_(mcqa|oeg)_({tasks})", n)}
    assert odd == set()
    assert {index[name]["type"] for name in matching} == {"task"}


def test_no_name_of_the_harness_itself_is_like_ours() -> None:
    import lmms_eval

    files = Path(lmms_eval.__file__).parent.joinpath("tasks").rglob("*.yaml")
    assert not [path for path in files if b"proactivebench" in path.read_bytes()]


def test_every_dataset_has_its_multiple_choice_task(index: dict[str, dict[str, Any]]) -> None:
    names = {name for name in index if fnmatch(name, "proactivebench_mcqa_*")}
    assert names == {f"proactivebench_mcqa_{dataset.task}" for dataset in Dataset}


def test_task_names_are_given_once(index: dict[str, dict[str, Any]]) -> None:
    from lmms_eval.utils import load_yaml_config

    folder = Path(task_yamls.__file__).parent
    files = [path for path in sorted(folder.rglob("*.yaml")) if not path.name.startswith("_")]
    names = []
    for path in files:
        config = load_yaml_config(str(path), mode="simple")
        names += [config["task"]] if isinstance(config.get("task"), str) else [config["group"]]
    assert sorted(names) == sorted(set(names)) == sorted(index)


def test_every_task_is_made_of_our_functions(index: dict[str, dict[str, Any]]) -> None:
    from lmms_eval.utils import load_yaml_config

    for name, entry in index.items():
        if entry["type"] != "task":
            continue
        config = load_yaml_config(entry["yaml_path"], mode="simple")
        assert config["task"] == name
        assert config["output_type"] == "generate_until_agentic"
        assert config["metric_list"] and config["dataset_kwargs"]["data_files"]["test"]


def test_every_group_holds_what_is_there(index: dict[str, dict[str, Any]]) -> None:
    for name, entry in index.items():
        if entry["type"] == "group":
            group = yaml.safe_load(Path(entry["yaml_path"]).read_text())
            assert set(group["task"]) <= set(index), name


def test_functions_that_the_tasks_name_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "prepared", lambda *_: Path("rows.jsonl"))  # not made here
    missing = []
    for path in Path(task_yamls.__file__).parent.rglob("*.yaml"):
        for name in re.findall(r"!function (\S+)", path.read_text()):
            module, _, function = name.rpartition(".")
            if not hasattr(importlib.import_module(module), function):
                missing.append(f"{path.name}: {name}")
    assert missing == []


# Wording


def sentences(text: str) -> list[str]:
    """Pieces of a text that would be missed if they were copied: a sentence or a line each."""
    pieces = re.split(r"(?<=[.?:])\s+|\n", text)
    return [piece for piece in map(plain, pieces) if len(piece) >= 20]


def plain(text: str) -> str:
    """A text as it reads, whatever its case, spaces and quotes."""
    return re.sub(r"\W+", " ", text.lower()).strip()


def sources() -> Iterator[tuple[Path, str]]:
    """The repository's files that hold text, with what they say."""
    kinds = {
        ".py",
        ".md",
        ".yaml",
        ".yml",
        ".toml",
        ".txt",
        ".json",
        ".jsonl",
        ".gz",
        ".cfg",
        ".sh",
    }
    left_out = {".git", ".venv", "build", "dist", "results", "__pycache__"}
    folders = [ROOT, Path(task_yamls.__file__).parent, Path(model_patches.__file__).parent]
    for path in sorted({path.resolve() for folder in folders for path in folder.rglob("*")}):
        parts = path.parts[len(ROOT.parts) :]
        hidden = any(part in left_out or part.endswith((".egg-info", "_cache")) for part in parts)
        if hidden or path.suffix not in kinds or not path.is_file():
            continue
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
        yield path, plain(text)
        if path.suffix == ".py":  # a text that is spread over several literals, put together
            strings = (n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant))
            yield path, "\n".join(plain(value) for value in strings if isinstance(value, str))


@pytest.mark.network
def test_no_official_sentence_is_copied_into_the_repository(official: Protocol) -> None:
    texts = [official.options_intro, official.options_request]
    texts += [official.oeg_hint, official.judge_system, official.judge_user]
    for table in (official.prefix, official.hint, official.reference_question):
        texts += table.values()
    texts += official.chain_of_thought.values()
    wanted = {sentence for text in texts for sentence in sentences(text)}
    assert len(wanted) > 30  # or nothing is looked for
    copied = {
        (str(path.relative_to(ROOT)), sentence)
        for path, said in sources()
        for sentence in wanted
        if sentence in said
    }
    assert copied == set()


@pytest.mark.network
def test_sentence_that_is_spread_over_two_literals_is_found(official: Protocol) -> None:
    half, rest = official.oeg_hint[:30], official.oeg_hint[30:]
    code = f"HINT = (\n    {half!r}\n    {rest!r}\n)\n"
    strings = [n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant)]
    (sentence,) = sentences(official.oeg_hint)
    assert sentence in plain(strings[0])
