"""The environment variables: what each takes, what is refused and how, and what is never shown."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proactivebench_tasks import config, model_patches, task_yamls
from proactivebench_tasks.cli.app import app
from proactivebench_tasks.config import JudgeKind, Limit
from proactivebench_tasks.errors import ConfigError

PACKAGE = Path(config.__file__).parent
VARIABLES = config.variables()
PREFIX = "PROACTIVEBENCH_"

#: Values that each variable refuses.
BAD = {
    "CACHE": ["~nobody-has-this-name/cache"],
    "DATA_DIR": ["~nobody-has-this-name"],
    "OFFLINE": ["maybe", "2", "-1", "offline"],
    "FRAMES_GB": ["many", "-1", "nan", "inf", "5 GB"],
    "WINDOW": ["0", "-3", "1.5", "many", "64 episodes"],
    "MAX_FAILED": ["some", "-1", "-5%", "nan", "inf", "5%%", "%", "5 percent"],
    "SLOW_CALL": ["0", "-1", "nan", "inf", "soon", "1000001"],
    "LOCKSTEP": ["maybe", "2"],
    "JUDGE": ["oracle", "OpenAI", "hf,openai"],
    "JUDGE_CONCURRENCY": ["0", "-1", "1.5", "many"],
    "JUDGE_TIMEOUT": ["0", "-1", "nan", "inf", "soon"],
    "JUDGE_RETRIES": ["-1", "1.5", "often"],
    "JUDGE_OFFICIAL_PARSING": ["maybe", "2"],
    "JUDGE_MAX_TOKENS": ["0", "-1", "1.5", "many"],
    "JUDGE_BATCH_SIZE": ["0", "-1", "1.5", "many"],
}
#: Variables that take any text: what is wrong with one shows only when it is used.
ANY_TEXT = {"JUDGE_MODEL", "JUDGE_URL", "JUDGE_KEY", "JUDGE_DEVICE"}

GOOD: list[tuple[str, str, Any]] = [
    ("CACHE", "/some/where", Path("/some/where")),
    ("CACHE", "~/cache", Path.home() / "cache"),
    ("DATA_DIR", "relative", Path("relative")),
    ("OFFLINE", "1", True),
    ("OFFLINE", "0", False),
    ("FRAMES_GB", "0", 0.0),
    ("FRAMES_GB", "0.25", 0.25),
    ("WINDOW", "1", 1),
    ("MAX_FAILED", "0", Limit(0)),
    ("MAX_FAILED", "20", Limit(20)),
    ("MAX_FAILED", "2.5%", Limit(2.5, is_share=True)),
    ("SLOW_CALL", "0.01", 0.01),
    ("SLOW_CALL", "1000000", 1e6),
    ("LOCKSTEP", "1", True),
    *(("JUDGE", kind.value, kind) for kind in JudgeKind),
    ("JUDGE_MODEL", "mine", "mine"),
    ("JUDGE_URL", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
    ("JUDGE_CONCURRENCY", "1", 1),
    ("JUDGE_TIMEOUT", "0.5", 0.5),
    ("JUDGE_RETRIES", "0", 0),
    ("JUDGE_OFFICIAL_PARSING", "1", True),
    ("JUDGE_MAX_TOKENS", "1", 1),
    ("JUDGE_BATCH_SIZE", "1", 1),
    ("JUDGE_DEVICE", "cuda:1", "cuda:1"),
]

names = pytest.mark.parametrize("name", list(VARIABLES), ids=lambda name: name.removeprefix(PREFIX))


@pytest.fixture(autouse=True)
def nothing_else_is_set(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of ours is set, but for the test's own cache folder."""
    for name in list(os.environ):
        if name.upper().startswith(PREFIX) and name != config.CACHE:
            monkeypatch.delenv(name)


@pytest.fixture
def warnings(log: list[str]) -> list[str]:
    """What is warned of, as in a process that has not warned of anything yet."""
    config._warn_of_unknown.cache_clear()
    return log


def expected(name: str) -> str:
    extra = VARIABLES[name].json_schema_extra
    assert isinstance(extra, dict)
    return str(extra["expected"])


# What a variable is


@names
def test_variable_says_what_it_is_for_what_it_takes_and_what_its_default_is(name: str) -> None:
    field = VARIABLES[name]
    assert field.description and not field.description.endswith(".")
    assert expected(name)
    shown = config.default_of(field)
    assert shown and shown != "None" and "PydanticUndefined" not in shown


