"""Ranks of a mesh as threads of the test, over the loopback, with a dict as their meeting place."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from sparkserve.adapters.contract import Link
from sparkserve.adapters.oneshot_collectives.links import open_mesh

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sparkserve.adapters.oneshot_collectives.mesh import Mesh

SIZE = 3
SPLIT = 4096
TOKEN = bytes(range(32))


class Meet:
    """Keys with values, and waiting for them."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._changed = threading.Condition()

    def put(self, key: str, value: str) -> None:
        with self._changed:
            self.values[key] = value
            self._changed.notify_all()

    def get(self, key: str, timeout_s: float) -> str:
        with self._changed:
            if not self._changed.wait_for(lambda: key in self.values, timeout_s):
                raise TimeoutError
            return self.values[key]


def links(rank: int) -> list[Link]:
    """Two stripes to every peer, all on the loopback."""
    peers = [peer for peer in range(SIZE) if peer != rank]
    return [Link("lo", "127.0.0.1", peer, "127.0.0.1", stripe) for peer in peers for stripe in (0, 1)]


def opened(rank: int, meet: Meet, *, token: bytes = TOKEN, timeout_s: float = 1.0) -> Mesh:
    """The mesh of a rank. Blocks until the others come."""
    return open_mesh(rank, links(rank), meet, token, timeout_s=timeout_s, split_bytes=SPLIT)


def run(work: Callable[[int], Any]) -> list[Future[Any]]:
    """`work(rank)` of all ranks at once, when all are through."""
    with ThreadPoolExecutor(SIZE) as pool:
        return [pool.submit(work, rank) for rank in range(SIZE)]


def meshes(timeout_s: float = 1.0) -> list[Mesh]:
    """Connected meshes of all ranks."""
    meet = Meet()
    return [each.result() for each in run(lambda rank: opened(rank, meet, timeout_s=timeout_s))]
