"""A served model as its users meet it: the public port of this machine."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


def health(port: int) -> int:
    """The status of /health; 0 when nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=3) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return 0


def ask(port: int, question: str) -> str:
    """One greedy answer."""
    with _asked(port, question) as answer:
        text: str = json.load(answer)["choices"][0]["message"]["content"]
    return text


def pieces(port: int, question: str) -> Generator[str, None, None]:
    """The same as it comes."""
    with _asked(port, question, stream=True) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])["choices"][0]["delta"].get("content") or ""


def _asked(port: int, question: str, **more: object) -> http.client.HTTPResponse:
    """Its answer, to be closed. Raises OSError where nobody answers, or with an error."""
    body = {"model": "smollm2-135m", "messages": [{"role": "user", "content": question}], **more}
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    data = json.dumps({**body, "max_tokens": 16, "temperature": 0}).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    found: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=120)  # noqa: S310
    return found
