"""What a gate asks with: requests that are counted for who watches and hashed for the evidence."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from typing import TYPE_CHECKING, Any

from sparkserve.gates.contract import LOOK_S, CannotRunError

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply
    from sparkserve.gates.contract import Context

CHAT = "/v1/chat/completions"
# Both names that templates have for it; a template takes no notice of what it does not know.
NO_THINKING = {"thinking": False, "enable_thinking": False}
_FLUSHES = 50
_FLUSH_S = 0.1


class Asker:
    """The requests of one gate, of which it expects to send `total`."""

    def __init__(self, context: Context, total: int) -> None:
        self._context = context
        self._total = total
        self._done = 0
        self._prompts: list[str] = []

    @property
    def prompts(self) -> tuple[str, ...]:
        """The sha256 of each body that was sent, without the model's name, in the order of sending."""
        return tuple(self._prompts)

    async def chat(self, prompt: str | list[dict[str, Any]], max_tokens: int, **options: Any) -> Reply:
        """A chat completion at temperature 0 without thinking, unless `options` say otherwise."""
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        body = {"messages": messages, "temperature": 0, "max_tokens": max_tokens}
        return await self.ask(CHAT, {**body, "chat_template_kwargs": NO_THINKING, **options})

    async def ask(self, path: str, body: dict[str, Any]) -> Reply:
        """Any request. Raises `CannotRunError` when nobody answers: a dead endpoint has no quality."""
        text = json.dumps(body, sort_keys=True, ensure_ascii=False)
        self._prompts.append(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
        reply = await self._context.client.ask(path, {"model": self._context.model, **body})
        self._done += 1
        self._context.progress(self._done, max(self._done, self._total))
        if reply.status == 0:
            raise CannotRunError(f"request {self._done} got no answer: {reply.error}")
        return reply

    async def flush(self) -> None:
        """Empty the prefix cache, so that the next request is cold. Raises `CannotRunError`.

        SGLang refuses while a request runs, and the last one may still be on its way out.
        """
        for _ in range(_FLUSHES):
            status, body = await self._context.client.get("/flush_cache", timeout_s=LOOK_S)
            if status == 200:
                return
            await asyncio.sleep(_FLUSH_S)
        raise CannotRunError(f"the prefix cache is not emptied: HTTP {status}, {body[:100]!r}")


async def context_tokens(context: Context) -> int:
    """The most tokens of a request, prompt and answer. Raises `CannotRunError` when nobody says it."""
    status, body = await context.client.get("/v1/models", timeout_s=LOOK_S)
    try:
        models = {model["id"]: model["max_model_len"] for model in json.loads(body)["data"]}
        return int(models[context.model])
    except (ValueError, KeyError, TypeError):
        raise CannotRunError(f"/v1/models does not say the context of {context.model} ({status})") from None


async def model_info(context: Context) -> dict[str, Any]:
    """What SGLang says of its model; empty of another engine."""
    status, body = await context.client.get("/model_info", timeout_s=LOOK_S)
    try:
        info = json.loads(body) if status == 200 else {}
    except ValueError:
        return {}
    return info if isinstance(info, dict) else {}


def usable(reply: Reply) -> Reply:
    """The reply of a request that every healthy engine answers. Raises `CannotRunError` for another."""
    if reply.error is not None:
        raise CannotRunError(reply.error)
    return reply


def randomness(context: Context, gate: str) -> random.Random:
    """What is random in a gate, from the seed of the run; two gates of one run share nothing."""
    return random.Random(f"{gate}/{context.seed}")  # noqa: S311 - to be repeated, not to be secret
