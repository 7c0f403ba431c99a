"""The bounded collective before a boot: every rank sends to every peer over every link, and hears it back.

A wrong cable, a wrong address or a packet size that gets lost on the way hangs an engine for ever; here it is
a sentence that names the link.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from sparkserve.plan import Link, Peer

# Many packets of the largest size: those are what a wrong MTU loses.
PAYLOAD_BYTES = 256 * 1024
RETRY_S = 0.2


async def probe(links: Sequence[Link], port: int, token: str, seconds: float) -> list[str]:
    """What is wrong with `links`, a sentence each. Takes `seconds` at most.

    Listens on `port` of every link address and calls the peers there. They begin a moment earlier or later,
    so refused calls are repeated, and a rank goes on listening until its peers have been answered too, but
    not for long: one that has found something wrong may never call.
    """
    waiting = {str(peer.address) for link in links for peer in link.peers}
    answered = asyncio.Event()

    def answers(address: str) -> None:
        waiting.discard(address)
        if not waiting:
            answered.set()

    async with AsyncExitStack() as stack:
        problems = []
        for link in links:
            try:
                await stack.enter_async_context(_listening(link, port, token, answers))
            except OSError as error:
                problems.append(f"{link.interface} cannot listen on {link.address}:{port}: {error.strerror}")
        if problems:
            return problems
        calls = (_call(link, peer, port, token, seconds) for link in links for peer in link.peers)
        found = [problem for problem in await asyncio.gather(*calls) if problem]
        if not found and waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(1.0, seconds / 10)):
                    await answered.wait()
        return found


@asynccontextmanager
async def _listening(
    link: Link, port: int, token: str, answered: Callable[[str], None]
) -> AsyncIterator[None]:
    """Echo what callers with the right token send, and tell their addresses to `answered`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(10):
                if await reader.readexactly(32) == _secret(token):
                    writer.write(await reader.readexactly(PAYLOAD_BYTES))
                    await writer.drain()
                    # Not earlier: what is still in our buffer ends with the listening.
                    with suppress(OSError):
                        await reader.read()
                    answered(writer.get_extra_info("peername")[0])
        writer.close()

    server = await asyncio.start_server(answer, sock=_bound(link, port))
    try:
        yield
    finally:
        server.close()


async def _call(link: Link, peer: Peer, port: int, token: str, seconds: float) -> str | None:
    """None when the payload came back whole, else what went wrong."""
    problem = "no connection"
    loop = asyncio.get_running_loop()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                raw = _bound(link, 0)
                writer: asyncio.StreamWriter | None = None
                try:
                    await loop.sock_connect(raw, (str(peer.address), port))
                    problem = (
                        f"no answer to {PAYLOAD_BYTES >> 10} KiB (is the MTU the same on the whole way?)"
                    )
                    reader, writer = await asyncio.open_connection(sock=raw)
                    payload = _secret(token) * (PAYLOAD_BYTES // 32)
                    writer.write(_secret(token) + payload)
                    back = await reader.readexactly(PAYLOAD_BYTES)
                    if back == payload:
                        return None
                    problem = "another answer than what was sent"
                except asyncio.IncompleteReadError:
                    problem = "it hung up (it is in another boot)"
                except OSError as error:
                    problem = error.strerror or str(error)
                finally:
                    # A transport closes its socket itself: else the event loop still knows a number that the
                    # next socket gets, and refuse that one.
                    if writer is None:
                        raw.close()
                    else:
                        writer.transport.abort()
                await asyncio.sleep(RETRY_S)
    where = f"rank {peer.rank} at {peer.address} over {link.interface}"
    return f"no echo from {where} in {seconds:g} s: {problem}"


def _bound(link: Link, port: int) -> socket.socket:
    """A socket on the link's address that leaves by no other interface, also when the cable is cut."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link.interface.encode())
        made.bind((str(link.address), port))
    except OSError:
        made.close()
        raise
    return made


def _secret(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
