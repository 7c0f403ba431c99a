"""One round of a collective: every rank sends its bytes to every peer and receives theirs.

Nothing here knows tensors, so it is tested without torch.
"""

from __future__ import annotations

import math
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.adapters.contract import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

# What a message says about itself: kind of collective, its number, bytes of the whole payload. A peer that is
# at another collective sends another header, which tells a rank out of step from a slow one.
_HEADER = struct.Struct("<IIQ")


class Broken(Failure):
    """The mesh cannot be used any more. The field `peers` has the ranks at fault, as seen from this one."""

    def __init__(self, peers: Collection[int], reason: str) -> None:
        super().__init__(f"rank {', '.join(map(str, sorted(peers)))}: {reason}", peers=sorted(peers))


class Mesh:
    """The connections of one rank. Not for several threads at once.

    `stripes[peer]` are the connected sockets to a peer. Payloads from `split_bytes` on are divided over them;
    smaller ones take turns, so that every stripe is in use and a dead one is noticed.
    """

    def __init__(
        self, rank: int, stripes: Mapping[int, Sequence[socket.socket]], *, timeout_s: float, split_bytes: int
    ) -> None:
        self.rank = rank
        self.size = len(stripes) + 1
        self.rounds = 0
        self._timeout_s = timeout_s
        self._split_bytes = split_bytes
        self._stripes = {peer: tuple(sockets) for peer, sockets in stripes.items()}
        self._headers = {each: bytearray(_HEADER.size) for s in stripes.values() for each in s}
        self._small = {peer: bytearray(split_bytes) for peer in stripes}
        self._large = {peer: bytearray() for peer in stripes}
        # A decode step has 61 small rounds of one size: made once, not in each of them.
        self._ways: dict[tuple[int, int], _Way] = {}
        self._turns = math.lcm(*map(len, self._stripes.values()))
        self._broken: Broken | None = None
        for each in self._headers:
            # The kernel counts the time: a timeout of Python's own costs a poll() in front of every receive.
            each.settimeout(None)
            wait = struct.pack("@ll", int(timeout_s), int(timeout_s % 1 * 1e6))
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)

    def exchange(self, kind: int, payload: memoryview) -> list[memoryview]:
        """The payloads of all ranks, in rank order, of the same collective as this one.

        `payload` is bytes; the views of peers are valid until the next call. `kind` is equal on all ranks
        as are the sizes. Raises `Broken`, now and on every later call, when a peer is lost, late by
        `timeout_s`, or sends something else.
        """
        if self._broken is not None:
            raise self._broken
        try:
            return self._exchange(kind, payload)
        except Broken as broken:
            self._broken = broken
            self.close()
            raise

    def close(self) -> None:
        """Close all connections: peers that wait for this rank see the end of them."""
        for each in self._headers:
            each.close()

    def _exchange(self, kind: int, payload: memoryview) -> list[memoryview]:
        self.rounds += 1
        size = len(payload)
        header = _HEADER.pack(kind, self.rounds & 0xFFFFFFFF, size)
        way = self._way(size)
        way.received[self.rank] = payload
        unsent: list[_Part] = []
        for part in way.sent:
            part.header, part.body, part.done = header, payload[part.begin : part.end], 0
            if not self._guarded(part, part.send):
                unsent.append(part)
        for part in way.expected:
            part.done = 0
        deadline = time.monotonic() + self._timeout_s
        if unsent:
            # Everyone sends more than the kernel holds: only a rank that also reads lets the others go on.
            self._both(unsent, way.expected, header, deadline)
        else:
            for part in way.expected:
                self._receive(part, header, deadline)
        return way.received

    def _way(self, size: int) -> _Way:
        """How a payload of `size` goes out and comes in, on the stripes whose turn it is."""
        if size >= self._split_bytes:
            for peer, buffer in self._large.items():
                if len(buffer) < size:
                    # Prefills differ in length: in powers of two, few of them need a new buffer.
                    self._large[peer] = bytearray(1 << (size - 1).bit_length())
            return self._made(size, self._large)
        key = size, self.rounds % self._turns
        if key not in self._ways:
            self._ways[key] = self._made(size, self._small)
        return self._ways[key]

    def _made(self, size: int, buffers: Mapping[int, bytearray]) -> _Way:
        nothing = memoryview(b"")
        received = [memoryview(buffers[r])[:size] if r in buffers else nothing for r in range(self.size)]
        way = _Way(received, [], [])
        for peer, sockets in self._stripes.items():
            for stripe, begin, end in self._parts(len(sockets), size):
                over = sockets[stripe]
                way.sent.append(_Part(peer, over, b"", nothing, begin, end))
                view = received[peer][begin:end]
                way.expected.append(_Part(peer, over, self._headers[over], view, begin, end))
        return way

    def _parts(self, stripes: int, size: int) -> list[tuple[int, int, int]]:
        """Which stripe carries which bytes."""
        if size < self._split_bytes:
            return [(self.rounds % stripes, 0, size)]
        step = -(-size // stripes)
        return [(i, min(i * step, size), min((i + 1) * step, size)) for i in range(stripes)]

    def _receive(self, part: _Part, header: bytes, deadline: float) -> None:
        while not self._guarded(part, part.receive):
            part.check(header)
            if time.monotonic() > deadline:
                raise Broken({part.peer}, f"only part of its message in {self._timeout_s:g} s")
        part.check(header)

    def _both(self, unsent: list[_Part], expected: list[_Part], header: bytes, deadline: float) -> None:
        sending = {part.socket.fileno(): part for part in unsent}
        receiving = {part.socket.fileno(): part for part in expected}
        poll = select.poll()
        while sending or receiving:
            for fd in {*sending, *receiving}:
                poll.register(fd, select.POLLIN * (fd in receiving) | select.POLLOUT * (fd in sending))
            events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not events:
                late = {part.peer for part in (*sending.values(), *receiving.values())}
                raise Broken(late, f"not through with a message in {self._timeout_s:g} s")
            for fd, _ in events:
                poll.unregister(fd)
                if fd in sending and self._guarded(sending[fd], sending[fd].send):
                    del sending[fd]
                if fd in receiving:
                    part = receiving[fd]
                    done = self._guarded(part, part.receive_some)
                    part.check(header)
                    if done:
                        del receiving[fd]

    def _guarded(self, part: _Part, step: Callable[[], bool]) -> bool:
        try:
            return step()
        except BlockingIOError:
            raise Broken({part.peer}, f"no message in {self._timeout_s:g} s") from None
        except OSError as error:
            # Who also sees the end of a connection tells more than who was read first.
            gone = {peer for peer, sockets in self._stripes.items() if any(map(_ended, sockets))}
            raise Broken(gone | {part.peer}, f"connection lost: {error}") from None


class _Way(NamedTuple):
    """Where the payloads of all ranks come to be, in rank order, and what the connections carry for that."""

    received: list[memoryview]
    sent: list[_Part]
    expected: list[_Part]


class _Part:
    """What one connection carries in a round: a header, then the bytes `begin` to `end` of the payload."""

    __slots__ = ("begin", "body", "done", "end", "header", "peer", "socket")

    def __init__(
        self,
        peer: int,
        over: socket.socket,
        header: bytes | bytearray,
        body: memoryview,
        begin: int,
        end: int,
    ) -> None:
        self.peer = peer
        self.socket = over
        self.header = header
        self.body = body
        self.begin = begin
        self.end = end
        self.done = 0

    def send(self) -> bool:
        """Hand over to the kernel what it takes at once. True when that is all."""
        try:
            self.done += self.socket.sendmsg(self._rest(), (), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        return self.done == len(self.header) + len(self.body)

    def receive(self, flags: int = 0) -> bool:
        """Take what has come, waiting for the first byte. True when that is all."""
        count = self.socket.recvmsg_into(self._rest(), 0, flags)[0]
        if count == 0:
            raise ConnectionError("it closed the connection")
        self.done += count
        return self.done == len(self.header) + len(self.body)

    def receive_some(self) -> bool:
        """As `receive`, without waiting."""
        try:
            return self.receive(socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False

    def check(self, header: bytes) -> None:
        """Raise `Broken` when a whole header came, and another one."""
        if self.done >= len(header) and self.header != header:
            theirs, ours = (_HEADER.unpack(each) for each in (self.header, header))
            words = "collective kind {0:#x} number {1} with {2} bytes"
            raise Broken({self.peer}, f"it sent {words.format(*theirs)}, not {words.format(*ours)}")

    def _rest(self) -> tuple[memoryview | bytes | bytearray, ...]:
        if self.done == 0:
            return self.header, self.body
        if self.done < len(self.header):
            return memoryview(self.header)[self.done :], self.body
        return (self.body[self.done - len(self.header) :],)


def _ended(over: socket.socket) -> bool:
    try:
        return over.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
