"""Which judge the environment and a task ask for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from proactivebench_tasks.config import JudgeKind
from proactivebench_tasks.errors import ConfigError, JudgeError
from proactivebench_tasks.judge.settings import JudgeSettings

URL = "http://127.0.0.1:8000/v1"
SERVER = {"PROACTIVEBENCH_JUDGE": "openai", "PROACTIVEBENCH_JUDGE_URL": URL}


def resolve(monkeypatch: pytest.MonkeyPatch, kind: str, env: Mapping[str, str]) -> JudgeSettings:
    """The settings in an environment that says no more of judges than ``env``."""
    with monkeypatch.context() as patched:
        for name, value in env.items():
            patched.setenv(name, value)
        return JudgeSettings.resolve(kind)


def test_no_judge_is_an_error_that_says_how_to_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JudgeError) as error:
        resolve(monkeypatch, "", {})
    for kind in JudgeKind:
        assert f"PROACTIVEBENCH_JUDGE={kind.value}" in str(error.value)


def test_environment_comes_before_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve(monkeypatch, "lexical", {}).kind is JudgeKind.LEXICAL
    assert resolve(monkeypatch, "lexical", SERVER).kind is JudgeKind.OPENAI


def test_unknown_judge_of_a_task_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JudgeError, match="the task asks for judge 'oracle'"):
        resolve(monkeypatch, "oracle", {})


def test_every_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        "MODEL": "m",
        "KEY": "k",
        "CONCURRENCY": "2",
        "TIMEOUT": "1.5",
        "RETRIES": "0",
        "MAX_TOKENS": "9",
        "BATCH_SIZE": "3",
        "DEVICE": "cpu",
        "OFFICIAL_PARSING": "1",
    }
    env = SERVER | {f"PROACTIVEBENCH_JUDGE_{name}": value for name, value in names.items()}
    assert resolve(monkeypatch, "", env) == JudgeSettings(
        JudgeKind.OPENAI, "m", URL, "k", 2, 1.5, 0, 9, 3, "cpu", True
    )


def test_defaults_are_those_of_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve(monkeypatch, "", SERVER) == JudgeSettings(JudgeKind.OPENAI, url=URL)
    assert resolve(monkeypatch, "hf", {}) == JudgeSettings(JudgeKind.HF)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", "oracle"),
        ("_CONCURRENCY", "0"),
        ("_CONCURRENCY", "many"),
        ("_RETRIES", "-1"),
        ("_MAX_TOKENS", "1.5"),
        ("_BATCH_SIZE", "-1"),
        ("_TIMEOUT", "0"),
        ("_TIMEOUT", "inf"),
        ("_TIMEOUT", "soon"),
        ("_URL", "127.0.0.1:8000"),
        ("_URL", "ftp://host/v1"),
    ],
)
def test_wrong_value_is_an_error_that_names_variable_and_value(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError) as error:
        resolve(monkeypatch, "", SERVER | {f"PROACTIVEBENCH_JUDGE{name}": value})
    assert f"PROACTIVEBENCH_JUDGE{name} is {value!r}" in str(error.value)


def test_server_without_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JudgeError, match="PROACTIVEBENCH_JUDGE_URL"):
        resolve(monkeypatch, "openai", {})


@pytest.mark.parametrize("variable", ["PROACTIVEBENCH_JUDGE_URL", "OPENAI_BASE_URL"])
@pytest.mark.parametrize("url", ["http://me:pw-secret@host/v1", "http://host/v1?key=pw-secret"])
def test_secret_in_the_address_is_refused_and_not_shown(
    variable: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=variable) as error:
        resolve(monkeypatch, "openai", {variable: url})
    assert "pw-secret" not in str(error.value)


def test_wrong_address_names_the_variable_that_it_is_from(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"^OPENAI_BASE_URL is 'host:8000'; expected http"):
        resolve(monkeypatch, "openai", {"OPENAI_BASE_URL": "host:8000"})


@pytest.mark.parametrize("key", ["sk-one sk-two", "sk-one\nsk-two", "sk-\u201cquoted\u201d"])
def test_key_that_cannot_be_sent_is_refused_and_not_shown(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="set PROACTIVEBENCH_JUDGE_KEY to one key") as error:
        resolve(monkeypatch, "", SERVER | {"PROACTIVEBENCH_JUDGE_KEY": key})
    assert "sk-" not in str(error.value)


def test_key_from_a_file_loses_its_line_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        resolve(monkeypatch, "", SERVER | {"PROACTIVEBENCH_JUDGE_KEY": "sk-one\n"}).key == "sk-one"
    )


def test_a_key_goes_to_no_server_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = {"OPENAI_BASE_URL": "https://api.example/v1", "OPENAI_API_KEY": "theirs"}
    assert resolve(monkeypatch, "openai", theirs).key == "theirs"
    assert resolve(monkeypatch, "openai", theirs | SERVER).key == ""
