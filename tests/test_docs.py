"""What the pages say is there: links, names, files, tasks, variables, commands, the table."""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel

from proactivebench_tasks import config
from proactivebench_tasks.cli.app import app
from proactivebench_tasks.environments.episode import Stop
from proactivebench_tasks.environments.grading import Grade
from proactivebench_tasks.environments.lenient import Mismatch
from proactivebench_tasks.protocol.builtin import BUILTIN
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.task_yamls import generate
from proactivebench_tasks.transcripts.answer import Cost
from proactivebench_tasks.transcripts.open_ended import Judgement, OpenEnded
from proactivebench_tasks.transcripts.transcript import ExampleRecord, Transcript, TurnRecord
from proactivebench_tasks.transcripts.variant import Variant

ROOT = Path(__file__).parents[1]
PACKAGE = "proactivebench_tasks"
#: Folders of the package that lie at the top of the repository.
BESIDE = ("model_patches", "task_yamls")
TOP = (PACKAGE, *BESIDE, "tests", "docs", "examples", "benchmarks", ".ci", ".github")
#: Where a path in a page may begin, besides the page's own folder.
BEGINNINGS = (ROOT, ROOT / PACKAGE, ROOT / "task_yamls", ROOT / "benchmarks")
KINDS = (".py", ".md", ".yaml", ".yml", ".toml", ".gz", ".jsonl", ".cff", ".png")
TASKS = [dataset.task for dataset in Dataset]


def files() -> list[Path]:
    """The repository's files, without what is hidden, installed or built."""
    left_out = {"build", "dist", "results", "__pycache__"}
    found = []
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        hidden = any(p in left_out or p.startswith(".") or p.endswith("info") for p in parts[:-1])
        if not hidden and path.is_file():
            found.append(path)
    return found


FILES = files()
NAMES = {path.name for path in FILES}
PAGES = sorted(path for path in FILES if path.suffix == ".md")


def in_each_page(test: Any) -> Any:
    ids = [str(page.relative_to(ROOT)) for page in PAGES]
    return pytest.mark.parametrize("page", PAGES, ids=ids)(test)


# How a page is read.


