"""Protocol: how the benchmark words its questions, and which samples count.

A value and pure functions on it; nothing here reads a file. The official wording is not ours to
copy: ``published.load()`` takes it from the published package. ``builtin.BUILTIN`` is our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proactivebench_tasks.protocol.samples import Dataset, Sample


@dataclass(frozen=True)
class Protocol:
    """Wording and sample ids of one version of the benchmark.

    ``options_intro``, ``options_request`` and ``oeg_hint`` are appended as they stand, so they hold
    the spaces and line breaks that join them; prefixes, hints and questions are joined by a space.
    ``hint`` is by ``Sample.hint_name``. ``judge_user`` is a ``str.format`` template of
    ``user_prompt``, ``correct_answers`` and ``generated_answer``. ``origin`` says where the texts
    were read and is no part of equality.
    """

    version: str
    origin: str = field(compare=False)
    options_intro: str
    options_request: str
    prefix: Mapping[Dataset, str]
    hint: Mapping[str, str]
    reference_question: Mapping[Dataset, str]
    chain_of_thought: Mapping[Dataset, str]
    oeg_hint: str
    judge_system: str
    judge_user: str
    sample_ids: Mapping[Dataset, frozenset[int]] | None

    def prompt(self, sample: Sample, *, reference: bool = False, hint: bool = False) -> str:
        """The question of a turn, without options: it is the same in every turn of a sample."""
        question = sample.prompt
        if reference:
            question = self.reference_question.get(sample.dataset, question)
        parts = [self.prefix[sample.dataset]] if sample.dataset in self.prefix else []
        parts.append(question)
        if hint:
            parts.append(self.hint[sample.hint_name])
        return " ".join(parts)

    def multiple_choice(self, prompt: str, options: Sequence[str]) -> str:
        """The text that the model gets: ``prompt``, one line ``A. option`` each, the request."""
        lines = "".join(f"{letter(i)}. {option}\n" for i, option in enumerate(options))
        return f"{prompt}{self.options_intro}{lines}{self.options_request}"

    def accepts(self, dataset: Dataset, sample_id: int) -> bool:
        """Whether this sample is part of the evaluation."""
        listed = self.listed(dataset)
        return listed is None or sample_id in listed

    def listed(self, dataset: Dataset) -> frozenset[int] | None:
        """The ids of the samples that are evaluated; ``None``, which means all, if the protocol
        lists none, or none of this dataset."""
        return None if self.sample_ids is None else self.sample_ids.get(dataset)

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


def letter(position: int) -> str:
    """The letter of the option at this position (from 0) of a list."""
    return chr(ord("A") + position)


def split_answers(valid_answers: str) -> list[str]:
    """The single answers in an open-ended answer text, in order.

    The published package splits at every comma, so a category that holds one counts as two answers.
    """
    return [answer.strip().replace(".", "") for answer in valid_answers.split(",")]


def num_answers(valid_answers: str) -> int:
    """How many answers there are in an open-ended answer text, and marks in a verdict on it.

    A blank piece, as in "Ask,, Two", is none, although the list that the judge is shown holds the
    piece. The published package counts like this.
    """
    return sum(bool(answer.strip()) for answer in valid_answers.split(","))
