"""OpenAIJudge: any server that speaks the OpenAI chat protocol.

For instance vLLM, SGLang, Ollama, ``transformers serve`` or a commercial one. No sampling arguments
are sent, so the server's defaults apply. Those of vLLM and SGLang are what the judge model's makers
recommend, as in the published evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed

from openai import AuthenticationError, NotFoundError, OpenAI, OpenAIError, PermissionDeniedError

from proactivebench_tasks.judge.base import Reply
from proactivebench_tasks.judge.question import Question, encodable
from proactivebench_tasks.judge.settings import JudgeSettings
from proactivebench_tasks.transcripts.open_ended import JudgeIdentity

#: A wrong key, a wrong model name, a wrong address: every other question would get the same error.
_HOPELESS = (AuthenticationError, PermissionDeniedError, NotFoundError)


class OpenAIJudge:
    """Asks ``concurrency`` questions at once, each in a thread.

    A request is sent again by the client of the ``openai`` package: after status 408, 409, 429 and
    5xx, after timeouts and after dropped connections. The client waits as long as a Retry-After
    header says; a header that says more than two minutes is a failure.
    """

    comparable = True

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._client = OpenAI(
            base_url=settings.url,
            api_key=settings.key or "none",  # the client insists on one
            timeout=settings.timeout,
            max_retries=settings.retries,
        )
        self._limit = {} if settings.max_tokens is None else {"max_tokens": settings.max_tokens}

    @property
    def identity(self) -> JudgeIdentity:
        """The server's address is not part of the identity: wherever a model is served, it is the
        same judge."""
        return JudgeIdentity(
            kind=self._settings.kind.value, model=self._settings.model, **self._limit
        )

    def ask(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        """Replies in the order of their arrival.

        The remaining questions are not asked, and their replies say so, when it has become clear
        that the server answers none: after the first error if it is one of ``_HOPELESS``, else
        after as many errors as there are requests at once. One answered question rules this out.
        """
        pool = ThreadPoolExecutor(self._settings.concurrency, thread_name_prefix="judge")
        answered, failed = False, 0
        hopeless = ""  # the error after which the remaining questions were cancelled
        try:
            pending = {pool.submit(self._reply, q): i for i, q in enumerate(questions)}
            for future in as_completed(pending):
                try:
                    reply = future.result()
                    answered = True
                except CancelledError:
                    reply = Reply(None, f"not asked, as none was answered: {hopeless}")
                except Exception as error:  # whatever it is, it costs this one answer only
                    reply = Reply(None, self._settings.redact(f"{type(error).__name__}: {error}"))
                    failed += 1
                    enough = isinstance(error, _HOPELESS) or failed >= self._settings.concurrency
                    if enough and not answered and not hopeless:
                        hopeless = reply.error or ""
                        for other in pending:
                            other.cancel()
                yield pending[future], reply
        finally:
            # If the caller stops early, by Ctrl-C for instance, do not wait for requests under way.
            pool.shutdown(wait=False, cancel_futures=True)

    def _reply(self, question: Question) -> Reply:
        completion = self._client.chat.completions.create(  # type: ignore[call-overload]
            model=self._settings.model, messages=question.messages, **self._limit
        )
        try:
            choice = completion.choices[0]
            content = choice.message.content or ""
            if content.strip():
                return Reply(encodable(content))
        except (AttributeError, IndexError, TypeError):
            raise OpenAIError(
                f"the server's reply is no chat completion: {completion!r:.200}; does the URL end "
                "in /v1?"
            ) from None
        return Reply(None, f"empty reply (finish_reason {choice.finish_reason})")
