"""Which judge the environment and a task ask for."""

from __future__ import annotations

import pytest

from proactivebench_tasks.config import JudgeKind
from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.judge.settings import JudgeSettings

URL = "http://127.0.0.1:8000/v1"
SERVER = {"PROACTIVEBENCH_JUDGE": "openai", "PROACTIVEBENCH_JUDGE_URL": URL}


def test_no_judge_is_an_error_that_says_how_to_have_one() -> None:
    with pytest.raises(JudgeError) as error:
        JudgeSettings.resolve("", {})
    for kind in JudgeKind:
        assert f"PROACTIVEBENCH_JUDGE={kind.value}" in str(error.value)


def test_environment_comes_before_the_task() -> None:
    assert JudgeSettings.resolve("lexical", {}).kind is JudgeKind.LEXICAL
    assert JudgeSettings.resolve("lexical", SERVER).kind is JudgeKind.OPENAI


def test_every_variable_is_read() -> None:
    names = {
        "MODEL": "m",
        "KEY": "k",
        "CONCURRENCY": "2",
        "TIMEOUT": "1.5",
        "RETRIES": "0",
        "MAX_TOKENS": "9",
        "BATCH_SIZE": "3",
        "DEVICE": "cpu",
    }
    env = SERVER | {f"PROACTIVEBENCH_JUDGE_{name}": value for name, value in names.items()}
    assert JudgeSettings.resolve("", env) == JudgeSettings(
        JudgeKind.OPENAI, "m", URL, "k", 2, 1.5, 0, 9, 3, "cpu"
    )


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
def test_wrong_value_is_an_error_that_names_variable_and_value(name: str, value: str) -> None:
    with pytest.raises(JudgeError) as error:
        JudgeSettings.resolve("", SERVER | {f"PROACTIVEBENCH_JUDGE{name}": value})
    assert f"PROACTIVEBENCH_JUDGE{name} is {value!r}" in str(error.value)


def test_server_without_address_is_an_error() -> None:
    with pytest.raises(JudgeError, match="PROACTIVEBENCH_JUDGE_URL"):
        JudgeSettings.resolve("openai", {})


@pytest.mark.parametrize("url", ["http://me:pw-secret@host/v1", "http://host/v1?key=pw-secret"])
def test_secret_in_the_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(JudgeError) as error:
        JudgeSettings.resolve("openai", {"PROACTIVEBENCH_JUDGE_URL": url})
    assert "pw-secret" not in str(error.value)


def test_a_key_goes_to_no_server_but_its_own() -> None:
    theirs = {"OPENAI_BASE_URL": "https://api.example/v1", "OPENAI_API_KEY": "theirs"}
    assert JudgeSettings.resolve("openai", theirs).key == "theirs"
    assert JudgeSettings.resolve("openai", theirs | SERVER).key == ""
