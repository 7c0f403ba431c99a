"""One answer put together: events or a whole body, of each of the engine's ways to say it.

By its shape: a chat (`delta`, `message`), a completion (`text` of a choice), or SGLang's own /generate, whose
events repeat the text so far. Of several choices the first counts.
"""

from __future__ import annotations

import json
from typing import Any

from sparkserve.client.reply import Arrival, ToolCall, Usage

GENERATING = frozenset({"/v1/chat/completions", "/v1/completions", "/generate"})


class Answer:
    """What came so far. `error` is the first thing that went wrong, as the engine or the shape says it."""

    def __init__(self, path: str) -> None:
        self.error: str | None = None
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.body: Any = None
        self.arrivals: list[Arrival] = []
        self.done = False  # the stream said so
        self._path = path
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, list[str]] = {}  # id, name, arguments
        self._length = 0  # of /generate's text

    @property
    def text(self) -> str:
        """What the model said."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """What it thought."""
        return "".join(self._reasoning)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """In the engine's order."""
        return tuple(ToolCall(*self._calls[index]) for index in sorted(self._calls))

    def event(self, data: bytes, at: float) -> None:
        """One event of a stream, that arrived `at` seconds after the request was sent."""
        if data == b"[DONE]":
            self.done = True
            return
        try:
            event = json.loads(data)
            if event.get("error"):
                self.fail(f"the stream said: {said(event)}")
                return
            said_now = self._take(event)
            if said_now:
                # Only a count beside words is of these words; the last event has the whole request's.
                tokens = self.usage.completion_tokens if self.usage and self._has_usage(event) else None
                self.arrivals.append(Arrival(at, said_now, tokens))
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            self.fail(f"an event of another shape ({type(error).__name__}): {shown(data)}")

    def whole(self, data: bytes, content_type: str) -> None:
        """The body of an answer that is no stream."""
        try:
            is_json = "json" in content_type or self._path in GENERATING
            self.body = json.loads(data) if is_json else data.decode(errors="replace")
            if self._path in GENERATING and not isinstance(self.body, list):
                self._take(self.body)
                if self.finish is None:
                    self.fail("the answer has no finish reason")
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            self.fail(f"an answer of another shape ({type(error).__name__}): {shown(data)}")

    def refused(self, status: int, data: bytes) -> None:
        """The body of an answer with another status than 200."""
        try:
            self.body = json.loads(data)
        except (ValueError, RecursionError):
            self.body = data.decode(errors="replace")
        self.fail(f"HTTP {status}: {said(self.body)}")

    def end_of_stream(self) -> None:
        """No more events come."""
        if not self.done:
            self.fail("the stream ended without [DONE]")
        elif self.finish is None:
            self.fail("the stream ended without a finish reason")

    def fail(self, why: str) -> None:
        """Say what is wrong, unless something was before."""
        self.error = self.error or why

    def _take(self, part: dict[str, Any]) -> str:
        """Add one event or body; returns what it said."""
        if "meta_info" in part:
            return self._take_generate(part)
        if usage := part.get("usage"):
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            self._count(usage["prompt_tokens"], usage["completion_tokens"], cached)
        said_now = ""
        for choice in part["choices"]:
            if choice.get("index", 0):
                continue
            if choice.get("finish_reason"):
                self._finish(choice["finish_reason"])
            if "text" in choice:
                said_now = self._say(self._text, choice["text"])
            else:
                said_now = self._take_message(choice["delta"] if "delta" in choice else choice["message"])
        return said_now

    def _take_message(self, message: dict[str, Any]) -> str:
        said_now = self._say(self._reasoning, message.get("reasoning_content"))
        said_now += self._say(self._text, message.get("content"))
        for position, call in enumerate(message.get("tool_calls") or ()):
            index = call.get("index")
            merged = self._calls.setdefault(position if index is None else index, ["", "", ""])
            function = call.get("function") or {}
            merged[0] = merged[0] or _text(call.get("id"))
            merged[1] = merged[1] or _text(function.get("name"))
            arguments = _text(function.get("arguments"))
            merged[2] += arguments
            said_now += _text(function.get("name")) + arguments
        return said_now

    def _take_generate(self, part: dict[str, Any]) -> str:
        meta, whole = part["meta_info"], _text(part["text"])
        self._count(meta["prompt_tokens"], meta["completion_tokens"], meta.get("cached_tokens"))
        said_now, self._text, self._length = whole[self._length :], [whole], len(whole)
        if meta.get("finish_reason"):
            self._finish(meta["finish_reason"]["type"])
        return said_now

    def _finish(self, reason: str) -> None:
        self.finish = _text(reason)
        if reason == "abort":
            self.fail("the engine gave the request up (finish reason abort)")

    def _count(self, prompt: int, completion: int, cached: int | None) -> None:
        self.usage = Usage(int(prompt), int(completion), None if cached is None else int(cached))

    @staticmethod
    def _has_usage(event: dict[str, Any]) -> bool:
        return bool(event.get("usage")) or "meta_info" in event

    @staticmethod
    def _say(where: list[str], text: object) -> str:
        where.append(_text(text))
        return where[-1]


def said(body: object) -> str:
    """The words of an engine's error, in whichever of its shapes."""
    if isinstance(body, dict):
        error = body.get("error", body)
        message = error.get("message") if isinstance(error, dict) else error
        if isinstance(message, str) and message:
            return shown(message.encode(errors="replace"))
    return shown((body if isinstance(body, str) else json.dumps(body)).encode(errors="replace"))


def shown(data: bytes) -> str:
    """At most 200 characters, on one line."""
    text = " ".join(data.decode(errors="replace").split())
    return text if len(text) <= 200 else f"{text[:197]}..."


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text belongs")
    return value
