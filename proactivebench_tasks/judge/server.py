"""Server: how a judge's server is reached, and what its failures mean.

Servers report errors in many ways: by a status, by the connection, and some, such as routers to
other servers, by an error in the body of a reply whose status is 200. Here each becomes one
sentence that names the address, what happened there, the proxy between if there is one, and what to
do about it. No key is in it.
"""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from openai import APIStatusError, APITimeoutError, DefaultHttpxClient, OpenAIError, Timeout

from proactivebench_tasks.config import JUDGE
from proactivebench_tasks.errors import JudgeError
from proactivebench_tasks.judge.settings import JudgeSettings

#: Payment, key, model, address, proxy: every other question would get the same status.
_HOPELESS = frozenset({401, 402, 403, 404, 405, 407})
_NOBODY_THERE = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH})

#: Seconds for a connection: a server that thinks for minutes still accepts one at once.
_CONNECT = 30.0

_QUOTED = 300  # letters of what a server says that a message quotes


class BadReply(OpenAIError):
    """What the server sent, with status 200, is no reply: what is wrong with it, and what to do."""

    def __init__(self, what: str, sent: str, step: str) -> None:
        super().__init__(f"{what}: {sent}")
        self.step = step


class _Unreachable(OpenAIError):
    """Nobody is at the address. The client sends again after other errors of a connection, but not
    after errors of its own family."""


class _HttpClient(DefaultHttpxClient):
    """Gives a reply that holds an error the status that the error names, so that the client treats
    it as any other error: it raises, or it sends the request again."""

    def send(self, request: Any, **options: Any) -> Any:
        try:
            response = super().send(request, **options)
        except Exception as error:
            if _is_nobody_there(error):
                raise _Unreachable from error
            raise
        if response.is_success:
            body = _json(response)
            if inside := _error_in(body):
                response.status_code = _status_of(inside)
            elif not (isinstance(body, dict) and isinstance(body.get("choices"), list)):
                step = f"Does the address end in /v1? If not, set {JUDGE}_URL"
                sent = response.text.strip() or "it is empty"
                raise BadReply("the reply is no chat completion", sent, step)
            elif not _has_message(body):
                raise BadReply("no text in the reply", response.text, "See the server's log")
        return response


