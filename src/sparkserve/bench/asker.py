"""The bench's requests, in the form its endpoint takes: what it refuses once is left out."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

from sparkserve.client.client import STREAM_OPTIONS
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.client.client import Client
    from sparkserve.client.reply import Reply

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
TIMEOUT_S = 3600.0  # a prompt of 1,000,000 tokens took 324 s on three Sparks (mia 9.2)

# What an engine may not know, in the order in which it is given up, and what is then not so.
_OPTIONAL = {
    "chat_template_kwargs": "thinking is as the model's template has it",
    "cache_salt": "prompts of a second run on this engine may be in its prefix cache",
    "stream_options": "no token counts in each event, so no ITL",
    "ignore_eos": "lengths are not forced: answers may be shorter than asked for",
}


class Asker:
    """Requests to one model. `notes` says what its endpoint did not take.

    Every wave has a salt of its own, so that no prompt is in the prefix cache.
    """

    def __init__(self, client: Client, model: str) -> None:
        self.client = client
        self.model = model
        self.notes: list[str] = []
        self._refused: list[str] = []

    async def chat(self, prompts: Sequence[str], tokens: int, seeds: Sequence[int] = ()) -> list[Reply]:
        """One chat for each prompt, all at once, each answered with exactly `tokens` tokens.

        At temperature 0; with `seeds`, one each, at temperature 1.0 and top_p 0.95.
        """
        salt = _salt()
        messages = [[{"role": "user", "content": prompt}] for prompt in prompts]
        bodies = [self._body(tokens, salt) | {"messages": each} for each in messages]
        for body, seed in zip(bodies, seeds, strict=False):
            body |= {"temperature": 1.0, "top_p": 0.95, "seed": seed}
        return await self._wave(CHAT, bodies)

    async def complete(self, prompts: Sequence[str], tokens: int, salt: str | None = None) -> list[Reply]:
        """The same without a chat template. Waves of one `salt` share the prefix cache."""
        shared = self._body(tokens, salt or _salt())
        return await self._wave(COMPLETIONS, [shared | {"prompt": text} for text in prompts])

    async def count(self, text: str) -> int | None:
        """Tokens of a completion's prompt by the engine's tokenizer; None when it does not count for us."""
        reply = await self.client.ask("/tokenize", {"model": self.model, "prompt": text})
        count = reply.body.get("count") if isinstance(reply.body, dict) else None
        return count if isinstance(count, int) else None

    async def prompt_tokens(self, text: str) -> int:
        """The same by what a request for one token says that it had. Raises `BENCH.REQUEST`."""
        replies = await self.complete([text], 1)
        if replies[0].usage is None:
            raise failed(COMPLETIONS, replies)
        return replies[0].usage.prompt_tokens

    def _body(self, tokens: int, salt: str) -> dict[str, Any]:
        return {
            "model": self.model,
            "max_tokens": tokens,
            "min_tokens": tokens,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            "stream_options": STREAM_OPTIONS,
            "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
            "cache_salt": salt,
        }

    async def _wave(self, path: str, bodies: list[dict[str, Any]]) -> list[Reply]:
        while True:
            sent = [self._taken(path, body) for body in bodies]
            replies = await asyncio.gather(
                *(self.client.ask(path, body, timeout_s=TIMEOUT_S) for body in sent)
            )
            if not any(reply.status == 400 for reply in replies) or not self._give_up(replies):
                return replies

    def _taken(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        left_out = {*self._refused, *(["chat_template_kwargs"] if path == COMPLETIONS else [])}
        body = {key: value for key, value in body.items() if key not in left_out}
        if "stream_options" in left_out:
            body["stream_options"] = {"include_usage": True}
        if "ignore_eos" in left_out:
            del body["min_tokens"]
        return body

    def _give_up(self, replies: Sequence[Reply]) -> bool:
        """Leave out one thing more; False when nothing is left to leave out."""
        said = next(reply.error or "" for reply in replies if reply.status == 400)
        left = [name for name in _OPTIONAL if name not in self._refused]
        if not left:
            return False
        name = next((name for name in left if name in said or _first(name) in said), left[0])
        self._refused.append(name)
        self.notes.append(f"the endpoint refuses {name}: {_OPTIONAL[name]}")
        return True


def _first(name: str) -> str:
    return {"ignore_eos": "min_tokens", "stream_options": "continuous_usage_stats"}.get(name, name)


def _salt() -> str:
    return uuid.uuid4().hex


def failed(where: str, replies: Sequence[Reply]) -> SparkserveError:
    """The error for a wave that cannot be measured."""
    bad = [reply for reply in replies if reply.error is not None]
    return SparkserveError(
        "BENCH.REQUEST",
        expected=f"{len(replies)} whole answers",
        found=f"{len(bad)} that failed, the first with: {bad[0].error}" if bad else "answers without usage",
        where=where,
        do="Look at the engine's log: ./sparkserve logs.",
    )
