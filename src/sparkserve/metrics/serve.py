"""The service of a node: its own counters at /metrics, and on the head the engine's at /engine."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import socketserver
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST

from sparkserve import notify
from sparkserve import plan as plans
from sparkserve.engine import closure as closures
from sparkserve.errors import SparkserveError
from sparkserve.front import config
from sparkserve.group.launch import LOOPBACK, parts
from sparkserve.metrics import node
from sparkserve.metrics.families import exposition
from sparkserve.metrics.gpu import Gpu

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.plan import Plan

OWN, ENGINE = "/metrics", "/engine"
CACHED_S = 1.0
ENGINE_S = 5.0  # for the engine's answer, which takes it 35 ms
CLIENT_S = 5.0  # for a client's request, and to take what it asked for
THREADS = 16
_IP_FREEBIND = 15  # of linux/in.h; Python has no name for it


class _Page(NamedTuple):
    status: int
    body: bytes


class _Cached:
    """The result of `make`, made again after `CACHED_S`: many who ask cost as much as one."""

    def __init__(self, make: Callable[[], _Page]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._page: _Page | None = None
        self._until = 0.0

    def get(self) -> _Page:
        with self._lock:
            if self._page is None or time.monotonic() > self._until:
                self._page = self._make()
                self._until = time.monotonic() + CACHED_S
            return self._page


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Listens on the plan's management address. `pages` by path; `allows` says whom a peer's address is."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 32

    def __init__(self, plan: Plan, pages: dict[str, Callable[[], _Page]]) -> None:
        """Bind. Raises `HOST.PORT`."""
        fabric, _ = parts(plan)
        assert plan.metrics is not None  # noqa: S101 - Plan checks it
        self.pages = {path: _Cached(make) for path, make in pages.items()}
        self.allows = config.from_plan(plan).may_see_status
        address = (str(fabric.management.address), plan.metrics.port)
        try:
            super().__init__(address, _Handler)
        except OSError as error:
            raise SparkserveError(
                "HOST.PORT",
                expected="a free port for this node's counters",
                found=os.strerror(error.errno) if error.errno else str(error),
                where=f"{address[0]}:{address[1]}",
                do="Stop what listens there, or set another metrics.port in hosts/<fleet>/fleet.nix.",
            ) from None

    def server_bind(self) -> None:
        """Also before the address is there: at a node's start, or in the activation that brings it."""
        self.socket.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
        super().server_bind()

    def service_actions(self) -> None:
        """Twice a second, in the loop that accepts."""
        notify.alive()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless too many clients are slow already."""
        if threading.active_count() > THREADS or not self.allows(client_address[0]):
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes in the middle is nothing to log."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = CLIENT_S
    server_version = "sparkserve"
    sys_version = ""

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        status, body = (
            page.get() if page else _Page(404, b"No such page: /metrics, and /engine on the head.\n")
        )
        self.send_response(status)
        self.send_header(
            "Content-Type", CONTENT_TYPE_LATEST if status == 200 else "text/plain; charset=utf-8"
        )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """A scrape is nothing to log."""


def make(path: Path, places: node.Places | None = None, gpu: Gpu | None = None) -> Server:
    """The service of the host closure at `path`. Raises `PLAN.SCHEMA`, `GROUP.STATE`, `HOST.PORT`."""
    plan, closure = plans.load(path / "plan.json"), closures.load(path)
    _, group = parts(plan)
    places, gpu = places or node.Places(), gpu or Gpu()

    def own() -> _Page:
        return _Page(200, exposition([*node.samples(plan, closure, path, places), *gpu.samples()]))

    pages = {OWN: own}
    if plan.node.rank == 0:
        pages[ENGINE] = partial(_engine, group.engine_port)
    return Server(plan, pages)


def _engine(port: int) -> _Page:
    """What the engine says. Not by way of the front, which would count it as a request."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=ENGINE_S)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        return _Page(503, f"The engine does not answer: {error}.\n".encode())
    finally:
        connection.close()
    if answer.status != 200:
        return _Page(503, f"The engine answers {answer.status}: it runs without metrics.engine.\n".encode())
    return _Page(200, body)


def run(path: Path) -> None:
    """Serve until SIGTERM; raises what `make` raises."""
    with make(path) as server:
        # From another thread: it waits for the loop that it ends.
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
        notify.ready()
        server.serve_forever()