@names
def test_variable_is_the_field_of_the_same_name(name: str) -> None:
    assert name.removeprefix(PREFIX).lower() in type(config.get()).model_fields


def test_constants_are_names_of_variables() -> None:
    assert {config.CACHE, config.DATA_DIR, config.MAX_FAILED, config.JUDGE} <= set(VARIABLES)


def test_documentation_lists_every_variable_once() -> None:
    head, rule, *rows = config.documentation().splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert (head, set(rule)) == ("| variable | default | what it is |", set("|-"))
    assert cells == [
        [f"`{name}`", config.default_of(field), field.description]
        for name, field in VARIABLES.items()
    ]


def test_table_in_the_documentation_is_up_to_date() -> None:
    page = Path(__file__).parents[1] / "docs" / "configuration.md"
    stale = "run `python docs/make_configuration.py`"
    assert config.documentation() in page.read_text(encoding="utf-8"), stale


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("FRAMES_GB", "5"),
        ("SLOW_CALL", "600"),
        ("OFFLINE", "0"),
        ("JUDGE_MODEL", "Qwen/Qwen3-8B"),
        ("JUDGE_RETRIES", "6"),
        ("WINDOW", "8 batches, at least 64"),
    ],
)
def test_default_is_shown_as_a_user_would_write_it(name: str, shown: str) -> None:
    assert config.default_of(VARIABLES[PREFIX + name]) == shown


@pytest.mark.parametrize(("name", "value", "read"), GOOD)
def test_value_is_read(
    name: str, value: str, read: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    assert getattr(config.get(), name.lower()) == read


def test_key_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_JUDGE_KEY", "sk-secret")
    assert config.get().judge_key.get_secret_value() == "sk-secret"


@names
def test_empty_means_not_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(config.CACHE)
    unset = config.get()
    monkeypatch.setenv(name, "")
    assert config.get() == unset
    assert config.values() == {}


def test_cache_folder_is_the_users_if_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(config.CACHE)
    monkeypatch.setenv("XDG_CACHE_HOME", "/the/user/s")
    assert config.cache_dir().name == "proactivebench"
    assert config.get().cache is None


@pytest.mark.parametrize(
    ("text", "count", "allowed", "shown"),
    [("20", 1000, 20, "20"), ("0", 1000, 0, "0"), ("5%", 40, 2, "5%"), (" 2.5 % ", 40, 1, "2.5%")],
)
def test_limit_is_a_number_or_a_share(text: str, count: int, allowed: float, shown: str) -> None:
    limit = Limit.parse(text)
    assert (limit.of(count), str(limit)) == (allowed, shown)


# What is refused


def test_every_variable_has_bad_values_here_or_takes_any_text() -> None:
    assert {PREFIX + name for name in BAD.keys() | ANY_TEXT} == set(VARIABLES)
    assert not BAD.keys() & ANY_TEXT


@pytest.mark.parametrize(("name", "value"), [(name, v) for name, bad in BAD.items() for v in bad])
def test_bad_value_is_refused_with_name_value_and_what_is_expected(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = PREFIX + name
    monkeypatch.setenv(name, value)
    for _ in range(2):  # not only the first time
        with pytest.raises(ConfigError) as error:
            config.get()
        assert str(error.value) == f"{name} is {value!r}; expected {expected(name)}"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OFFLINE", "maybe", "1 or 0"),
        ("FRAMES_GB", "-1", "a number of gigabytes, 0 or more"),
        ("WINDOW", "0", "a number of episodes, 1 or more"),
        ("MAX_FAILED", "5%%", "a number of samples (20) or a share (5%)"),
        ("SLOW_CALL", "inf", "a number of seconds above 0, at most 1,000,000"),
        ("JUDGE", "oracle", "one of openai, hf, lexical, later"),
        ("JUDGE_RETRIES", "-1", "a whole number from 0 on"),
    ],
)
def test_what_is_expected_is_said_in_full(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigError) as error:
        config.get()
    assert str(error.value).endswith(f"; expected {said}")


def test_several_faults_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {"WINDOW": "0", "SLOW_CALL": "soon", "JUDGE": "oracle"}
    for name, value in bad.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigError) as error:
        config.get()
    for name, value in bad.items():
        said = f"{PREFIX}{name} is {value!r}; expected {expected(PREFIX + name)}"
        assert said in str(error.value)


def test_very_long_value_is_shown_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "9" * 100_000 + "x")
    with pytest.raises(ConfigError) as error:
        config.get()
    assert "PROACTIVEBENCH_WINDOW is '999" in str(error.value)
    assert len(str(error.value)) < 300