class Server:
    """The server of these settings."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._url = f"{settings.url.rstrip('/')}/chat/completions"
        self._host = urlsplit(settings.url).hostname or ""
        self._is_near = _is_loopback(self._host)
        self._proxy = "" if self._is_near else _proxy_to(settings.url)

    @property
    def timeout(self) -> Timeout:
        seconds = self._settings.timeout
        return Timeout(seconds, connect=min(seconds, _CONNECT))

    def http_client(self) -> DefaultHttpxClient:
        """What requests are sent with. No proxy can reach this machine's own loopback addresses, so
        those of the environment are not asked for them.

        Raises ``JudgeError`` if a proxy of the environment cannot be used.
        """
        try:
            return _HttpClient(trust_env=not self._is_near)
        except ImportError as error:  # a proxy of another kind, which needs a package
            raise JudgeError(self._told(str(error), "Install that package")) from error
        except Exception as error:  # its text may hold the proxy's password
            raise JudgeError(
                self._told(f"the proxy cannot be used ({type(error).__name__})", "Mend its address")
            ) from None

    def is_hopeless(self, error: Exception) -> bool:
        """Whether every other question would get this error, too."""
        return isinstance(error, _Unreachable) or (
            isinstance(error, APIStatusError) and error.status_code in _HOPELESS
        )

    def explained(self, error: Exception) -> str:
        """What happened, where, and what to do."""
        start = f"Start the server, or set {JUDGE}_URL to where it is"
        if isinstance(error, APIStatusError):
            status = error.status_code
            said = self._said(_message(error.response))
            return self._told(f"status {_named(status)}: {said}", self._step(status))
        if isinstance(error, BadReply):
            return self._told(self._said(str(error)), error.step)
        if isinstance(error, APITimeoutError) and "Connect" in type(error.__cause__).__name__:
            return self._told(f"no connection within {self.timeout.connect:g} seconds", start)
        if isinstance(error, APITimeoutError):
            return self._told(
                f"timeout: no answer within {self._settings.timeout:g} seconds",
                f"Set {JUDGE}_TIMEOUT higher or {JUDGE}_CONCURRENCY lower, and see whether the "
                f"server is at work on {self._settings.model}",
            )
        cause = _root(error)
        said = self._said(str(cause) or type(cause).__name__)
        if isinstance(cause, socket.gaierror):
            said, step = f"unknown host {self._host} ({said})", f"Set {JUDGE}_URL to the right one"
        elif isinstance(cause, ssl.SSLError):
            step = f"Set {JUDGE}_URL to an address with the certificate's host, or with http://"
        elif _is_nobody_there(error):
            step = start
        else:
            step = "See the server's log for why it ended the connection"
        return self._told(said, step)

    def _told(self, what: str, step: str) -> str:
        if not self._proxy:
            return f"{self._url}: {what}. {step}"
        return (
            f"{self._url}, by the proxy {self._proxy}: {what}. {step}; add {self._host} to "
            "NO_PROXY if it can be reached without the proxy"
        )

    def _said(self, text: str) -> str:
        """A text from elsewhere, in one line without the key."""
        line = " ".join(self._settings.redact(text).split())
        return line if len(line) <= _QUOTED else f"{line[:_QUOTED]}..."

    def _step(self, status: int) -> str:
        settings = self._settings
        if status == 401:
            return f"Set {JUDGE}_KEY to a key of this server"
        if status in (402, 403):
            return (
                f"Set {JUDGE}_KEY to a key that may use {settings.model}, or another {JUDGE}_MODEL"
            )
        if status in (404, 405):
            return (
                f"Set {JUDGE}_MODEL ({settings.model}) to a model that "
                f"{settings.url.rstrip('/')}/models lists; if there is no such page, {JUDGE}_URL"
            )
        if status == 407:
            return "Give the proxy's address in the environment a user and a password"
        if status == 429:
            return (
                f"Set {JUDGE}_CONCURRENCY lower or {JUDGE}_RETRIES higher, or wait for your quota"
            )
        if status >= 500:
            return "See the server's log"
        return "Change what the server complains of"


def _is_nobody_there(error: BaseException) -> bool:
    cause = _root(error)
    return isinstance(cause, socket.gaierror | ssl.SSLCertVerificationError) or (
        isinstance(cause, OSError) and cause.errno in _NOBODY_THERE
    )


def _root(error: BaseException) -> BaseException:
    """What an error comes from: of a failed connection, the socket's own error."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return error


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified  # 0.0.0.0, as servers print it


def _proxy_to(url: str) -> str:
    """The proxy that the environment names for an address, without its password; empty if none."""
    parts = urlsplit(url)
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all") or ""
    if proxy_bypass(parts.hostname or ""):
        return ""
    return re.sub(r"^(\w+://)?.*@", r"\1***@", found)


def _json(response: Any) -> Any:
    """The body as JSON; ``None`` if it is none."""
    try:
        return response.json()
    except ValueError:
        return None


def _error_in(body: Any) -> Any:
    """The error that a body holds, in the ways that servers write it, or something false."""
    if not isinstance(body, dict):
        return None
    own = body if body.get("object") == "error" else None
    return body.get("error") or own or _first_choice(body).get("error")


def _first_choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _has_message(body: Mapping[str, Any]) -> bool:
    """Whether a chat completion has a message with a text, or with none."""
    message = _first_choice(body).get("message")
    return isinstance(message, dict) and isinstance(message.get("content"), str | None)


def _status_of(error: Any) -> int:
    """The status that an error within a body names; 500, after which one asks again, if none."""
    code = str(error.get("code", "")) if isinstance(error, dict) else ""
    return int(code) if re.fullmatch("[45][0-9][0-9]", code) else 500


def _message(response: Any) -> str:
    """What a server says of an error."""
    body = _json(response)
    error = _error_in(body) or body or response.text
    said = (
        error.get("message") or error.get("detail") or error if isinstance(error, dict) else error
    )
    return str(said)


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:  # not a standard one
        return str(status)
