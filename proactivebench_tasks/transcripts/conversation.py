"""Conversation: the exchanges that a model sees in one turn, for chat and for simple wrappers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proactivebench_tasks.environments.environment import Box


@dataclass(frozen=True)
class Exchange:
    """An image and a text that the model is shown, and the answer; ``None`` while it is due."""

    image_path: str  # below the data folder
    crop: Box | None
    text: str
    answer: str | None = None


def messages(conversation: Sequence[Exchange], images: Sequence[Any]) -> list[dict[str, Any]]:
    """Chat messages, one image to each user turn. They are fresh: some wrappers change them."""
    chat: list[dict[str, Any]] = []
    for exchange, image in zip(conversation, images, strict=True):
        content = [{"type": "image", "url": image}, {"type": "text", "text": exchange.text}]
        chat.append({"role": "user", "content": content})
        if exchange.answer is not None:
            answer = [{"type": "text", "text": exchange.answer}]
            chat.append({"role": "assistant", "content": answer})
    return chat


def interleaved(conversation: Sequence[Exchange]) -> str:
    """One text for simple wrappers that put images where it says ``<image 1>``, ``<image 2>``."""
    parts = []
    for number, exchange in enumerate(conversation, start=1):
        parts.append(f"<image {number}>\n{exchange.text}")
        if exchange.answer is not None:
            parts.append(exchange.answer)
    return "\n\n".join(parts)
