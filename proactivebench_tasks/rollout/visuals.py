"""Visuals: the images of a call, decoded before it is made, and what the wrapper gets them from."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

from PIL.Image import Image

from proactivebench_tasks.data.images import load_image
from proactivebench_tasks.environments.episode import Observation
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.rollout.documents import Document
from proactivebench_tasks.rollout.rollout import Failure, Rollout
from proactivebench_tasks.transcripts.conversation import Exchange, messages

#: Threads that decode images: a model waits for the images of its next call.
DECODERS = min(16, os.cpu_count() or 4)
_BLOCKS_AHEAD = 2  # blocks of images that are decoded while a call is made

#: Bytes of decoded images in one call; beyond it a call is made with those that there are.
DECODED_IN_A_CALL = 2**29


def image_of(doc: Document, shown: Observation | Exchange, short_edge: int = 0) -> Image:
    """What a document's suite shows of an observation, RGB; ``DataError`` if it cannot be read.

    Scaled down to ``short_edge`` pixels if that is not 0 and smaller.
    """
    image = load_image(documents.suite(doc).store, shown.image_path, shown.crop)
    if 0 < short_edge < min(image.size):
        scale = short_edge / min(image.size)
        image = image.resize((round(image.width * scale), round(image.height * scale)))
    return image


class Visuals:
    """The callable that all requests of a call share: it finds a turn's images by the document.

    It never changes, so any number of threads may call it.
    """

    def __init__(self, images: Mapping[Rollout, Sequence[Image]], chat: bool) -> None:
        self._rollouts = {documents.key(rollout.doc): rollout for rollout in images}
        self._images = images
        self._chat = chat

    def rollout(self, doc: Document) -> Rollout:
        """The rollout of a document in this call."""
        return self._rollouts[documents.key(doc)]

    def __call__(self, doc: Document) -> list[Any]:
        """Images for a simple wrapper, messages for a chat wrapper: fresh ones in each call, for
        some wrappers change what they are given."""
        rollout = self.rollout(doc)
        images = [image.copy() for image in self._images[rollout]]
        return messages(rollout.conversation, images) if self._chat else images


@dataclass(frozen=True)
class Piece:
    """The rollouts that one call is made for, and those whose images cannot be shown."""

    visuals: Visuals
    rollouts: tuple[Rollout, ...]
    failures: Mapping[Rollout, Failure]


class VisualsLoader:
    """Decodes images, some blocks of ``block`` rollouts ahead. ``chat`` as ``Visuals`` has it.

    ``look=False`` is for a wrapper that asks for no images: none are read.
    """

    def __init__(self, pool: Executor, block: int, chat: bool, look: bool = True) -> None:
        self._pool = pool
        self._block = block
        self._chat = chat
        self._look = look

    def pieces(self, rollouts: Sequence[Rollout]) -> Iterator[Piece]:
        """All rollouts in their order, in as few pieces as ``DECODED_IN_A_CALL`` allows; each but
        the last is a multiple of ``block``."""
        images: dict[Rollout, list[Image]] = {}
        failures: dict[Rollout, Failure] = {}
        size = 0
        for rollout, found in self._decoded(rollouts):
            if isinstance(found, Failure):
                failures[rollout] = found
            else:
                images[rollout] = found
                size += sum(3 * image.width * image.height for image in found)
            if size >= DECODED_IN_A_CALL and len(images) % self._block == 0:
                yield self._piece(images, failures)
                images, failures, size = {}, {}, 0
        if images or failures:
            yield self._piece(images, failures)

    def _piece(
        self, images: Mapping[Rollout, list[Image]], failures: Mapping[Rollout, Failure]
    ) -> Piece:
        return Piece(Visuals(images, self._chat), tuple(images), failures)

    def _decoded(
        self, rollouts: Sequence[Rollout]
    ) -> Iterator[tuple[Rollout, list[Image] | Failure]]:
        """Each rollout with its images, a bounded number of them ahead."""
        coming: deque[tuple[Rollout, Future[list[Image] | Failure]]] = deque()
        for rollout in rollouts:
            coming.append((rollout, self._pool.submit(self.images, rollout)))
            if len(coming) > _BLOCKS_AHEAD * self._block:
                yield _done(coming.popleft())
        while coming:
            yield _done(coming.popleft())

    def images(self, rollout: Rollout) -> list[Image] | Failure:
        """The images of all that a rollout shows, decoded, or why they cannot be."""
        if not self._look:
            return []
        try:
            return [
                image_of(rollout.doc, exchange, rollout.variant.short_edge)
                for exchange in rollout.conversation
            ]
        except Exception as error:  # whatever it is, it is this sample's failure
            return Failure(error)


def _done(
    each: tuple[Rollout, Future[list[Image] | Failure]],
) -> tuple[Rollout, list[Image] | Failure]:
    rollout, future = each
    return rollout, future.result()
