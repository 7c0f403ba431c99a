"""What the front says itself: refusals and errors in the form of the API that was asked, health, status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from sparkserve.front.health import Health

# All of these ask whether this endpoint works. In the engine, most of them ask only its HTTP server.
HEALTH = frozenset({"/health", "/health_generate", "/ready", "/ping"})
STATUS = "/sparkserve/status"
# The engine's counters, which say what this endpoint is used for. SGLang takes every path that begins so.
COUNTERS = "/metrics"

# The types of Anthropic's errors.
_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    503: "overloaded_error",
}

# A successful answer to one of these has been through every rank.
GENERATES = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/messages", "/generate"})

# How a piece of a stream begins that says nothing about the ranks: comments, pings, errors, ends.
_NO_TOKEN = (
    b":", b"event: ping", b"event: error", b"event: message_start", b'data: {"error"',
    b'data: {"object":"error"', b"data: [DONE]", b"\n",
)  # fmt: skip


class Answer(NamedTuple):
    """A whole response of the front's own."""

    status: int
    body: bytes
    retry_after_s: int | None = None

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Its header fields."""
        fields = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(self.body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        if self.status == 401:
            fields.append((b"www-authenticate", b"Bearer"))
        if self.retry_after_s is not None:
            fields.append((b"retry-after", str(self.retry_after_s).encode()))
        return fields


def route(target: bytes) -> str:
    """The decoded path of a request's target, which is what the engine would route by."""
    try:
        return unquote(urlsplit(target.decode("latin-1")).path).rstrip("/") or "/"
    except ValueError:  # half an IPv6 address; the engine may say what it thinks of that
        return "/"


def proves_token(data: bytes) -> bool:
    """Whether this piece of an event stream carries something that the model said."""
    return not data.startswith(_NO_TOKEN)


def error(status: int, code: str, message: str, path: str, retry_after_s: int | None = None) -> Answer:
    """An error as the OpenAI API spells it, or Anthropic's when its path was asked."""
    return Answer(status, _json(_error(status, code, message, path)), retry_after_s)


def error_event(status: int, code: str, message: str, path: str) -> bytes:
    """The same inside an event stream, also after half an event."""
    data = _json(_error(status, code, message, path))
    name = b"event: error\n" if path == "/v1/messages" else b""
    return b"\n\n" + name + b"data: " + data + b"\n\n"


def _error(status: int, code: str, message: str, path: str) -> dict[str, Any]:
    if path.startswith("/v1/messages"):
        kind = _ANTHROPIC.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    kind = "invalid_request_error" if status < 500 else "service_unavailable_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def refusal(health: Health, path: str) -> Answer:
    """503 at once, without asking the engine."""
    message = f"The model is not available ({health.verdict}): {health.reason}."
    return error(503, f"group_{health.verdict}", message, path, health.retry_after_s)


def no_key(path: str) -> Answer:
    """401: the request shows no key of ours."""
    message = "This endpoint wants one of its API keys, as `Authorization: Bearer KEY` or `x-api-key: KEY`."
    return error(401, "invalid_api_key", message, path)


def no_keys(path: str) -> Answer:
    """503: no key is known."""
    message = "The API keys of this endpoint cannot be read. The journal of its front says why."
    return error(503, "keys_unreadable", message, path, 10)


def health(health: Health) -> Answer:
    """200 only when a token came out of the whole group lately."""
    good = health.verdict == "ok"
    age = health.token_age_s
    body = {
        "status": health.verdict,
        "reason": health.reason,
        "boot": health.group.boot,
        "last_token_age_s": None if age is None else round(age, 3),
    }
    return Answer(200 if good else 503, _json(body), None if good else health.retry_after_s)


def status(values: dict[str, Any]) -> Answer:
    """The status page."""
    return Answer(200, _json(values))


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
