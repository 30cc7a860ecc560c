"""Functions of tasks that have nothing to do with ours: one answer each, compared with the right
one. Their documents and answers look like ours, so that a careless patch would touch them."""

from __future__ import annotations

import json
from typing import Any

from PIL import Image


def doc_to_visual(doc: dict[str, Any]) -> list[Image.Image]:
    return [Image.new("RGB", (4, 4))]


def doc_to_text(doc: dict[str, Any], lmms_eval_specific_kwargs: Any = None) -> str:
    return f"other question {doc['id']}"


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, Any]:
    right = float(results[0] == f"answer to {doc_to_text(doc)}")
    return {"acc": right, "ps": 2 * right, "mismatch": 1 - right, "text_score": right}


def process_json(doc: dict[str, Any], results: list[str]) -> dict[str, Any]:
    """The answer is an object, as our records are."""
    found = json.loads(results[0])
    return {"acc": float(found["id"] == doc["id"]), "score": {"score": float(len(results[0]))}}
