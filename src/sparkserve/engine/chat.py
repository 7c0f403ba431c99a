"""A small client of the OpenAI chat API: what readiness, canaries and smoke ask."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from sparkserve import api_key

if TYPE_CHECKING:
    from pathlib import Path

# trust_env: a proxy of the user's shell must not see requests to our own engine. One client for all: making
# one loads the certificate store, which costs 40 ms.
_CLIENT = httpx.Client(trust_env=False)


class ChatError(Exception):
    """A request that got no usable answer; the text says what came instead."""


class UnreachableError(ChatError):
    """Nobody answered at all, or not in time."""


class RefusedError(ChatError):
    """The endpoint wants a key, and took none of ours."""


class Answer(NamedTuple):
    """A finished completion. Times are in seconds since the request; `first` is None without streaming."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    first: float | None = None


def health(endpoint: str, *, timeout_s: float) -> None:
    """Ask /health. Raises `ChatError` unless it says 200."""
    try:
        code = _CLIENT.get(f"{endpoint}/health", timeout=timeout_s).status_code
    except httpx.HTTPError as error:
        raise _unreachable(error) from None
    if code != httpx.codes.OK:
        raise _error(code, f"/health says {code}")


def complete(
    endpoint: str,
    model: str,
    question: str,
    *,
    max_tokens: int,
    timeout_s: float,
    key_file: Path | None = None,
) -> Answer:
    """One chat completion at temperature 0. Raises `ChatError`, `KEY.FILE`."""
    begin = time.monotonic()
    try:
        request = _request(model, question, max_tokens)
        headers = api_key.headers(key_file)
        response = _CLIENT.post(_url(endpoint), json=request, headers=headers, timeout=timeout_s)
    except httpx.HTTPError as error:
        raise _unreachable(error) from None
    if response.status_code != httpx.codes.OK:
        raise _error(response.status_code, f"HTTP {response.status_code}: {response.text[:300]}")
    try:
        body = response.json()
        return _answer(body["choices"][0]["message"]["content"], body["usage"], begin)
    except (ValueError, KeyError, IndexError, TypeError):
        raise ChatError(f"not a chat completion: {response.text[:300]}") from None


def stream(
    endpoint: str,
    model: str,
    question: str,
    *,
    max_tokens: int,
    timeout_s: float,
    key_file: Path | None = None,
) -> Answer:
    """The same as `complete`, token by token. Raises as it does."""
    begin = time.monotonic()
    request = {
        **_request(model, question, max_tokens),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    text, usage, first, last = "", None, None, ""
    try:
        headers = api_key.headers(key_file)
        with _CLIENT.stream(
            "POST", _url(endpoint), json=request, headers=headers, timeout=timeout_s
        ) as response:
            if response.status_code != httpx.codes.OK:
                response.read()
                raise _error(response.status_code, f"HTTP {response.status_code}: {response.text[:300]}")
            for line in response.iter_lines():
                if not line.startswith("data:"):
                    continue
                last = line[5:].strip()
                if last == "[DONE]":
                    break
                event = json.loads(last)
                # The event with the usage counts has no choices.
                piece = "".join(choice["delta"].get("content") or "" for choice in event["choices"])
                if piece and first is None:
                    first = time.monotonic() - begin
                text += piece
                usage = event.get("usage") or usage
        if last != "[DONE]":
            raise ChatError("the stream ended without [DONE]")
        return _answer(text, usage, begin)._replace(first=first)
    except httpx.HTTPError as error:
        raise _unreachable(error) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ChatError(f"not a chat completion stream: {last[:300]}") from None


def _answer(text: Any, usage: Any, begin: float) -> Answer:
    if not isinstance(text, str) or not text:
        raise ChatError("an empty answer")
    return Answer(
        text, int(usage["prompt_tokens"]), int(usage["completion_tokens"]), time.monotonic() - begin
    )


def _request(model: str, question: str, max_tokens: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}]
    return {"model": model, "messages": messages, "temperature": 0, "max_tokens": max_tokens}


def _url(endpoint: str) -> str:
    return f"{endpoint}/v1/chat/completions"


def _error(code: int, text: str) -> ChatError:
    refused = code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
    return RefusedError(text) if refused else ChatError(text)


def _unreachable(error: httpx.HTTPError) -> ChatError:
    return UnreachableError(f"{type(error).__name__}: {error}")
