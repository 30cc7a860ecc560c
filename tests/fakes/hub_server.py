"""A stand-in for the Hugging Face hub: the HTTP API that huggingface_hub and its file system call.

    with HubServer({"test/a.zip": b"..."}) as hub:
        hub.url                      # for HF_ENDPOINT
        hub.sent["test/a.zip"]       # bytes of bodies sent
        hub.fail("resolve", 503, times=2)
        hub.cut("a.zip", after=1000)

Files above ``LARGE`` bytes are, as on the hub, "LFS": `resolve` redirects to another host (the
CDN), which answers range requests. Others are sent directly.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import socket
import threading
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import close_session

REPO = "tdemin16/ProactiveBench"
LARGE = 1000
README = """\
---
license: cc-by-nc-4.0
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*
dataset_info:
  features:
  - name: prompt
    dtype: string
  - name: ground_truth
    dtype: string
  - name: proactive_actions
    sequence: string
  - name: options
    sequence: string
  - name: qwen_conf
    dtype: float64
  - name: qwen_delta
    dtype: float64
  - name: llava_conf
    dtype: float64
  - name: llava_delta
    dtype: float64
  - name: images
    sequence: image
  splits:
  - name: train
    num_examples: 2
---
# ProactiveBench
"""


@dataclass
class Trouble:
    """What happens to the next ``times`` requests whose path has ``part`` in it."""

    part: str
    times: int
    status: int | None = None  # the answer; None: the body is cut
    after: int = 0  # bytes of the body that still arrive
    headers: dict[str, str] = field(default_factory=dict)


class HubServer:
    """Serves one dataset repository. Who changes ``files`` has to change ``commit``, too."""

    def __init__(self, files: dict[str, bytes], page: int = 1000) -> None:
        self.files = {"README.md": README.encode(), **files}  # path in the repository -> content
        self.page = page  # entries of the tree in one answer; a `Link` header leads to the rest
        self.commit = "c0ffee" + "0" * 34
        self.token: str | None = None  # if set, requests without it are refused
        self.requests: list[str] = []  # "METHOD /path" of each request so far
        self.cdn_tokens: set[str] = set()  # tokens that the CDN was sent; it should get none
        self.pauses: list[float] = []  # seconds that the client wanted to sleep; see `connect`
        self.ranges = True  # whether range requests are understood
        self.sent: Counter[str] = Counter()  # path in the repository -> bytes of bodies sent
        self.troubles: list[Trouble] = []
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self.cdn = f"http://localhost:{self.port}/cdn"

    def __enter__(self) -> HubServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fail(self, part: str, status: int, times: int = 1, **headers: str) -> None:
        """Answer the next requests whose path has ``part`` in it with ``status``. A header's name
        has underscores for its dashes: ``Retry_After="17"``."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        self.troubles.append(Trouble(part, times, status, headers=fields))

    def cut(self, part: str, after: int, times: int = 1) -> None:
        """Close the connection ``after`` bytes of the next answers whose path has ``part``."""
        self.troubles.append(Trouble(part, times, after=after))

    def trouble(self, path: str) -> Trouble | None:
        """The trouble that a request for this path meets, counted down."""
        with self.lock:
            for trouble in self.troubles:
                if trouble.part in path and trouble.times > 0:
                    trouble.times -= 1
                    return trouble
        return None

    @property
    def archive_bytes_sent(self) -> int:
        return sum(count for path, count in self.sent.items() if path.endswith(".zip"))


