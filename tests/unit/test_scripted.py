"""The scripted engine: right answers without faults, and each fault as strong as it says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import scripted
from scripted import Script

from sparkserve.client.client import Client

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply

CHAT = "/v1/chat/completions"


def ask(script: Script, *texts: str, path: str = CHAT, at_once: bool = False, **body: Any) -> list[Reply]:
    """The replies to one request after the other, or to all at once."""

    async def run() -> list[Reply]:
        with scripted.serve(script) as endpoint:
            async with Client(endpoint) as client:
                asked = [client.ask(path, _body(path, text, body)) for text in texts]
                return await asyncio.gather(*asked) if at_once else [await one for one in asked]

    return asyncio.run(run())


def _body(path: str, text: str, body: dict[str, Any]) -> dict[str, Any]:
    if path == CHAT:
        return {"temperature": 0, "messages": [{"role": "user", "content": text}], **body}
    if path == "/generate":
        sampling = {"temperature": 0, **body.get("sampling_params", {})}
        return {"text": text, **body, "sampling_params": sampling}
    return {"temperature": 0, "prompt": text, **body}


def test_streamed_and_whole_are_equal() -> None:
    whole, again = ask(Script(), "Tell me of rivers.", "Tell me of rivers.")
    (streamed,) = ask(Script(), "Tell me of rivers.", stream=True)
    assert whole.error is again.error is streamed.error is None
    assert whole.text == again.text == streamed.text
    assert len(whole.text.split()) > 20
    assert whole.finish == streamed.finish == "stop"
    assert whole.usage is not None
    assert whole.usage == streamed.usage
    assert [a.tokens for a in streamed.arrivals] == list(range(1, whole.usage.completion_tokens))
