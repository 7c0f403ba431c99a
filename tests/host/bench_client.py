"""What the client adds to the time of a streamed token: 64 streams and 5,000 events/s, beside a bare socket.

    sudo chrt -f 10 python tests/host/bench_client.py [--rounds 7] [--httpx] [--write]

A stub in a process of its own writes events of SGLang's size, each with the time of its writing (one clock:
CLOCK_MONOTONIC). A reader notes when it has the bytes: `bare` is a loop of epoll and recv that parses nothing
before the end, `client` is ours, `httpx` is httpx with its lines read as JSON. They take turns. Two patterns:

    spread   every stream at a moment of its own
    step     all streams at once, as a batched decode step makes them

Added latency of a round = the reader's percentile - the bare socket's beside it. --write makes
docs/results/client.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from sparkserve.client.client import Client

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

CHECKOUT = Path(__file__).parents[2]
STREAMS = 64
EVENTS_S = 5000.0
GAP_S = STREAMS / EVENTS_S
SKIPPED = 10  # of each stream's first events: connections, caches
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)
FRONT = (
    b'data: {"id":"0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1764543000,'
    b'"model":"smollm2","choices":[{"index":0,"delta":{"reasoning_content":null,"content":"'
)
BACK = (
    b'"},"logprobs":null,"finish_reason":%b,"matched_stop":null}],"usage":{"prompt_tokens":512,'
    b'"completion_tokens":%d,"total_tokens":1024,"prompt_tokens_details":null,"reasoning_tokens":0,'
    b'"completion_tokens_details":null}}\n\n'
)


def chunk(line: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(line), line)


class Stub(asyncio.Protocol):
    """One stream. The body says its pattern, its number of events and its place among the streams."""

    together: set[Stub]
    asked = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.asked += data
        body = self.asked.partition(b"\r\n\r\n")[2]
        if not body.endswith(b"}"):  # httpx sends it apart from the head
            return
        self.asked, asked = b"", json.loads(body)
        self.events, self.sent = asked["events"], 0
        self.transport.write(HEAD)
        if asked["pattern"] == "step":
            self.together.add(self)
        else:
            loop = asyncio.get_running_loop()
            self.due = loop.time() + 0.2 + asked["place"] * GAP_S / STREAMS
            loop.call_at(self.due, self.turn)

    def turn(self) -> None:
        self.write()
        self.due += GAP_S
        if self.sent < self.events:
            asyncio.get_running_loop().call_at(self.due, self.turn)

    def write(self) -> None:
        self.sent += 1
        last = self.sent == self.events
        back = BACK % (b'"stop"' if last else b"null", self.sent)
        self.transport.write(chunk(FRONT + b"%016d" % time.monotonic_ns() + back))
        if last:
            self.together.discard(self)
            self.transport.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")


def stub(ready: Connection) -> None:
    """The process of the stub."""
    Stub.together = set()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Stub, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        due = loop.time()
        while True:
            due = max(due + GAP_S, loop.time())
            await asyncio.sleep(due - loop.time())
            if len(Stub.together) == STREAMS or any(one.sent for one in Stub.together):
                for one in tuple(Stub.together):
                    one.write()

    asyncio.run(run())


def bodies(pattern: str, events: int) -> list[dict[str, Any]]:
    return [{"stream": True, "pattern": pattern, "events": events, "place": n} for n in range(STREAMS)]


def with_sockets(port: int, asked: list[dict[str, Any]]) -> list[list[float]]:
    """The bare reader: milliseconds of each event of each stream."""
    ready = selectors.DefaultSelector()
    read: dict[int, list[tuple[int, bytes]]] = {}
    for body in asked:
        data = json.dumps(body).encode()
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
        one.setblocking(False)
        read[one.fileno()] = []
        ready.register(one, selectors.EVENT_READ)
    while ready.get_map():
        for key, _ in ready.select():
            one = cast("socket.socket", key.fileobj)
            data = one.recv(65536)
            read[key.fd].append((time.monotonic_ns(), data))
            if not data or data.endswith(b"0\r\n\r\n"):
                ready.unregister(one)
                one.close()
    found = []
    for pieces in read.values():
        stamps = [(at, place) for at, data in pieces for place in data.split(b'"content":"')[1:]]
        found.append([(at - int(place[:16])) / 1e6 for at, place in stamps])
    return found


def with_client(port: int, asked: list[dict[str, Any]]) -> list[list[float]]:
    """Ours."""

    async def run() -> list[list[float]]:
        async with Client(f"http://127.0.0.1:{port}", streams=STREAMS) as client:
            replies = await asyncio.gather(*(client.ask("/v1/chat/completions", body) for body in asked))
        assert {reply.error for reply in replies} == {None}
        return [[(r.started + a.at - int(a.text) / 1e9) * 1000 for a in r.arrivals] for r in replies]

    return asyncio.run(run())


def with_httpx(port: int, asked: list[dict[str, Any]]) -> list[list[float]]:
    """httpx, as its documentation streams."""
    import httpx

    async def one(client: httpx.AsyncClient, body: dict[str, Any]) -> list[float]:
        found = []
        async with client.stream("POST", f"http://127.0.0.1:{port}/", json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    at = time.monotonic_ns()
                    event = json.loads(line[6:])
                    found.append((at - int(event["choices"][0]["delta"]["content"])) / 1e6)
        return found

    async def run() -> list[list[float]]:
        limits = httpx.Limits(max_connections=STREAMS)
        async with httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:
            return await asyncio.gather(*(one(client, body) for body in asked))

    return asyncio.run(run())


READERS = {"bare": with_sockets, "client": with_client, "httpx": with_httpx}


def once(reader: str, port: int, pattern: str, events: int) -> dict[str, float]:
    """One turn of one reader."""
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    latencies = READERS[reader](port, bodies(pattern, events))
    after, seconds = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - began
    assert [len(one) for one in latencies] == [events] * STREAMS
    kept = sorted(value for one in latencies for value in one[SKIPPED:])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "p50_ms": kept[len(kept) // 2],
        "p99_ms": kept[len(kept) * 99 // 100],
        "events_s": STREAMS * events / seconds,
        "cpu_us": cpu / (STREAMS * events) * 1e6,
    }


def summary(turns: list[dict[str, float]], bare: list[dict[str, float]]) -> dict[str, Any]:
    """Of one reader in one pattern: medians over the rounds, and what it adds."""
    said: dict[str, Any] = {name: round(statistics.median(t[name] for t in turns), 4) for name in turns[0]}
    for name in ("p50_ms", "p99_ms"):
        added = [turn[name] - beside[name] for turn, beside in zip(turns, bare, strict=True)]
        said[f"added_{name}"] = {
            "median": round(statistics.median(added), 4),
            "min": round(min(added), 4),
            "max": round(max(added), 4),
        }
    return said


def machine() -> dict[str, Any]:
    """Where this ran."""
    cpu = next(
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")
    )
    return {
        "cpu": cpu.partition(": ")[2],
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "realtime": os.sched_getscheduler(0) == os.SCHED_FIFO,
        "load_1min": [round(os.getloadavg()[0], 1)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--events", type=int, default=240, help="of each stream")
    parser.add_argument("--httpx", action="store_true", help="measure httpx too")
    parser.add_argument("--write", action="store_true", help="docs/results/client.json")
    given = parser.parse_args()
    here = machine()
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=stub, args=(theirs,), daemon=True)
    process.start()
    port = ours.recv()
    readers = ["bare", "client", *(["httpx"] if given.httpx else [])]
    turns: dict[tuple[str, str], list[dict[str, float]]] = {}
    for number in range(given.rounds):
        for pattern in ("spread", "step"):
            for reader in readers if number % 2 else reversed(readers):
                turns.setdefault((pattern, reader), []).append(once(reader, port, pattern, given.events))
                print(f"round {number} {pattern} {reader}", file=sys.stderr)
    process.terminate()
    here["load_1min"].append(round(os.getloadavg()[0], 1))
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    result = {
        "schema": "sparkserve.results/1",
        "command": f"python tests/host/bench_client.py {' '.join(sys.argv[1:])}",
        "commit": commit.stdout.strip(),
        "machine": here,
        "streams": STREAMS,
        "events_per_s": EVENTS_S,
        "rounds": given.rounds,
        "patterns": {
            pattern: {reader: summary(turns[pattern, reader], turns[pattern, "bare"]) for reader in readers}
            for pattern in ("spread", "step")
        },
    }
    text = json.dumps(result, indent=2) + "\n"
    print(text, end="")
    if given.write:
        (CHECKOUT / "docs/results/client.json").write_text(text)


if __name__ == "__main__":
    main()
