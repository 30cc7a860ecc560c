"""Protocol: how the benchmark words its questions, and which samples count.

A value and pure functions on it; nothing here reads a file. The official wording is not ours to
copy: ``get("official")`` takes it from the published package (see ``published.py``). ``BUILTIN`` is
our own wording. It serves the demo tasks only, since numbers made with it compare to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proactivebench_tasks.errors import ProtocolError
from proactivebench_tasks.protocol.samples import CocoSample, Dataset, Sample


@dataclass(frozen=True)
class Protocol:
    """Wording and sample ids of one version of the benchmark.

    ``options_intro``, ``options_request`` and ``oeg_hint`` are appended as they stand, so they hold
    the spaces and line breaks that join them; prefixes, hints and questions are joined by a space.
    ``judge_user`` is a ``str.format`` template of ``user_prompt``, ``correct_answers`` and
    ``generated_answer``. ``origin`` says where the texts were read and is no part of equality.
    """

    version: str
    origin: str = field(compare=False)
    options_intro: str
    options_request: str
    prefix: Mapping[Dataset, str]
    hint: Mapping[Dataset, str]
    coco_zoom_hint: str
    reference_question: Mapping[Dataset, str]
    chain_of_thought: Mapping[Dataset, str]
    oeg_hint: str
    judge_system: str
    judge_user: str
    sample_ids: Mapping[Dataset, frozenset[int]] | None

    def prompt(
        self, dataset: Dataset, sample: Sample, *, reference: bool = False, hint: bool = False
    ) -> str:
        """The question of a turn, without options: it is the same in every turn of a sample."""
        question = sample.prompt
        if reference:
            question = self.reference_question.get(dataset, question)
        parts = [self.prefix[dataset]] if dataset in self.prefix else []
        parts.append(question)
        if hint:
            zoom = isinstance(sample, CocoSample) and sample.direction == "zoom"
            parts.append(self.coco_zoom_hint if zoom else self.hint[dataset])
        return " ".join(parts)

    def multiple_choice(self, prompt: str, options: Sequence[str]) -> str:
        """The text that the model gets: ``prompt``, one line ``A. option`` each, the request."""
        lines = "".join(f"{chr(ord('A') + i)}. {option}\n" for i, option in enumerate(options))
        return f"{prompt}{self.options_intro}{lines}{self.options_request}"

    def accepts(self, dataset: Dataset, sample_id: int) -> bool:
        """Whether this sample is part of the evaluation."""
        return self.sample_ids is None or sample_id in self.sample_ids[dataset]

    def judge_messages(
        self, prompt: str, valid_answers: str, generated: str
    ) -> list[dict[str, str]]:
        """The chat that asks the judge about an open-ended answer: a system and a user message.

        ``valid_answers`` is the comma-separated text of ``split_answers``.
        """
        user = self.judge_user.format(
            user_prompt=prompt,
            correct_answers=split_answers(valid_answers),
            generated_answer=generated,
        )
        return [
            {"role": "system", "content": self.judge_system},
            {"role": "user", "content": user},
        ]


def split_answers(valid_answers: str) -> list[str]:
    """The single answers in an open-ended answer text, in order.

    The published package splits at every comma, so a category that holds one counts as two answers.
    """
    return [answer.strip().replace(".", "") for answer in valid_answers.split(",")]


def get(name: str) -> Protocol:
    """The protocol called ``official`` or ``builtin``.

    ``ProtocolError`` for another name, or if the official one cannot be had.
    """
    if name == "builtin":
        return BUILTIN
    if name == "official":
        from proactivebench_tasks import published  # not needed by the demo, nor is its network

        return published.load()
    raise ProtocolError(f"unknown protocol {name!r}; expected 'official' or 'builtin'")


BUILTIN = Protocol(
    version="builtin-1",
    origin=__name__,
    options_intro="\n\nYou can reply with any of these:\n",
    options_request="Reply with the letter of your pick and nothing else.",
    prefix={
        Dataset.VSOD: "You are looking at a single moment of a film clip.",
        Dataset.CHANGEIT: "You are looking at a single moment of a film clip.",
    },
    hint={
        Dataset.ROD: "Tip: you may ask to have the blocks pushed aside.",
        Dataset.VSOD: "Tip: you may ask for an earlier or a later moment of the clip.",
        Dataset.MVPN: "Tip: you may ask to see another side.",
        Dataset.IMAGENETC: "Tip: you may ask for a cleaner photo.",
        Dataset.QUICKDRAW: "Tip: you may ask for more pen strokes.",
        Dataset.CHANGEIT: "Tip: you may ask for an earlier or a later moment of the clip.",
        Dataset.COCO: "Tip: you may ask to look further to one side.",
    },
    coco_zoom_hint="Tip: you may ask to stand further back.",
    reference_question={Dataset.ROD: "Which thing do you see here?"},
    chain_of_thought={
        Dataset.ROD: "The blocks are in the way, so they have to be pushed aside before I can "
        "tell. My pick:",
        Dataset.MVPN: "This side shows too little, so I have to see another one before I can "
        "tell. My pick:",
    },
    oeg_hint=" Should the picture be too poor for that, say which change to it would let you know.",
    judge_system=(
        "You mark replies. You get a question about a picture, a Python list of points, and a "
        "reply. Mark every point of the list: 1 if the reply makes it, in whatever words, "
        "0 if it does not or says the opposite. Finish with one line that holds the marks alone, "
        "in list order, with commas between them."
    ),
    judge_user="Question: {user_prompt}\nPoints: {correct_answers}\nReply: {generated_answer}",
    sample_ids=None,
)
