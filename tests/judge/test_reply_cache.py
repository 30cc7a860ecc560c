"""What was said is kept, for this process and for others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.judge.base import Reply
from proactivebench_tasks.judge.reply_cache import ReplyCache

# Writes and reads the same 200 keys as its twin, and prints what it found to be kept.
WRITER = """
import json, sys
from pathlib import Path
from proactivebench_tasks.judge.reply_cache import ReplyCache
sys.stdin.readline()
with ReplyCache(Path(sys.argv[1])) as cache:
    print(json.dumps([cache.put(str(i), sys.argv[2]).raw for i in range(200)]))
"""


def test_first_reply_is_kept_unless_it_is_replaced(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "new" / "verdicts.sqlite") as cache:
        assert cache.get("a") is None
        assert cache.put("a", "first") == Reply("first")
        assert cache.put("a", "second", "stop") == Reply("first")
        assert cache.put("a", "third", "stop", replace=True) == Reply("third", finish="stop")
    with ReplyCache(tmp_path / "new" / "verdicts.sqlite") as cache:
        assert cache.get("a") == Reply("third", finish="stop")


def test_only_the_reply_that_was_seen_is_dropped(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "verdicts.sqlite") as cache:
        cache.put("a", "new")
        cache.drop("a", Reply("old"))
        assert cache.get("a") == Reply("new")
        cache.drop("a", Reply("new"))
        assert cache.get("a") is None


def test_processes_that_share_it_agree_on_every_reply(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    kept = [json.loads(writer.communicate()[0]) for writer in writers]
    assert kept[0] == kept[1]
    with ReplyCache(path) as cache:
        assert [cache.get(str(i)) for i in range(200)] == [Reply(raw) for raw in kept[0]]


def test_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JudgeError, match="PROACTIVEBENCH_CACHE"):
        ReplyCache(tmp_path / "file" / "verdicts.sqlite")
