"""What one request brought. Times are in seconds since the request was sent, on the monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Usage(NamedTuple):
    """The engine's token counts, never counted from chunks: one chunk of a speculating engine has several."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None  # of the prompt; None when the engine does not say


class Arrival(NamedTuple):
    """One event of a stream that said something: text, reasoning or a part of a tool call."""

    at: float
    text: str
    tokens: int | None  # completion tokens so far, where the engine says it with each event


class ToolCall(NamedTuple):
    """A call of a tool. `arguments` is the text that the model wrote, parsed by nobody."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The end of a request, whole or not: `error` says in words why it is not, and is None when it is.

    `status` is 0 when no answer came at all. `body` is the parsed JSON of a whole answer, None of a stream.
    """

    status: int
    error: str | None
    seconds: float
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: str | None = None
    usage: Usage | None = None
    arrivals: tuple[Arrival, ...] = ()
    body: Any = None
    started: float = field(default=0.0, compare=False)  # when it was sent, on the monotonic clock

    @property
    def first(self) -> float | None:
        """Seconds to the first event that said something; None without streaming."""
        return self.arrivals[0].at if self.arrivals else None
