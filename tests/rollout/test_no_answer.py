"""Empty texts of wrappers that count tokens: is there a reason that there is no answer?"""

from __future__ import annotations

import re

import pytest
from fakes.probe import ALL, Lab, Probe, sample_id
from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts

from proactivebench_tasks.protocol.samples import Dataset

VSOD = ALL[Dataset.VSOD]
FAULTY = 3


@pytest.mark.parametrize(
    ("text", "output", "reasoning", "reason"),
    [
        ("", 50, 50, r"limit of 50 new tokens was spent on reasoning \(no finish_reason, 50 of 50"),
        (" \n", 60, 55, r"limit of 50 new tokens was spent on reasoning .*55 of 60 tokens"),
        ("", 20, 17, "the model reasoned and then said nothing"),
        ("", 50, 0, None),
        ("", 1, None, None),
        ("", None, None, None),
        ("A thing", 50, 50, None),
    ],
)
def test_an_empty_text_is_no_answer_where_tokens_were_spent_on_reasoning(
    lab: Lab, text: str, output: int | None, reasoning: int | None, reason: str | None
) -> None:
    lab.make(Dataset.VSOD, count=5)
    counts = TokenCounts(input_tokens=9, output_tokens=output, reasoning_tokens=reasoning)

    def empty(answer: str, request: Instance) -> GenerationResult | str:
        return GenerationResult(text, counts) if request.args[3] == FAULTY else answer

    outcome = lab.evaluate(Probe(2, twist=empty), VSOD)
    if reason is None:
        assert outcome.failed(VSOD) == {}
    else:
        ((sample, error),) = outcome.failed(VSOD).items()
        assert sample == sample_id(FAULTY, Dataset.VSOD)
        assert re.match(f"GenerationError: .*{reason}", error)
