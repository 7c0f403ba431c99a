"""A served model as its users meet it: the public port of this machine."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request


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
    body = {"model": "smollm2-135m", "messages": [{"role": "user", "content": question}]}
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    data = json.dumps({**body, "max_tokens": 16, "temperature": 0}).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
        text: str = json.load(answer)["choices"][0]["message"]["content"]
    return text
