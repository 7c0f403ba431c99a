"""The controller's side of the connections: which ranks are there, and what they say."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sparkserve.group import protocol, wire
from sparkserve.group.channel import Channel
from sparkserve.group.identity import difference, identity
from sparkserve.group.launch import parts
from sparkserve.terminal import console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sparkserve.engine.closure import Closure
    from sparkserve.plan import Plan

HELLO_S = 5.0


@dataclass
class Member:
    """A connected rank. `seen` is when it last said anything (monotonic seconds)."""

    hello: protocol.Hello
    channel: Channel
    seen: float = field(default_factory=time.monotonic)
    beat: protocol.Beat = field(default_factory=protocol.Beat)


# A rank that is not there any more, in place of a message.
LOST = protocol.Bye(reason="its connection was lost")


class Members:
    """Accepts ranks that run the same as the head, and operators of the head itself.

    `events` gets (rank, message) of every accepted rank, `LOST` when it is gone. `differing` says of refused
    ranks what is different.
    """

    def __init__(
        self, plan: Plan, closure: Closure, answer: Callable[[protocol.Ask], protocol.Status]
    ) -> None:
        self._plan = plan
        self._closure = closure
        self._answer = answer
        self.present: dict[int, Member] = {}
        self.differing: dict[int, str] = {}
        self.events: asyncio.Queue[tuple[int, protocol.Message]] = asyncio.Queue()

    def name(self, rank: int) -> str:
        """How a rank is called in messages."""
        return f"rank {rank} ({self._plan.fleet.nodes[rank].name})"

    async def listen(self) -> asyncio.Server:
        """Accept connections on the management address. Raises OSError when the port is taken."""
        fabric, group = parts(self._plan)
        return await asyncio.start_server(
            self._accept, str(fabric.management.address), group.control_port, limit=wire.LINE_BYTES
        )

    async def send(self, ranks: Iterable[int], message: protocol.Message) -> None:
        """Send to ranks; one that is lost says so by `LOST`, not here."""

        async def one(member: Member) -> None:
            with suppress(OSError, TimeoutError):
                await member.channel.send(message)

        await asyncio.gather(*(one(self.present[rank]) for rank in ranks if rank in self.present))

    async def drop(self, rank: int) -> None:
        """End the connection to a rank. When it notices, it kills its engine."""
        member = self.present.get(rank)
        if member is not None:
            await member.channel.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = Channel(reader, writer)
        try:
            match await channel.receive(HELLO_S):
                case protocol.Hello() as hello:
                    await self._rank(channel, hello)
                case protocol.Ask() as ask if self._is_head(channel.peer):
                    await channel.send(self._answer(ask))
                case other:
                    await channel.send(protocol.Refused(reason=f"not allowed from {channel.peer}: {other}"))
        except protocol.ProtocolError as error:
            console.print(f"{channel.peer} said {error}", markup=False)
            with suppress(OSError, TimeoutError):
                await channel.send(protocol.Refused(reason=str(error)))
        except (OSError, TimeoutError):
            pass  # gone; what that means for a rank is said below
        finally:
            await channel.close()

    async def _rank(self, channel: Channel, hello: protocol.Hello) -> None:
        reason = self._stranger(channel.peer, hello) or self._difference(hello)
        if reason is not None:
            if 0 <= hello.rank < len(self._plan.fleet.nodes):
                self.differing[hello.rank] = reason
            console.print(f"Refused {channel.peer}: {reason}", markup=False)
            await channel.send(protocol.Refused(reason=reason))
            return
        self.differing.pop(hello.rank, None)
        if hello.rank in self.present:
            # Its node came back before the old connection was seen to be dead.
            self.events.put_nowait((hello.rank, LOST))
            await self.drop(hello.rank)
        member = Member(hello, channel)
        self.present[hello.rank] = member
        console.print(f"{self.name(hello.rank)} is connected.")
        try:
            while (message := await channel.receive()) is not None:
                member.seen = time.monotonic()
                if isinstance(message, protocol.Beat):
                    member.beat = message
                self.events.put_nowait((hello.rank, message))
        finally:
            if self.present.get(hello.rank) is member:
                del self.present[hello.rank]
                console.print(f"{self.name(hello.rank)} is gone.")
                self.events.put_nowait((hello.rank, LOST))

    def _is_head(self, peer: str) -> bool:
        return peer == str(self._plan.fleet.nodes[0].address)

    def _stranger(self, peer: str, hello: protocol.Hello) -> str | None:
        """Why this is not the rank that it says it is."""
        if hello.version != wire.VERSION:
            return f"it speaks version {hello.version}, the head {wire.VERSION}"
        nodes = self._plan.fleet.nodes
        if not 0 <= hello.rank < len(nodes):
            return f"there is no rank {hello.rank} in {self._plan.fleet.name}"
        node = nodes[hello.rank]
        if (hello.node, peer) != (node.name, str(node.address)):
            return f"rank {hello.rank} is {node.name} at {node.address}, not {hello.node} at {peer}"
        return None

    def _difference(self, hello: protocol.Hello) -> str | None:
        """What this rank runs in place of what the head runs."""
        found = difference(hello.runs, identity(self._plan, self._closure))
        return None if found is None else f"{self.name(hello.rank)} has another {found}"