def test_bad_value_is_refused_whatever_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "0")
    with pytest.raises(ConfigError, match="PROACTIVEBENCH_WINDOW"):
        config.cache_dir()


@pytest.mark.parametrize(
    "command",
    [["info"], ["verify", "--quick"], ["download"], ["chance", "--demo"], ["protocol", "fetch"]],
    ids=" ".join,
)
def test_command_refuses_a_bad_value_before_it_says_anything(
    command: list[str], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(own_cache.iterdir())
    monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "0")
    outcome = CliRunner().invoke(app, command)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("proactivebench: PROACTIVEBENCH_WINDOW is '0'; expected a n")
    assert set(own_cache.iterdir()) == before


# Names


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PROACTIVEBENCH_WINDOWS", "did you mean PROACTIVEBENCH_WINDOW?"),
        ("PROACTIVEBENCH_MAXFAILED", "did you mean PROACTIVEBENCH_MAX_FAILED?"),
        ("PROACTIVEBENCH_DATADIR", "did you mean PROACTIVEBENCH_DATA_DIR?"),
        ("proactivebench_window", "did you mean PROACTIVEBENCH_WINDOW?"),
    ],
)
def test_unknown_variable_is_warned_of_once_with_a_close_match(
    name: str, hint: str, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "no value that any variable takes")
    for window in ("3", "4", "5"):  # the rest of the environment changes
        monkeypatch.setenv("PROACTIVEBENCH_WINDOW", window)
        assert config.get().window == int(window)
    (line,) = warnings
    assert line.startswith(f"WARNING {name} is no variable of this package and changes nothing")
    assert hint in line


def test_unknown_variable_that_is_like_none_gets_no_hint(
    warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_XYZZY_PLUGH_FROTZ_OZMOO", "1")
    config.get()
    (line,) = warnings
    assert "PROACTIVEBENCH_XYZZY" in line
    assert "did you mean" not in line


def test_unknown_variable_is_warned_of_also_where_another_is_refused(
    warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_WINDOWS", "3")
    monkeypatch.setenv("PROACTIVEBENCH_SLOW_CALL", "0")
    with pytest.raises(ConfigError):
        config.get()
    assert len(warnings) == 1


def test_known_variables_and_those_of_others_are_not_warned_of(
    warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value, _ in GOOD:
        monkeypatch.setenv(PREFIX + name, value)
    monkeypatch.setenv("PROACTIVEBENCHES", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "1")
    config.get()
    assert warnings == []


# Changes


def test_change_of_the_environment_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert config.get().window is None
    for window in (3, 4, 3):
        monkeypatch.setenv("PROACTIVEBENCH_WINDOW", str(window))
        assert config.get().window == window
    monkeypatch.delenv("PROACTIVEBENCH_WINDOW")
    assert config.get().window is None
    monkeypatch.setenv(config.CACHE, str(tmp_path / "other"))
    assert config.cache_dir() == tmp_path / "other"


def test_value_that_was_bad_and_is_put_right_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "0")
    with pytest.raises(ConfigError):
        config.get()
    monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "1")
    assert config.get().window == 1


def test_environment_is_read_once_for_as_long_as_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "3")
    assert config.get() is config.get()


def test_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        config.get().window = 3  # type: ignore[misc]


# What is never shown

SECRETS = [
    ("PROACTIVEBENCH_JUDGE_KEY", "sk-pw-secret"),
    ("PROACTIVEBENCH_JUDGE_URL", "http://me:pw-secret@host/v1"),
    ("PROACTIVEBENCH_JUDGE_URL", "me:pw-secret@host/v1"),
    ("PROACTIVEBENCH_JUDGE_URL", "https://host/v1?key=pw-secret"),
    ("PROACTIVEBENCH_JUDGE_URL", "host/v1?a=b&key=pw-secret"),
]


def test_values_are_those_of_the_variables_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "3")
    monkeypatch.setenv("PROACTIVEBENCH_JUDGE_URL", "http://127.0.0.1:8000/v1")
    monkeypatch.setenv("PROACTIVEBENCH_WINDOWS", "4")
    assert config.values() == {
        config.CACHE: os.environ[config.CACHE],
        "PROACTIVEBENCH_WINDOW": "3",
        "PROACTIVEBENCH_JUDGE_URL": "http://127.0.0.1:8000/v1",
    }


