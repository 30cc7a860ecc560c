"""Screen: what a model wrapper calls to get the picture of a turn, for all requests of a call."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from PIL.Image import Image

from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.rollout.documents import Document
from proactivebench_tasks.rollout.rollout import Play
from proactivebench_tasks.transcripts.conversation import messages
from proactivebench_tasks.transcripts.variant import Setting

DECODERS = 4  # threads that decode pictures ahead
_DECODED_AHEAD = 16  # pictures held decoded, at most


class Screen:
    """The callable that every request of a call shares: it finds the picture from the document.

    Pictures of the call are decoded ahead in its order, a bounded number of them.
    """

    def __init__(self, pool: ThreadPoolExecutor, chat: bool) -> None:
        self._pool = pool
        self._chat = chat
        self._plays: dict[object, Play] = {}
        self._waiting: dict[object, Play] = {}  # in the order of the call
        self._decoding: dict[object, Future[list[Image]]] = {}
        self._lock = threading.Lock()  # API wrappers ask from many threads

    def show(self, plays: Iterable[Play]) -> None:
        """Set the plays of the next call."""
        self._plays = {documents.key(play.doc): play for play in plays}
        self._waiting = dict(self._plays)
        self._decoding = {}
        self._decode_ahead()

    def episode(self, doc: Document) -> Episode:
        """The episode of a document in this call."""
        return self._plays[documents.key(doc)].episode

    def setting(self, doc: Document) -> Setting:
        """The variant of the benchmark that it is played in."""
        return self._plays[documents.key(doc)].setting

    def __call__(self, doc: Document) -> list[Any]:
        """Pictures for a simple wrapper, messages for a chat wrapper: fresh ones in each call."""
        key = documents.key(doc)
        play = self._plays[key]
        with self._lock:
            self._waiting.pop(key, None)  # a wrapper may ask in an order of its own
            decoding = self._decoding.pop(key, None)
        self._decode_ahead()
        try:
            images = decoding.result() if decoding else _pictures(play)
        except Exception as error:
            play.error = error  # told apart from a failure of the wrapper
            raise
        return messages(play.conversation, images) if self._chat else images

    def _decode_ahead(self) -> None:
        with self._lock:
            while self._waiting and len(self._decoding) < _DECODED_AHEAD:
                key = next(iter(self._waiting))
                self._decoding[key] = self._pool.submit(_pictures, self._waiting.pop(key))


def _pictures(play: Play) -> list[Image]:
    edge = play.setting.short_edge
    return [documents.pixels(play.doc, exchange, edge) for exchange in play.conversation]