@functools.cache
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@functools.cache
def prose(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^ *```.*?^ *```", "", text(page), flags=re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    """The code blocks of a page."""
    return re.findall(r"^ *```\w*\n(.*?)^ *```", text(page), flags=re.MULTILINE | re.DOTALL)


def spans(page: Path) -> list[str]:
    """What stands in backticks in a page."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def words(page: Path) -> Iterator[str]:
    """The words of a page's code, in blocks and in backticks, without what surrounds a path."""
    for code in [*blocks(page), *spans(page)]:
        for word in code.split():
            yield word.strip("'\"()[]{},;:")


# Links.


def anchors(page: Path) -> set[str]:
    """What a link may name in a page, as GitHub makes it of the headings."""
    count: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#{1,6} (.+)$", prose(page), flags=re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        found.add(f"{name}-{count[name]}" if count[name] else name)
        count[name] += 1
    return found


def broken_links(page: Path) -> list[str]:
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@in_each_page
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_broken_link_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `thing`, here\n[a](page.md#one-thing-here) [b](gone.md) [c](#gone)\n")
    assert broken_links(page) == ["gone.md", "#gone"]


# Names of the code.


def source(module: str) -> Path | None:
    """The file of a module, by its dotted name below the package."""
    parts = module.split(".") if module else []
    folder = ROOT if parts and parts[0] in BESIDE else ROOT / PACKAGE
    place = folder.joinpath(*parts)
    return next((f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()), None)


@functools.cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def defined(nodes: list[ast.stmt]) -> dict[str, ast.stmt]:
    """The names that statements define."""
    found: dict[str, ast.stmt] = {}
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
        elif isinstance(node, ast.Assign):
            found |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return found


@functools.cache
def classes() -> dict[str, list[ast.ClassDef]]:
    """All classes of the package, by name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for folder in (PACKAGE, *BESIDE):
        for file in (ROOT / folder).rglob("*.py"):
            for node in tree(file).body:
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(node)
    return found


def has_member(name: str, member: str) -> bool:
    """Whether a class of this name, or one that it inherits from, defines a member."""
    for node in classes().get(name, []):
        bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
        if member in defined(node.body) or any(has_member(base, member) for base in bases):
            return True
    return False


def is_there(name: str) -> bool:
    """Whether a dotted name below the package is a module, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if (file := source(".".join(parts[:length]))) is None:
            continue
        rest, known = parts[length:], defined(tree(file).body)
        if not rest:
            return True
        if "__getattr__" in known and rest[0].removeprefix("demo_") in TASKS:
            return len(rest) == 1
        if rest[0] not in known or len(rest) > 2:
            return False
        return len(rest) == 1 or has_member(rest[0], rest[1])
    return False


def names(page: Path) -> set[str]:
    """Dotted names of our code in a page, without the package's own name."""
    found = set(re.findall(rf"\b{PACKAGE}((?:\.[A-Za-z_]\w*)+)", text(page)))
    found = {name.removeprefix(".") for name in found}
    for span in spans(page):
        if re.fullmatch(r"[a-z]\w*(\.[A-Za-z_]\w*)+", span) and not span.endswith(KINDS):
            first = span.partition(".")[0]
            if source(first) is not None:
                found.add(span)
    return found


@in_each_page
def test_names_of_the_code_are_there(page: Path) -> None:
    assert [name for name in sorted(names(page)) if not is_there(name)] == []


@in_each_page
def test_members_of_our_classes_are_there(page: Path) -> None:
    found = {
        match
        for span in spans(page)
        if (match := re.fullmatch(r"([A-Z]\w*)\.(\w+)", span)) and match[1] in classes()
    }
    assert [match[0] for match in found if not has_member(match[1], match[2])] == []


def test_a_wrong_name_would_be_seen() -> None:
    right = ("config", "rollout.runner.run", "data.prepared.demo_rod", "model_patches.agentic_loop")
    assert [name for name in right if not is_there(name)] == []
    wrong = ("gone", "rollout.gone", "rollout.runner.gone", "environments.episode.Episode.gone")
    assert [name for name in wrong if is_there(name)] == []
    assert has_member("OpenEnded", "from_json") and not has_member("Episode", "gone")


# Files.


def is_ours(word: str) -> bool:
    """Whether a word looks like the path, or the name, of a file of this repository."""
    if re.search(r"[<>*$=|\\]", word) or word.startswith(("/", "~", "http", "hub:")):
        return False
    if word.split("/")[0] in TOP:
        return "/" in word and not word.endswith("/")
    return word.endswith((".py", ".md", ".yaml", ".toml", ".cff"))


def exists(word: str, page: Path) -> bool:
    if "/" not in word:
        return word in NAMES
    return any((beginning / word).exists() for beginning in (page.parent, *BEGINNINGS))


@in_each_page
def test_files_are_there(page: Path) -> None:
    ours = {word for word in words(page) if is_ours(word)}
    assert [word for word in sorted(ours) if not exists(word, page)] == []


# Tasks.


@functools.cache
def tasks() -> set[str]:
    """The names of all tasks and groups."""
    made = "\n".join(generate.files().values())
    return set(re.findall(r"^(?:task|group): (\S+)$", made, flags=re.MULTILINE))


def unknown_tasks(page: str) -> set[str]:
    """Words that look like names of tasks and are none."""
    other = ("proactivebench_tasks", "proactivebench-tasks", "proactivebench_baseline")
    unknown = set()
    pattern = r"\bproactive(?:bench|demo)[_-](?!\d)[\w-]*(?:<dataset>|\*)?"
    for word in re.findall(pattern, page):
        if word.startswith(other):
            continue
        if word.endswith("<dataset>"):
            known = any(word.replace("<dataset>", task) in tasks() for task in TASKS)
        elif word.endswith("*"):
            known = any(task.startswith(word[:-1]) for task in tasks())
        else:
            known = word in tasks()
        if not known:
            unknown.add(word)
    return unknown


@in_each_page
def test_tasks_and_groups_are_in_the_index(page: Path) -> None:
    assert unknown_tasks(text(page)) == set()


def test_a_wrong_task_would_be_seen() -> None:
    right = "proactivebench-hint, proactivebench_mcqa_<dataset> proactivebench_* proactivedemo"
    assert unknown_tasks(right) == set()
    assert unknown_tasks("proactivebench-hints") == {"proactivebench-hints"}


# Variables.


@in_each_page
def test_variables_are_ours(page: Path) -> None:
    found = set(re.findall(r"\bPROACTIVEBENCH_[A-Z_]*[A-Z]\b", text(page)))
    assert found - config.variables().keys() == set()


def test_table_of_variables_is_that_of_the_configuration() -> None:
    script = ROOT / "docs" / "make_configuration.py"
    spec = importlib.util.spec_from_file_location("make_configuration", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = text(module.PAGE)
    assert module.BEGIN in page and module.END in page
    assert config.documentation() in page, "run `python docs/make_configuration.py`"
    assert module.with_table(page) == page, "run `python docs/make_configuration.py`"


# Commands.


def unknown_commands(codes: list[str]) -> list[str]:
    """Commands of `proactivebench`, and options of them, that there are not."""
    root = typer.main.get_command(app)
    unknown = []
    for code in codes:
        joined = code.replace("\\\n", " ")
        for line in re.findall(r"(?:^|\s)proactivebench ([a-z][^\n#|`]*)", joined):
            name, *rest = line.split()
            command = getattr(root, "commands", {}).get(name)
            if command is None:
                unknown.append(name)
                continue
            if rest and rest[0] in getattr(command, "commands", {}):
                command = command.commands[rest.pop(0)]
            options = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
            asked = {word.strip("[].,;") for word in rest if word.startswith("--")}
            unknown += [f"{name} {option}" for option in sorted(asked - options)]
    return unknown


@in_each_page
def test_commands_and_their_options_are_there(page: Path) -> None:
    assert unknown_commands([*blocks(page), *spans(page)]) == []


def test_a_wrong_command_would_be_seen() -> None:
    assert (
        unknown_commands(["proactivebench protocol fetch", "proactivebench verify --quick"]) == []
    )
    wrong = ["proactivebench downlod", "A=1 proactivebench judge DIR --anew"]
    assert unknown_commands(wrong) == ["downlod", "judge --anew"]


# Records.

TRANSCRIPTS = ROOT / "docs" / "transcripts.md"


def example() -> Any:
    """The record that stands in the page on transcripts."""
    (found,) = re.findall(r"^```json\n(.*?)^```", text(TRANSCRIPTS), re.MULTILINE | re.DOTALL)
    return json.loads(found)


def test_record_in_the_page_is_read_and_written_as_it_stands() -> None:
    record = Transcript.from_dict(example())
    assert record.to_row() == example()
    episode = record.replay(record.own_sample(), BUILTIN)
    assert episode is not None and episode.summary().correct_prediction


PARTS = (Transcript, TurnRecord, ExampleRecord, OpenEnded, Judgement, Cost)


@pytest.mark.parametrize("part", PARTS)
def test_every_field_of_a_record_is_named_in_the_page(part: type[BaseModel]) -> None:
    fields = [field.alias or name for name, field in part.model_fields.items()]
    assert [name for name in fields if f"`{name}`" not in text(TRANSCRIPTS)] == []


def test_every_value_that_a_field_may_have_is_named_in_the_page() -> None:
    values = [each.value for kind in (Mismatch, Grade, Stop) for each in kind]
    assert [value for value in values if f"`{value}`" not in text(TRANSCRIPTS)] == []


def test_every_key_of_a_variant_is_named_in_the_page_on_studies() -> None:
    table = re.findall(r"^\| `(\w+)` \|", text(ROOT / "docs" / "studies.md"), re.MULTILINE)
    assert set(table) == set(Variant.model_fields)


# Words.


@in_each_page
def test_an_image_is_called_an_image(page: Path) -> None:
    lines = text(page).splitlines()
    assert [line for line in lines if re.search(r"\bpictures?\b", line, re.IGNORECASE)] == []
