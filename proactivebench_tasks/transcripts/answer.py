"""Answer: a model's text for one turn, where it came from, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pydantic import BaseModel, ConfigDict


class Origin(Enum):
    """Where an answer came from."""

    MODEL = "model"
    CACHE = "cache"  # the response cache, which had it from an earlier run
    EPISODE = "episode"  # the same observation was answered before in this episode


class Cost(BaseModel):
    """What a turn cost. ``calls``: how often the model was asked, failed calls included.
    ``seconds``: the turn's share of the time that these calls took. ``tokens`` by kind, if the
    wrapper counts them; those of an answer from the cache were spent when it was made."""

    model_config = ConfigDict(frozen=True, extra="allow")

    calls: int = 0
    seconds: float = 0.0
    tokens: Mapping[str, int] = {}


@dataclass(frozen=True)
class Answer:
    """``text`` is the model's whole text, thinking included."""

    text: str
    origin: Origin = Origin.MODEL
    cost: Cost = field(default_factory=Cost)