@pytest.mark.parametrize(("name", "value"), SECRETS)
def test_secret_is_in_no_list_of_values(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("PROACTIVEBENCH_OFFLINE", "1")
    assert config.values()[name] == "***"
    outcome = CliRunner().invoke(app, ["info"])
    assert outcome.exit_code == 0, outcome.output
    assert "secret" not in outcome.output
    assert [name, "***"] in [line.split() for line in outcome.output.splitlines()]


@pytest.mark.parametrize("value", [value for _, value in SECRETS if value.startswith(("h", "m"))])
@pytest.mark.parametrize("name", ["WINDOW", "JUDGE", "OFFLINE", "MAX_FAILED", "SLOW_CALL"])
def test_address_with_a_secret_that_is_put_in_the_wrong_variable_is_not_shown(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigError) as error:
        config.get()
    assert "secret" not in str(error.value)
    assert str(error.value).startswith(f"{PREFIX}{name} is '***'; expected ")
    assert error.value.__cause__ is None and error.value.__suppress_context__


def test_key_is_not_in_the_configurations_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_JUDGE_KEY", "sk-pw-secret")
    assert "secret" not in repr(config.get()) + str(config.get())


def test_key_is_in_no_error_about_another_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_JUDGE_KEY", "sk-pw-secret")
    monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "0")
    with pytest.raises(ConfigError) as error:
        config.get()
    assert "secret" not in str(error.value)


# Info


def test_info_shows_every_variable_with_its_value_or_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROACTIVEBENCH_WINDOW", "3")
    monkeypatch.setenv("PROACTIVEBENCH_OFFLINE", "1")
    values = {config.CACHE: os.environ[config.CACHE]}
    values |= {"PROACTIVEBENCH_WINDOW": "3", "PROACTIVEBENCH_OFFLINE": "1"}
    said = CliRunner().invoke(app, ["info"]).output
    _, section = said.split("\nvariables\n")
    assert [line.split(maxsplit=1) for line in section.splitlines()] == [
        [name, values.get(name, f"({config.default_of(field)})")]
        for name, field in VARIABLES.items()
    ]


# The one place


def reads(file: Path) -> list[str]:
    """What a module reads from the environment: names, or the code where it names none."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = []
    keys: dict[ast.AST, ast.expr | None] = {}
    for node in ast.walk(tree):  # what encloses a mention of the environment tells the name
        if isinstance(node, ast.Subscript):
            keys[node.value] = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            keys[node.func.value] = keys[node.func] = node.args[0] if node.args else None
        elif isinstance(node, ast.Compare):
            keys |= dict.fromkeys(node.comparators, node.left)
    for node in ast.walk(tree):
        is_environ = isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
        is_imported = isinstance(node, ast.ImportFrom) and node.module == "os"
        if is_environ:
            key = keys.get(node)
            is_named = isinstance(key, ast.Constant) and isinstance(key.value, str)
            found.append(key.value if is_named else f"? line {node.lineno}")  # type: ignore
        elif is_imported:
            hidden = {alias.name for alias in node.names} & {"environ", "getenv"}  # type: ignore
            found += [f"? line {node.lineno}" for _ in hidden]  # type: ignore
    return found


FOLDERS = [PACKAGE, *(Path(module.__file__ or "").parent for module in (model_patches, task_yamls))]
FILES = sorted({path.resolve() for folder in FOLDERS for path in folder.rglob("*.py")})


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE.parent)))
def test_no_other_module_reads_our_variables(file: Path) -> None:
    if file == Path(config.__file__).resolve():
        assert reads(file)
        return
    odd = [name for name in reads(file) if name.startswith((PREFIX, "?"))]
    assert odd == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("os.environ['PROACTIVEBENCH_A']", ["PROACTIVEBENCH_A"]),
        ("os.environ.get('PROACTIVEBENCH_A', '')", ["PROACTIVEBENCH_A"]),
        ("os.getenv('PROACTIVEBENCH_A')", ["PROACTIVEBENCH_A"]),
        ("'PROACTIVEBENCH_A' in os.environ", ["PROACTIVEBENCH_A"]),
        ("os.environ.get(config.CACHE)", ["? line 1"]),
        ("os.environ[NAME]", ["? line 1"]),
        ("dict(os.environ)", ["? line 1"]),
        ("from os import environ", ["? line 1"]),
        ("os.environ.get('HF_TOKEN')", ["HF_TOKEN"]),
    ],
)
def test_a_read_of_the_environment_would_be_seen(
    code: str, found: list[str], tmp_path: Path
) -> None:
    (tmp_path / "module.py").write_text(code)
    assert reads(tmp_path / "module.py") == found
