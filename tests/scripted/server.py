"""The engine's HTTP face, and the thread it runs in."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import aclosing, contextmanager
from itertools import count
from typing import TYPE_CHECKING

from scripted import http, tokens
from scripted.engine import Engine
from scripted.request import BadRequestError, read
from scripted.script import Script
from scripted.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripted.http import Exchange
    from scripted.request import Request


class Server:
    """One engine on one port."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._engine = Engine(script)
        self._asked = count(1)
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port."""
        self._listening = await asyncio.start_server(self._connection, host, port)
        return int(self._listening.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """End, whatever is under way."""
        self._listening.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._engine.stop()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (exchange := await http.read(reader, writer)) is not None:
                await self._serve(exchange)
                await exchange.drain()
                if exchange.cut:
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort() if exchange is not None and exchange.cut else writer.close()

    async def _serve(self, exchange: Exchange) -> None:
        if exchange.path in SHAPES:
            await self._generate(exchange)
        elif exchange.path in ("/v1/models", "/models"):
            exchange.send({"object": "list", "data": [self._model()]})
        elif exchange.path in ("/model_info", "/get_model_info"):
            exchange.send(self._model_info())
        elif exchange.path in ("/server_info", "/get_server_info"):
            exchange.send(self._server_info())
        elif exchange.path in ("/health", "/health_generate", "/ready", "/ping"):
            exchange.send(b"")
        elif exchange.path == "/metrics":
            exchange.send(self._engine.counters.text(self._engine), kind="text/plain; version=0.0.4")
        elif exchange.path == "/flush_cache":
            self._flush(exchange)
        elif exchange.path in ("/tokenize", "/v1/tokenize"):
            self._tokenize(exchange)
        else:
            exchange.send({"detail": "Not Found"}, 404)

    # -- generation

    async def _generate(self, exchange: Exchange) -> None:
        script, number = self._script, next(self._asked)
        if script.error_every and number % script.error_every == 0:
            exchange.send(_error("the scripted engine fails here", script.error_status), script.error_status)
            return
        try:
            request = read(exchange.path, json.loads(exchange.body), script.context)
        except (BadRequestError, ValueError, TypeError, LookupError, AttributeError) as error:
            body = (
                {"error": {"message": str(error)}}
                if exchange.path == "/generate"
                else _error(str(error), 400)
            )
            exchange.send(body, 400)
            return
        drop = script.drop if script.drop_every and number % script.drop_every == 0 else ""
        await self._answer(exchange, request, drop)

    async def _answer(self, exchange: Exchange, request: Request, drop: str) -> None:
        running = self._engine.start(request)
        shape = SHAPES[request.path](self._script, running)
        events = 0
        if request.stream:
            exchange.begin()
        async with aclosing(self._engine.steps(running)) as steps:
            async for new in steps:
                if exchange.gone:
                    exchange.cut = True
                    return
                shape.take(new)
                if not request.stream:
                    continue
                for event in shape.events(new):
                    events += 1
                    if drop != "event" or events != 4:
                        exchange.event(http.dumps(event))
                await exchange.drain()
                if drop in ("cut", "finish") and len(shape.out) >= 4:
                    exchange.cut = drop == "cut"
                    if drop == "finish":
                        exchange.end()
                    return
        if not request.stream:
            exchange.cut = drop == "cut"
            exchange.send(shape.whole())
        else:
            for event in shape.end():
                exchange.event(http.dumps(event))
            exchange.event(b"[DONE]")
            exchange.end()

    # -- the rest

    def _model(self) -> dict[str, object]:
        name = self._script.model
        fields = {"owned_by": "sglang", "root": name, "parent": None, "max_model_len": self._script.context}
        return {"id": name, "object": "model", "created": 0, **fields}

    def _model_info(self) -> dict[str, object]:
        return {
            "model_path": self._script.model,
            "served_model_name": self._script.model,
            "tokenizer_path": self._script.model,
            "is_generation": True,
            "preferred_sampling_params": None,
            "weight_version": "default",
            "load_format": "auto",
            "reasoning_parser": None,
            "tool_call_parser": "scripted",  # null is an engine that leaves calls in the text
            "disaggregation_mode": "null",
            "has_image_understanding": False,
            "has_audio_understanding": False,
            "model_type": "scripted",
            "architectures": ["Scripted"],
        }

    def _server_info(self) -> dict[str, object]:
        script = self._script
        return {
            "model_path": script.model,
            "served_model_name": script.model,
            "context_length": script.context,
            "page_size": script.page,
            "max_running_requests": script.slots,
            "random_seed": script.seed,
            "enable_metrics": True,
            "enable_cache_report": True,
            "speculative_num_draft_tokens": script.draft + 1 if script.draft else None,
            "internal_states": [{}],
            "version": "0.5.23",
        }

    def _flush(self, exchange: Exchange) -> None:
        if self._engine.running or self._engine.waiting:
            exchange.send("Flush cache failed.\n", 400, "text/plain")
            return
        self._engine.cache.flush()
        exchange.send("Cache flushed.\n", kind="text/plain; charset=utf-8")

    def _tokenize(self, exchange: Exchange) -> None:
        try:
            prompt = json.loads(exchange.body)["prompt"]
            ids = [tokens.encode(text) for text in ([prompt] if isinstance(prompt, str) else prompt)]
        except (ValueError, TypeError, LookupError):
            exchange.send(_error("Exactly one of 'prompt' or 'messages' must be provided.", 400), 400)
            return
        counts = [len(part) for part in ids]
        one = isinstance(prompt, str)
        answer = {"tokens": ids[0] if one else ids, "count": counts[0] if one else counts}
        exchange.send({**answer, "max_model_len": self._script.context})


def _error(message: str, status: int) -> dict[str, object]:
    kind = "BadRequestError" if status < 500 else "InternalServerError"
    return {"object": "error", "message": message, "type": kind, "param": None, "code": status}


@contextmanager
def serve(script: Script | None = None, port: int = 0) -> Iterator[str]:
    """Run an engine in a thread, on loopback; gives its endpoint."""
    loop = asyncio.new_event_loop()
    server = Server(script or Script())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        bound = asyncio.run_coroutine_threadsafe(server.start("127.0.0.1", port), loop).result()
        try:
            yield f"http://127.0.0.1:{bound}"
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
