"""How near to what is possible do wrappers of servers come, when requests take unequally long?

    python benchmarks/api.py [--wrappers openai,async_openai] [--in-flight 32,256]

A scripted server on this machine answers each request after a time drawn log-normally (median
0.5 s, sigma 0.8), always the same for the same request. The same episodes are played by our runner
through lmms-eval's wrappers, by a plain asyncio script with a semaphore, and some of them by
lmms-eval's own loop. The ideal is the time that all answers take, divided by the number of requests
that may be in flight. Exit code 1 if our runner reaches less than 0.9 of it, or if it makes more
requests than there are turns, or if sides play differently. More in README.md in this folder.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

MEDIAN, SIGMA = 0.5, 0.8
ASKS = 0.55  # share of answers that ask for help, so that an episode goes on
GOAL = 0.9
TURNS_EACH = 40  # turns for each request in flight: enough that the last few do not count
LOOP_EPISODES = 6  # of lmms-eval's own loop, which has one request in flight


def drawn(body: dict[str, Any]) -> tuple[float, float]:
    """Two numbers from 0 to 1 that depend on the text and the images of a request."""
    text = json.dumps(body["messages"], sort_keys=True)
    digest = hashlib.sha256(text.encode()).digest()
    first, second = (int.from_bytes(digest[i : i + 6], "big") / 2**48 for i in (0, 6))
    return first, second


def serve(port: Any, requests: Any, waited: Any) -> None:
    """The server, in a process of its own. Counts requests, and adds up how long they took."""
    from aiohttp import web

    async def complete(request: web.Request) -> web.Response:
        first, second = drawn(await request.json())
        seconds = MEDIAN * math.exp(SIGMA * statistics.NormalDist().inv_cdf(max(second, 1e-9)))
        requests.value += 1
        waited.value += seconds
        await asyncio.sleep(seconds)
        content = "Add details." if first < ASKS else "I see a thing."
        message = {"role": "assistant", "content": content}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted"}
        return web.json_response({**head, "choices": [choice], "usage": usage})

    async def run() -> None:
        application = web.Application(client_max_size=2**26)
        application.router.add_post("/v1/chat/completions", complete)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        port.value = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        await asyncio.Event().wait()

    asyncio.run(run())


class Server:
    """The server seen from here."""

    def __init__(self) -> None:
        kind = multiprocessing.get_context("spawn")
        port, self.requests, self.waited = kind.Value("i"), kind.Value("i"), kind.Value("d")
        self.process = kind.Process(target=serve, args=(port, self.requests, self.waited))
        self.process.daemon = True
        self.process.start()
        while not port.value:
            time.sleep(0.05)
        self.url = f"http://127.0.0.1:{port.value}/v1"

    def clear(self) -> None:
        self.requests.value, self.waited.value = 0, 0.0


def asyncio_script(url: str, lm: Any, limit: int, requests: list[Any]) -> list[str]:
    """The same episodes without harness, wrapper and runner: a task each, and a semaphore."""
    from lmms_eval.protocol import ChatMessages
    from openai import AsyncOpenAI
    from rollout import document, show, transcript

    from proactivebench_tasks.rollout import documents
    from proactivebench_tasks.transcripts.variant import Variant

    async def play(client: AsyncOpenAI, free: asyncio.Semaphore, request: Any) -> str:
        doc = document(lm, request)
        episode = documents.episode(doc, Variant())
        while not episode.done:
            async with free:
                messages = ChatMessages(messages=show(episode.observe(), doc)).to_openai_messages()
                reply = await client.chat.completions.create(model="scripted", messages=messages)
            episode.step(reply.choices[0].message.content)
        return transcript(episode)

    async def run() -> list[str]:
        async with AsyncOpenAI(base_url=url, api_key="none") as client:
            free = asyncio.Semaphore(limit)
            return list(await asyncio.gather(*(play(client, free, each) for each in requests)))

    return asyncio.run(run())


def wrapper(name: str, url: str, limit: int) -> Any:
    from lmms_eval import models

    common = {"model": "scripted", "base_url": url, "api_key": "none"}
    number = "num_concurrent" if name == "openai" else "num_cpus"
    return models.get_model(name)(**common, **{number: limit})


def prepare(folder: Path, episodes: int) -> Any:
    """A task of the harness with so many episodes, its requests built."""
    import datasets
    from fakes import world
    from lmms_eval.tasks import TaskManager, get_task_dict

    from proactivebench_tasks import config
    from proactivebench_tasks.data.suite import Suite
    from proactivebench_tasks.protocol.builtin import BUILTIN
    from proactivebench_tasks.protocol.samples import Dataset

    world.make(folder / "data", {Dataset.QUICKDRAW: list(range(100, 100 + episodes))})
    os.environ[config.DATA_DIR] = str(folder / "data")
    os.environ["PROACTIVEBENCH_CACHE"] = str(folder / "cache")
    datasets.config.HF_DATASETS_CACHE = str(folder / "datasets")
    datasets.disable_progress_bars()
    # The official wording is not needed to measure time, nor is the network that it comes from.
    Suite.protocol = property(lambda suite: BUILTIN)
    name = f"proactivebench_mcqa_{Dataset.QUICKDRAW.task}"
    task = get_task_dict([name], TaskManager(include_defaults=False), "chat")[name]
    task.build_all_requests()
    return name, task


def measure(server: Server, names: list[str], limit: int, folder: Path) -> bool:
    """Play all sides with so many requests in flight; is all as it should be?"""
    from rollout import compared, harness_loop, our_runner

    episodes = TURNS_EACH * limit // 2  # nearly two turns an episode
    task_name, task = prepare(folder, episodes)
    good, first = True, None
    print(f"\n{limit} requests in flight, {episodes} episodes; load {os.getloadavg()[0]:.1f}")
    print("side                     wall s  ideal s  reached  requests  turns")

    def play(side: str, way: Any, requests: list[Any], ideal_of: int) -> float:
        nonlocal good, first
        server.clear()
        started = time.perf_counter()
        played = [compared(response) for response in way(requests)]
        seconds = time.perf_counter() - started
        turns = sum(len(each) - 1 for each in played)
        ideal = server.waited.value / ideal_of
        made = server.requests.value
        print(f"{side:<22}{seconds:>9.2f}{ideal:>9.2f}{ideal / seconds:>9.3f}{made:>10}{turns:>7}")
        first = first or played
        good = good and made == turns and played == first[: len(played)]
        return ideal / seconds

    for name in names:
        lm = wrapper(name, server.url, limit)
        lm._rank = 1  # no progress bars
        lm.task_dict[task_name] = task.dataset
        reached = play(f"our runner, {name}", partial(our_runner, lm), task.instances, limit)
        good = good and reached >= GOAL
        some = task.instances[:LOOP_EPISODES]
        play(f"its loop, {name}", partial(harness_loop, lm), some, limit)
    script = partial(asyncio_script, server.url, lm, limit)
    play("asyncio script", script, task.instances, limit)
    print(
        f"goal {'reached' if good else 'MISSED'}: {GOAL} of the ideal, a request a turn, same play"
    )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wrappers", default="openai,async_openai")
    parser.add_argument("--in-flight", default="32,256")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    server = Server()
    from loguru import logger

    logger.remove()
    good = []
    for limit in options.in_flight.split(","):
        with tempfile.TemporaryDirectory() as folder:
            good.append(measure(server, options.wrappers.split(","), int(limit), Path(folder)))
    server.process.terminate()
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
