"""A judge to test with: a server on 127.0.0.1 that speaks the OpenAI chat protocol, by a script.

What it says of an answer is ``marks``, a function of the answer's number, so a test can tell every
verdict without the server. ``script`` says what goes wrong, by question and attempt.

Nothing here waits for a time to pass. A script holds an answer back until something is so at the
server (``Act.until``), and a test waits until something is so (``JudgeServer.wait_until``).
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from fakes import world
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.transcripts.open_ended import OpenEnded

ANSWERS = "Wait for the occlusion to disappear, Rewind the video, Move the camera, A tree."


def record(number: int, **changes: Any) -> OpenEnded:
    """An open-ended sample as the runner leaves it, not yet judged."""
    fields = {
        "protocol": "builtin-1",
        "suite": "demo",
        "dataset": "OcclusionDataSet-MM20",
        "id": number,
        "sample": world.rows(Dataset.VSOD, [number])[0],
        "variant": {"open_ended": True},
        "reasoning_tags": [],
        "image": f"vsod/{number}.png",
        "crop": None,
        "prompt": "What is it?",
        "valid_answers": ANSWERS,
        "generated": f"reply {number}",
        "error": None,
        "judge": {"kind": "openai"},
    }
    return OpenEnded.model_validate(fields | changes)


def marks(number: int, count: int = 4) -> list[int]:
    """What the server says of ``reply NUMBER``: the number's bits."""
    return [number >> i & 1 for i in range(count)]


def now() -> bool:
    """An answer that is not held back."""
    return True


def never() -> bool:
    """An answer that never comes."""
    return False


@dataclass(frozen=True)
class Act:
    """What the server does about one request. ``content`` of ``None`` stands for the marks."""

    content: str | None = None
    #: Holds the answer back until it is true; tried at each arrival, each answer, each `recheck`.
    until: Callable[[], bool] = now
    latency: float = 0.0  # seconds; for benchmarks only
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None  # instead of a completion
    content_type: str = "application/json"  # of `body`
    cut: bool = False  # the connection, half way
    reset: bool = False  # the connection, before anything is said
    finish: str = "stop"


SOON = {"retry-after-ms": "1"}
Script = Callable[[int, int], Act]


class JudgeServer:
    """``with JudgeServer(script) as server`` serves at ``server.url`` until the block ends."""

    def __init__(self, script: Script = lambda number, attempt: Act()) -> None:
        self.script = script
        self.attempts: Counter[int] = Counter()
        self.answered: Counter[int] = Counter()
        self.keys: set[str] = set()
        self.hosts: set[str] = set()
        self.bodies: list[dict[str, Any]] = []
        self.under_way = self.peak = 0
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Condition()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> JudgeServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def wait_until(self, holds: Callable[[], bool], timeout: float = 300.0) -> None:
        """Wait until something is so at the server; a test that goes wrong ends by the timeout."""
        asyncio.run_coroutine_threadsafe(self._until(holds), self._loop).result(timeout)

    def recheck(self) -> None:
        """Ask every ``Act.until`` again: something has changed that only the test knows of."""
        asyncio.run_coroutine_threadsafe(self._change(), self._loop).result()

    async def _start(self) -> None:
        application = web.Application()
        application.router.add_post("/v1/chat/completions", self._serve)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        _, port = self._runner.addresses[0][:2]
        self.url = f"http://127.0.0.1:{port}/v1"

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(holds)

    async def _change(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.hosts.add(request.headers.get("Host", ""))
        self.keys.add(request.headers.get("Authorization", ""))
        number, count = read(body["messages"][-1]["content"])
        attempt = self.attempts[number]
        self.attempts[number] += 1
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        try:
            act = self.script(number, attempt)
            await self._change()
            await self._until(act.until)
            if act.latency:
                await asyncio.sleep(act.latency)
            return await self._act(act, number, count, request)
        finally:
            self.under_way -= 1
            await self._change()

    async def _act(
        self, act: Act, number: int, count: int, request: web.Request
    ) -> web.StreamResponse:
        if act.reset:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if act.cut:
            response = web.StreamResponse(headers={"Content-Length": "1000"})
            await response.prepare(request)
            await response.write(b'{"id": "')
            assert request.transport is not None
            request.transport.abort()
            return response
        if act.status != 200:
            error = {"error": {"message": act.body or "scripted"}}
            return web.json_response(error, status=act.status, headers=act.headers)
        self.answered[number] += 1
        if act.body is not None:
            return web.Response(text=act.body, content_type=act.content_type, headers=act.headers)
        content = act.content
        if content is None:
            content = "Let me see.\n" + ", ".join(map(str, marks(number, count)))
        return web.json_response(completion(content, act.finish))


def read(user: str) -> tuple[int, int]:
    """The number in the generated text, and how many answers there are."""
    points = re.search(r"Points: (\[.*\])\n", user)
    number = re.search(r"reply (\d+)", user)
    assert points
    return int(number[1]) if number else 0, len(ast.literal_eval(points[1]))


def completion(content: str, finish: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }


def main() -> None:
    """Serve in a process of its own, with this latency: print the URL, end with the input."""
    import sys

    latency = float(sys.argv[1])
    with JudgeServer(lambda number, attempt: Act(latency=latency)) as server:
        print(json.dumps(server.url), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
