"""HFJudge: a causal language model in this process, through transformers.

The harness frees the evaluated model before it starts its filters, of which the judge stage is one,
so the judge may fill the device that the model was on.

Settings are those of the published evaluation: chat template with thinking on, sampling as the
judge model's generation config says, at most 32768 tokens a reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
from loguru import logger
from transformers import AutoModelForCausalLM, AutoTokenizer

from proactivebench_tasks.config import JUDGE
from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.judge.base import Reply
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.judge.settings import OFFICIAL_MAX_TOKENS, JudgeSettings
from proactivebench_tasks.transcripts.open_ended import JudgeIdentity


class HFJudge:
    """Loads its model when it is first asked something.

    Questions are sorted by length before they are put into batches, so that little of a batch is
    padding.
    """

    comparable = True

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._max_tokens = settings.max_tokens or OFFICIAL_MAX_TOKENS

    @property
    def identity(self) -> JudgeIdentity:
        return JudgeIdentity(
            kind=self._settings.kind.value,
            model=self._settings.model,
            max_tokens=self._max_tokens,
        )

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        texts = [self._chat(question) for question in questions]
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        # Loads the model. Outside the `try` below: a model that cannot be loaded ends the judging,
        # whereas a batch that fails leaves the other batches to be judged.
        self._model.eval()
        size = self._settings.batch_size
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            try:
                replies = self._generate([texts[i] for i in batch])
            except (RuntimeError, ValueError) as error:  # out of memory; longer than the context
                replies = [Reply(None, f"{type(error).__name__}: {error}")] * len(batch)
            yield from zip(batch, replies, strict=True)

    def _chat(self, question: Question) -> str:
        return self._tokenizer.apply_chat_template(
            question.messages, add_generation_prompt=True, tokenize=False, enable_thinking=True
        )

    @torch.inference_mode()
    def _generate(self, texts: Sequence[str]) -> list[Reply]:
        # No special tokens are added, for the chat template has put them into the texts.
        inputs = self._tokenizer(
            list(texts), padding=True, add_special_tokens=False, return_tensors="pt"
        ).to(self._model.device)
        outputs = self._model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            max_new_tokens=self._max_tokens,
            do_sample=True,
            pad_token_id=self._tokenizer.pad_token_id,
        )
        return [self._reply(row[inputs["input_ids"].shape[1] :].tolist()) for row in outputs]

    def _reply(self, tokens: list[int]) -> Reply:
        """The text of a reply, up to the first token that ends it; without one it was cut off.

        Special tokens before that are kept. With some tokenizers ``</think>`` is a special token,
        and the verdict is what comes after the last one.
        """
        ends = self._ends
        length = next((i for i, token in enumerate(tokens) if token in ends), len(tokens))
        text = self._tokenizer.decode(tokens[:length], skip_special_tokens=False).strip("\n")
        return Reply(text, finish="stop" if length < len(tokens) else "length")

    @cached_property
    def _ends(self) -> set[int]:
        """The tokens that end a reply. Padding is one, as it follows the end within a batch."""
        named = self._model.generation_config.eos_token_id
        listed = named if isinstance(named, list) else [named]
        return {*listed, self._tokenizer.eos_token_id, self._tokenizer.pad_token_id} - {None}

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = self._load(AutoTokenizer, padding_side="left")
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer

    @cached_property
    def _model(self) -> Any:
        device = self._settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
        logger.info(f"loading the judge {self._settings.model} on {device}")
        return self._load(AutoModelForCausalLM, dtype="auto").to(device)

    def _load(self, kind: Any, **options: Any) -> Any:
        try:
            return kind.from_pretrained(self._settings.model, **options)
        except (OSError, ValueError) as error:
            raise JudgeError(
                f"the judge {self._settings.model} cannot be loaded: {error}. Set {JUDGE}_MODEL to "
                "a model of the Hugging Face hub, or to a folder that holds one"
            ) from error