def _etag(content: bytes) -> str:
    if len(content) > LARGE:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _handler(hub: HubServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # headers and body in one packet, or each answer waits for an acknowledgement

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._serve()

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urlsplit(self.path)
            path, query = unquote(url.path), parse_qs(url.query)
            with hub.lock:
                hub.requests.append(f"{self.command} {path}")
            trouble = hub.trouble(path)
            if trouble and trouble.status is not None:
                self._send(trouble.status, b"{}", trouble.headers)
            elif path.startswith("/cdn/"):
                hub.cdn_tokens.add(self.headers.get("Authorization", "").removeprefix("Bearer "))
                self._file(path.removeprefix("/cdn/"), trouble)
            elif hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
                self._send(401, b"{}", {"X-Error-Message": "Invalid username or password."})
            elif match := re.fullmatch(rf"/datasets/{REPO}/resolve/([^/]+)/(.+)", path):
                self._resolve(*match.groups(), trouble)
            elif match := re.fullmatch(rf"/api/datasets/{REPO}(?:/revision/([^/]+))?", path):
                self._info(match[1] or "main")
            elif match := re.fullmatch(rf"/api/datasets/{REPO}/tree/([^/]+)/?(.*)", path):
                self._tree(match[2], query)
            elif re.fullmatch(rf"/api/datasets/{REPO}/paths-info/[^/]+", path):
                self._paths_info(parse_qs(body.decode()).get("paths", []))
            else:
                self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

        def _info(self, revision: str) -> None:
            if revision not in ("main", hub.commit):
                self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
                return
            self._json(
                {
                    "_id": "1",
                    "id": REPO,
                    "sha": hub.commit,
                    "private": False,
                    "gated": False,
                    "disabled": False,
                    "downloads": 0,
                    "likes": 0,
                    "tags": [],
                    "lastModified": "2026-01-01T00:00:00.000Z",
                    "siblings": [{"rfilename": name} for name in hub.files],
                }
            )

        def _tree(self, folder: str, query: dict[str, list[str]]) -> None:
            prefix = f"{folder}/" if folder else ""
            recursive = query.get("recursive", ["false"])[0].lower() == "true"
            entries: dict[str, dict[str, Any]] = {}
            for name in sorted(hub.files):
                if not name.startswith(prefix):
                    continue
                parts = name.removeprefix(prefix).split("/")
                for depth in range(1, len(parts) if recursive else min(2, len(parts))):
                    path = prefix + "/".join(parts[:depth])
                    entries[path] = {"type": "directory", "oid": "d" * 40, "size": 0, "path": path}
                if recursive or len(parts) == 1:
                    entries[name] = self._entry(name)
            if not entries:
                self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
                return
            start = int(query.get("cursor", ["0"])[0])
            shown = list(entries.values())[start : start + hub.page]
            headers = {}
            if start + hub.page < len(entries):
                where = f"{hub.url}/api/datasets/{REPO}/tree/{hub.commit}/{quote(folder, safe='')}"
                following = f"recursive={recursive}&cursor={start + hub.page}"
                headers["Link"] = f'<{where}?{following}>; rel="next"'
            self._json(shown, headers)

        def _paths_info(self, paths: list[str]) -> None:
            folders = {name.rpartition("/")[0] for name in hub.files}
            found = [self._entry(path) for path in paths if path in hub.files]
            found += [
                {"type": "directory", "oid": "d" * 40, "size": 0, "path": path}
                for path in paths
                if path in folders
            ]
            self._json(found)

        def _entry(self, name: str) -> dict[str, Any]:
            content = hub.files[name]
            entry = {"type": "file", "oid": "b" * 40, "size": len(content), "path": name}
            if len(content) > LARGE:
                oid = _etag(content)
                entry["lfs"] = {"oid": oid, "size": len(content), "pointerSize": 134}
            else:
                entry["oid"] = _etag(content)
            return entry

        def _resolve(self, revision: str, name: str, trouble: Trouble | None) -> None:
            if revision not in ("main", hub.commit):
                self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
                return
            headers = {"X-Repo-Commit": hub.commit, "Accept-Ranges": "bytes"}
            if name not in hub.files:
                self._send(404, b"", headers | {"X-Error-Code": "EntryNotFound"})
                return
            content = hub.files[name]
            headers["ETag"] = f'"{_etag(content)}"'
            if len(content) <= LARGE:
                self._file(name, trouble, headers)
                return
            headers["X-Linked-Size"] = str(len(content))
            headers["X-Linked-ETag"] = headers["ETag"]
            headers["Location"] = f"{hub.cdn}/{quote(name)}"
            self._send(302, b"Found. Redirecting", headers)

        def _file(self, name: str, trouble: Trouble | None, headers: Any = None) -> None:
            content = hub.files[name]
            fields = {"Accept-Ranges": "bytes", **(headers or {})}
            status, part = 200, content
            if hub.ranges and (
                match := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            ):
                start = int(match[1])
                end = min(int(match[2] or len(content)), len(content) - 1)
                if start >= len(content):
                    self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                    return
                status, part = 206, content[start : end + 1]
                fields["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
            self._send(status, part, fields, name, trouble)

        def _json(self, value: object, headers: dict[str, str] | None = None) -> None:
            fields = {"Content-Type": "application/json", **(headers or {})}
            self._send(200, json.dumps(value).encode(), fields)

        def _send(
            self,
            status: int,
            body: bytes,
            headers: dict[str, str],
            name: str = "",
            trouble: Trouble | None = None,
        ) -> None:
            self.send_response(status)
            for field_name, value in headers.items():
                self.send_header(field_name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            cut = trouble is not None and trouble.status is None and trouble.after < len(body)
            if cut:
                assert trouble is not None
                body = body[: trouble.after]
            with hub.lock:  # before the client has it, which may look at the sum at once
                hub.sent[name] += len(body)
            self.wfile.write(body)
            if cut:
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True

    return Handler


def connect(monkeypatch: pytest.MonkeyPatch, hub: HubServer, folder: Path) -> None:
    """Have huggingface_hub, in this process, talk to the stand-in and cache in ``folder``.

    The pauses that it makes before it tries again are noted in ``hub.pauses`` and take no time,
    but ``time.monotonic`` counts them.
    """
    close_session()
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("PROACTIVEBENCH_DATA_DIR", raising=False)
    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    sleep, monotonic = time.sleep, time.monotonic

    def pause(seconds: float) -> None:
        if seconds < 0.5:  # a lock that polls
            sleep(seconds)
        else:
            hub.pauses.append(seconds)

    monkeypatch.setattr("time.sleep", pause)
    monkeypatch.setattr("time.monotonic", lambda: monotonic() + sum(hub.pauses))


def zipped(folder: Path, *names: str, padding: int = 0) -> bytes:
    """A zip archive of these folders in ``folder``, with ``padding`` bytes of other members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            for file in sorted((folder / name).rglob("*")):
                if file.is_file():
                    archive.write(file, file.relative_to(folder))
            for number in range(padding // 100_000):
                noise = random.Random(number).randbytes(100_000)
                archive.writestr(f"{name}/padding/{number:04d}.bin", noise)
    return buffer.getvalue()
