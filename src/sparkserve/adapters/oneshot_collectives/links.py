"""Opens the connections to every peer, one per stripe, on the cable that the plan names for that peer."""

from __future__ import annotations

import hmac
import select
import socket
import struct
import time
from typing import TYPE_CHECKING

from sparkserve.adapters.oneshot_collectives.mesh import Broken, Mesh

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sparkserve.adapters.contract import Link, Rendezvous

TOKEN_BYTES = 32
_HELLO = struct.Struct(f"<{TOKEN_BYTES}sHH")  # token, rank, stripe
BUFFER_BYTES = 1 << 20


def open_mesh(
    rank: int, links: Iterable[Link], meet: Rendezvous, token: bytes, *, timeout_s: float, split_bytes: int
) -> Mesh:
    """Connect to every peer. The lower rank of a pair listens, on a free port that it leaves at `meet`.

    `token` (32 bytes, the same on all ranks, new on every boot) keeps out whoever else finds the port, such
    as a rank of the boot before. Raises `Broken` with the peers that did not come within `timeout_s`.
    """
    links = tuple(links)
    deadline = time.monotonic() + timeout_s
    listeners: dict[socket.socket, Link] = {}
    sockets: dict[tuple[int, int], socket.socket] = {}
    try:
        for link in links:
            if rank < link.peer:
                listener = _bound(link)
                listener.listen()
                listeners[listener] = link
                meet.put(_key(rank, link.peer, link.stripe), str(listener.getsockname()[1]))
        for link in links:
            if rank > link.peer:
                port = _port(meet, rank, link, deadline)
                sockets[link.peer, link.stripe] = _call(rank, link, port, token, deadline)
        while listeners:
            ready, _, _ = select.select(list(listeners), [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise Broken({link.peer for link in listeners.values()}, f"no connection in {timeout_s:g} s")
            for listener in ready:
                link = listeners[listener]
                accepted = _answer(rank, link, listener, token)
                if accepted is not None:
                    sockets[link.peer, link.stripe] = accepted
                    del listeners[listener]
                    listener.close()
    except BaseException:
        for opened in (*listeners, *sockets.values()):
            opened.close()
        raise
    return Mesh(rank, _by_peer(sockets), timeout_s=timeout_s, split_bytes=split_bytes)


def _by_peer(sockets: dict[tuple[int, int], socket.socket]) -> dict[int, list[socket.socket]]:
    peers: dict[int, list[socket.socket]] = {}
    for (peer, _), opened in sorted(sockets.items()):
        peers.setdefault(peer, []).append(opened)
    return peers


def _bound(link: Link) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Without this a cable that is cut sends its connection over the management network, slowly and silently.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link.interface.encode())
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for side in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        made.setsockopt(socket.SOL_SOCKET, side, BUFFER_BYTES)
    made.bind((link.address, 0))
    return made


def _key(listener: int, caller: int, stripe: int) -> str:
    return f"oneshot-collectives/{listener}/{caller}/{stripe}"


def _port(meet: Rendezvous, rank: int, link: Link, deadline: float) -> int:
    try:
        return int(meet.get(_key(link.peer, rank, link.stripe), max(0.001, deadline - time.monotonic())))
    except TimeoutError:
        raise Broken({link.peer}, "it did not say where it listens") from None


def _call(rank: int, link: Link, port: int, token: bytes, deadline: float) -> socket.socket:
    made = _bound(link)
    try:
        made.settimeout(max(0.001, deadline - time.monotonic()))
        made.connect((link.peer_address, port))
        made.sendall(_HELLO.pack(token, rank, link.stripe))
        _check(_read(made), link, token)
    except OSError as error:
        made.close()
        raise Broken({link.peer}, f"no connection to {link.peer_address}: {error}") from None
    except BaseException:
        made.close()
        raise
    return made


def _answer(rank: int, link: Link, listener: socket.socket, token: bytes) -> socket.socket | None:
    """The connection of the expected peer, or None when somebody else called."""
    made, _ = listener.accept()
    try:
        # The caller sends at once; who does not is no rank, and must not hold up those that are.
        made.settimeout(1)
        _check(_read(made), link, token)
        made.sendall(_HELLO.pack(token, rank, link.stripe))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, Broken):
        made.close()
        return None
    return made


def _read(made: socket.socket) -> bytes:
    hello = made.recv(_HELLO.size, socket.MSG_WAITALL)
    if len(hello) < _HELLO.size:
        raise ConnectionError("closed before its hello")
    return hello


def _check(hello: bytes, link: Link, token: bytes) -> None:
    theirs, peer, stripe = _HELLO.unpack(hello)
    if not hmac.compare_digest(theirs, token):
        raise Broken({link.peer}, "it is of another boot")
    if (peer, stripe) != (link.peer, link.stripe):
        raise Broken({link.peer}, f"rank {peer} stripe {stripe} answered in its place")
