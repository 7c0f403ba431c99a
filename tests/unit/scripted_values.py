"""Questions to the scripted engine, for its tests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import scripted

from sparkserve.client.client import Client
from sparkserve.metrics import scrape

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply

CHAT = "/v1/chat/completions"
RIVERS = "Tell me of rivers."
TEXTS = tuple(f"Tell me of river {number}." for number in range(20))


def ask(
    script: scripted.Script, *texts: str, path: str = CHAT, at_once: bool = False, **body: Any
) -> list[Reply]:
    """The replies to one request after the other, or to all at once. Greedy unless `body` says otherwise."""

    async def run() -> list[Reply]:
        with scripted.serve(script) as endpoint:
            async with Client(endpoint) as client:
                asked = [client.ask(path, body_of(path, text, body)) for text in texts]
                return await asyncio.gather(*asked) if at_once else [await one for one in asked]

    return asyncio.run(run())


def body_of(path: str, text: str, body: dict[str, Any]) -> dict[str, Any]:
    """The request to `path` with this text."""
    if path == CHAT:
        return {"temperature": 0, "messages": [{"role": "user", "content": text}], **body}
    if path == "/generate":
        return {
            "text": text,
            **body,
            "sampling_params": {"temperature": 0, **body.get("sampling_params", {})},
        }
    return {"temperature": 0, "prompt": text, **body}


async def counters(client: Client) -> dict[str, float]:
    """What /metrics says."""
    status, body = await client.get("/metrics")
    assert status == 200
    return scrape.read(body.decode())
