"""What the front adds to the time of a streamed token: direct and through it, in turns, on the same machine.

    sudo python tests/host/bench_front.py [--streams 64] [--rounds 7] [--json]

The engine is stood in for by a process that writes events and does nothing else, so that what is measured is
the front, and the front has the cores as nearly to itself as it will ever have. Each event carries the time
at which it was written; the client notes when it has it (one clock: CLOCK_MONOTONIC). Two patterns at 20
tokens/s a stream:

    spread   every stream at a moment of its own
    step     all streams at once, as a batched decode step makes them: the worst case for one process

Added latency of a round = percentile through the front - percentile of the direct round beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

SRC = Path(__file__).parents[2] / "src"
PLAN = Path(__file__).parents[1] / "golden" / "local-single" / "spark-0.json"
GAP_S = 0.05
FILL = b'"object":"chat.completion.chunk","model":"smollm2","choices":[{"index":0,"delta":{"content":" A"}}]'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Engine(asyncio.Protocol):
    """Answers each request with a stream of events; the request's path says how: /PATTERN/TOKENS."""

    streams: set[Engine]
    left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        line = data.partition(b"\r\n")[0].split()
        if line[1] == b"/health_generate":
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            return
        _, pattern, tokens, phase = line[1].decode().split("/")
        self.left = int(tokens)
        self.transport.write(HEAD)
        if pattern == "spread":
            loop = asyncio.get_running_loop()
            loop.call_later(float(phase) * GAP_S, self.step, loop.time() + float(phase) * GAP_S)
        else:
            Engine.streams.add(self)

    def step(self, due: float | None) -> None:
        self.emit()
        if self.left and due is not None:
            asyncio.get_running_loop().call_at(due + GAP_S, self.step, due + GAP_S)

    def emit(self) -> None:
        event = b'data: {"t":%d,%b}\n\n' % (time.monotonic_ns(), FILL)
        self.left -= 1
        end = b"" if self.left else b"0\r\n\r\n"
        self.transport.write(b"%x\r\n%b\r\n%b" % (len(event), event, end))
        if not self.left:
            Engine.streams.discard(self)

    @staticmethod
    def serve(listening: socket.socket) -> None:
        async def run() -> None:
            Engine.streams = set()
            await asyncio.get_running_loop().create_server(Engine, sock=listening)
            while True:
                await asyncio.sleep(GAP_S)
                for stream in list(Engine.streams):
                    stream.emit()

        asyncio.run(run())


class Reader(asyncio.BufferedProtocol):
    """Sends one request and notes, for each event, how old it is."""

    buffer = memoryview(bytearray(65536))

    def __init__(self, path: str, ages: list[float], skip: int) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        self._path, self._ages, self._skip = path, ages, skip

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        request = f"GET {self._path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(request.encode())

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        now = time.monotonic_ns()
        data = bytes(self.buffer[:nbytes])
        at = 0
        while (at := data.find(b'{"t":', at)) >= 0:
            at += 5
            if self._skip:
                self._skip -= 1
            else:
                self._ages.append((now - int(data[at : data.index(b",", at)])) / 1e6)
        if data.endswith(b"0\r\n\r\n"):
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(None)


async def measure(port: int, pattern: str, streams: int, tokens: int) -> list[float]:
    """Ages of all events in ms, sorted. The first ten of each stream are left out: they come in a rush."""
    ages: list[float] = []
    loop = asyncio.get_running_loop()
    readers = []
    for n in range(streams):
        path = f"/{pattern}/{tokens}/{n / streams}"
        _, reader = await loop.create_connection(
            lambda path=path: Reader(path, ages, 10),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
        readers.append(reader)
    async with asyncio.timeout(60):
        await asyncio.gather(*(reader.ended for reader in readers))
    if len(ages) != streams * (tokens - 10):
        sys.exit(f"{len(ages)} events of {streams * (tokens - 10)} arrived")
    return sorted(ages)


def percentiles(ages: list[float]) -> dict[str, float]:
    return {"p50": statistics.median(ages), "p99": ages[int(len(ages) * 0.99)]}


def start_front(engine: int, run: Path) -> tuple[subprocess.Popen[bytes], int]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    (run / "group.json").write_text('{"state":"up","boot":"bench"}')
    # Nice as its unit has it (modules/group-units.nix).
    argv = [
        "nice",
        "-n",
        "-10",
        sys.executable,
        "-m",
        "sparkserve.cli.main",
        "front",
        "run",
        "--plan",
        str(PLAN),
    ]
    argv += ["--listen", f"127.0.0.1:{port}", "--engine", f"127.0.0.1:{engine}", "--run-dir", str(run)]
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    front = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return front, port
        time.sleep(0.1)
    front.kill()
    sys.exit("the front does not listen")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rounds(streams: int, count: int, tokens: int) -> list[dict[str, Any]]:
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    engine = multiprocessing.get_context("fork").Process(target=Engine.serve, args=(listening,), daemon=True)
    engine.start()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        direct_port = int(listening.getsockname()[1])
        front, front_port = start_front(direct_port, Path(folder))
        try:
            for pattern in ("spread", "step"):
                for number in range(count):
                    order = [("direct", direct_port), ("front", front_port)]
                    result: dict[str, Any] = {"pattern": pattern, "round": number}
                    for way, port in order if number % 2 else reversed(order):
                        cpu = cpu_seconds(front.pid)
                        result[way] = percentiles(asyncio.run(measure(port, pattern, streams, tokens)))
                        if way == "front":
                            result["cpu_us"] = (cpu_seconds(front.pid) - cpu) / (streams * tokens) * 1e6
                    result["added"] = {p: result["front"][p] - result["direct"][p] for p in ("p50", "p99")}
                    found.append(result)
        finally:
            front.send_signal(signal.SIGTERM)
            front.wait(20)
            engine.kill()
    return found


def table(found: list[dict[str, Any]]) -> str:
    titles = (
        "pattern",
        "percentile",
        "direct ms",
        "front ms",
        "added ms",
        "added, min..max",
        "CPU µs an event",
    )
    rows = [titles, ("---",) * len(titles)]
    for pattern in ("spread", "step"):
        these = [r for r in found if r["pattern"] == pattern]
        cpu = statistics.median(r["cpu_us"] for r in these)
        for p in ("p50", "p99"):
            middle = [
                f"{statistics.median(r[way][p] for r in these):.3f}" for way in ("direct", "front", "added")
            ]
            added = [r["added"][p] for r in these]
            rows.append((pattern, p, *middle, f"{min(added):.3f}..{max(added):.3f}", f"{cpu:.0f}"))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = rounds(options.streams, options.rounds, options.tokens)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{options.streams} streams, {options.rounds} rounds of {options.tokens} tokens, Python", end=" ")
    print(f"{platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    print(table(found))


if __name__ == "__main__":
    main()
