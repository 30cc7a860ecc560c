"""A model's server to test with, on 127.0.0.1: it speaks the OpenAI chat protocol, by a script.

The script says what is sent about a sample, which is known by its question (see ``world.py``).
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Sent:
    """The body of an answer with status 200: a text as it is, all else as JSON."""

    body: Any
    content_type: str = "application/json"

    @property
    def content(self) -> bytes:
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return text.encode()


Script = Callable[[int], Sent]


def reply(
    content: str | None,
    finish: str | None = "stop",
    tokens: int | None = None,
    reasoning_tokens: int | None = None,
    **message: Any,
) -> dict[str, Any]:
    """A completion. Without ``tokens`` it has no usage."""
    body: dict[str, Any] = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish,
            }
        ],
    }
    if tokens is not None:
        body["usage"] = {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9}
    if reasoning_tokens is not None:
        details = {"reasoning_tokens": reasoning_tokens}
        body["usage"]["completion_tokens_details"] = details
    return body


class ChatServer:
    """``with ChatServer(script) as server`` serves at ``server.url`` until the block ends."""

    def __init__(self, script: Script, keeps_alive: bool = False) -> None:
        self.script = script
        self.protocol = "HTTP/1.1" if keeps_alive else "HTTP/1.0"
        self.lock = threading.Lock()
        self.requests: Counter[int] = Counter()  # by sample
        self.limits: set[Any] = set()  # of tokens, as they were asked for
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ChatServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(server: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = server.protocol  # 1.0: each request has a connection of its own
        wbufsize = -1  # headers and body in one packet

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            (sample,) = map(int, re.findall(r"What is sample (\d+)\?", json.dumps(body)))
            with server.lock:
                server.requests[sample] += 1
            server.limits.add(body.get("max_tokens"))
            sent = server.script(sample)
            self.send_response(200)
            self.send_header("Content-Type", sent.content_type)
            self.send_header("Content-Length", str(len(sent.content)))
            self.end_headers()
            self.wfile.write(sent.content)

    return Handler
