"""The bounded collective of a preflight: what a peer does wrong is a sentence, and the next try is fresh."""

from __future__ import annotations

import asyncio

import pytest
from group_values import free_ports, plan

from sparkserve.group import echo


@pytest.mark.parametrize("wrong", ["silent", "hangs up", "says else"])
def test_a_peer_that_is_mended_is_heard(wrong: str) -> None:
    """In one event loop, as in a supervisor that tries again."""
    port = free_ports()
    fabric = plan(0, port).fabric
    assert fabric is not None
    link = fabric.links[0]
    peer_rank, peer_address = link.peers[0].rank, str(link.peers[0].address)
    mended = False

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if mended or wrong != "silent":
            data = await reader.readexactly(32 + echo.PAYLOAD_BYTES)
            writer.write(data[32:] if mended else b"" if wrong == "hangs up" else bytes(echo.PAYLOAD_BYTES))
            await writer.drain()
        else:
            await reader.read()
        writer.close()

    async def test() -> None:
        nonlocal mended
        async with await asyncio.start_server(peer, peer_address, port):
            problems = await echo.probe([link], port, "token", 0.5)
            assert len(problems) == 1
            assert problems[0].startswith(f"no echo from rank {peer_rank} at {peer_address} over lo in 0.5 s")
            mended = True
            for _ in range(3):
                assert await echo.probe([link], port, "token", 5) == []

    asyncio.run(test())
