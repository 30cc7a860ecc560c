"""The toy task's functions: a fixed number of rounds, after which every output is compared."""

from __future__ import annotations

import json
from typing import Any

from PIL import Image


def doc_to_visual(doc: dict[str, Any]) -> list[Image.Image]:
    return [Image.new("RGB", (4, 4))]


def doc_to_text(
    doc: dict[str, Any],
    lmms_eval_specific_kwargs: Any = None,
    previous_output: list[str] | None = None,
    round_idx: int | None = None,
    previous_round_info: Any = None,
) -> Any:
    if round_idx is None:
        return question(doc, 0)
    if round_idx < doc["rounds"]:
        return None, question(doc, round_idx), False, previous_output, {"state": {}}
    return None, None, True, [json.dumps(previous_output)], None


def question(doc: dict[str, Any], round_idx: int) -> str:
    return f"toy {doc['id']}, round {round_idx}"


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    wanted = [f"answer to {question(doc, k)}" for k in range(doc["rounds"])]
    return {"right": float(json.loads(results[0]) == wanted)}
