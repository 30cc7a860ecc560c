"""NoAnswer: why a model's reply has nothing in it that could be graded."""

from __future__ import annotations

from dataclasses import dataclass

#: How the text begins that stands in for a reply without an answer, followed by the reason. A
#: wrapper passes on no more than a text (see model_patches/wrappers/finish_reason.py).
MARK = "[PROACTIVEBENCH_NO_ANSWER] "

_QUOTED = 80  # letters of a text that a reason quotes


@dataclass(frozen=True)
class ModelReply:
    """A model's reply, as far as it is known. ``text``: ``None`` where a server sent null.

    ``finish``: the server's ``finish_reason``. ``reasoned``: a reasoning came with it, apart from
    the text. ``limit``: of new tokens, as it was asked for.
    """

    text: str | None
    finish: str = ""
    refusal: str = ""
    reasoned: bool = False
    output_tokens: int = 0
    reasoning_tokens: int = 0
    limit: int = 0

    def fault(self) -> str | None:
        """Why there is no answer in it, and what to set; ``None`` if there is one. A model that
        ended at once, without a word and without reasoning, has answered nothing."""
        if self.finish == "content_filter":
            return (
                f"a content filter of the provider stopped it{self._after()} (finish_reason "
                "content_filter). Only the provider's own settings can change that"
            )
        if (self.text or "").strip():
            return None
        if self.refusal:
            return f"the model refused to answer: {self.refusal!r:.{_QUOTED}}"
        if self.finish == "length" or 0 < self.limit <= self.reasoning_tokens:
            return (
                f"the limit of {self.limit} new tokens {self._spent()}. `--gen_kwargs "
                f"max_new_tokens={_more_than(self.limit)}` gives it more room"
            )
        if self.reasoned or self.reasoning_tokens:
            return (
                f"the model reasoned and then said nothing{self._finished()}. If its answers are "
                "among the reasoning, the server's parser of reasoning does not fit the model"
            )
        if self.text is None:
            return f"the server sent null in place of a text{self._finished()}"
        return None

    def _after(self) -> str:
        text = (self.text or "").strip()
        return f" after {text!r:.{_QUOTED}}" if text else ""

    def _spent(self) -> str:
        if self.reasoning_tokens:
            counted = f", {self.reasoning_tokens} of {self.output_tokens} tokens"
        elif self.output_tokens:
            counted = f", {self.output_tokens} tokens"
        else:
            counted = ""
        if self.reasoned or self.reasoning_tokens:
            return f"was spent on reasoning{self._finished(counted)}, so there is no answer"
        return f"was reached before the model had said anything{self._finished(counted)}"

    def _finished(self, counted: str = "") -> str:
        said = f"finish_reason {self.finish}" if self.finish else "no finish_reason"
        return f" ({said}{counted})"


def _more_than(limit: int) -> int:
    """A limit to try after this one: what open-ended answers have, or several times as much."""
    return max(4096, 8 * limit)
