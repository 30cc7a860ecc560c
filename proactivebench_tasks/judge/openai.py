"""OpenAIJudge: any server that speaks the OpenAI chat protocol.

For instance vLLM, SGLang, Ollama, ``transformers serve`` or a commercial one. No sampling arguments
are sent, so the server's defaults apply. Those of vLLM and SGLang are what the judge model's makers
recommend, as in the published evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from openai import OpenAI

from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.judge.base import Reply
from proactivebench_tasks.judge.question import Question, encodable
from proactivebench_tasks.judge.server import Server
from proactivebench_tasks.judge.settings import JudgeSettings
from proactivebench_tasks.transcripts.open_ended import JudgeIdentity


class OpenAIJudge:
    """Asks ``concurrency`` questions at once, each in a thread.

    A request is sent again by the client of the ``openai`` package: after status 408, 409, 429 and
    5xx, after timeouts and after dropped connections. The client waits as long as a Retry-After
    header says; a header that says more than two minutes is a failure.
    """

    comparable = True

    def __init__(self, settings: JudgeSettings) -> None:
        """Raises ``JudgeError`` if the environment names a proxy that cannot be used."""
        self._settings = settings
        self._server = Server(settings)
        self._client = OpenAI(
            base_url=settings.url,
            api_key=settings.key or "none",  # the client insists on one
            timeout=self._server.timeout,
            max_retries=settings.retries,
            http_client=self._server.http_client(),
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

        Raises ``JudgeError``, after the replies to the requests that were under way, when it has
        become clear that the other questions would fail, too: after an error that each of them
        would get (``Server.is_hopeless``), or after as many errors as there are requests at once if
        no question was answered.
        """
        pool = ThreadPoolExecutor(self._settings.concurrency, thread_name_prefix="judge")
        answered, failed, ended = False, 0, ""
        try:
            pending = {pool.submit(self._reply, q): i for i, q in enumerate(questions)}
            for future in as_completed(pending):
                if future.cancelled():
                    continue
                try:
                    reply = future.result()
                    answered = True
                except Exception as error:  # whatever it is, it costs this one answer only
                    reply = Reply(None, self._server.explained(error))
                    failed += 1
                    enough = failed >= self._settings.concurrency and not answered
                    if not ended and (enough or self._server.is_hopeless(error)):
                        ended = reply.error or ""
                        for other in pending:
                            other.cancel()
                yield pending[future], reply
        finally:
            # If the caller stops early, by Ctrl-C for instance, do not wait for requests under way.
            pool.shutdown(wait=False, cancel_futures=True)
        if ended:
            raise JudgeError(ended)

    def _reply(self, question: Question) -> Reply:
        completion = self._client.chat.completions.create(  # type: ignore[call-overload]
            model=self._settings.model, messages=question.messages, **self._limit
        )
        choice = completion.choices[0]  # there is one, with a text or null: see `server`
        content, finish = choice.message.content, choice.finish_reason
        refusal = getattr(choice.message, "refusal", None)
        if refusal and not content:
            return Reply(None, self._settings.redact(f"the judge refused: {refusal}"))
        return Reply(encodable(content or ""), finish=finish and str(finish))
