"""The mesh of the one-shot collectives: what arrives, and how it breaks."""

from __future__ import annotations

import random
import socket
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from adapter_ranks import SIZE, TOKEN, Meet, meshes, opened, run

from sparkserve.adapters.oneshot_collectives.mesh import Broken

if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Any

    from sparkserve.adapters.oneshot_collectives.mesh import Mesh

KIND = 7
BIG = 8 << 20  # more than two sockets hold


def _payload(rank: int, number: int, size: int) -> bytes:
    return random.Random(f"{rank} {number}").randbytes(size)  # noqa: S311 - a test


def _peers(future: Future[Any]) -> list[int]:
    error = future.exception()
    assert isinstance(error, Broken)
    peers: list[int] = error.fields["peers"]
    return peers


@pytest.fixture
def group() -> Any:
    made = meshes()
    yield made
    for mesh in made:
        mesh.close()


def test_every_rank_gets_every_payload_in_rank_order(group: list[Mesh]) -> None:
    sizes = [0, 1, 2304, 4095, 4096, 4097, BIG, 3, BIG - 1, 2304]

    def work(rank: int) -> None:
        for number, size in enumerate(sizes):
            got = group[rank].exchange(KIND, memoryview(_payload(rank, number, size)))
            assert [bytes(view) for view in got] == [_payload(each, number, size) for each in range(SIZE)]

    for each in run(work):
        each.result()


def test_small_payloads_take_turns_over_the_stripes(group: list[Mesh]) -> None:
    used = []

    def work(rank: int) -> None:
        for number in range(4):
            group[rank].exchange(KIND, memoryview(b"x" * 100))
            if rank == 0:
                used.append(group[0]._parts(2, 100)[0][0])
            assert group[rank].rounds == number + 1

    for each in run(work):
        each.result()
    assert used == [1, 0, 1, 0]


def test_lost_rank_breaks_the_others_for_good(group: list[Mesh]) -> None:
    group[1].close()
    first = run(lambda rank: rank == 1 or group[rank].exchange(KIND, memoryview(b"x")))
    assert 1 in _peers(first[0])
    assert 1 in _peers(first[2])
    with pytest.raises(Broken, match="rank 1"):
        group[0].exchange(KIND, memoryview(b"x"))


@pytest.mark.parametrize("size", [100, BIG])
def test_rank_that_says_nothing_is_named_in_time(size: int) -> None:
    made = meshes(timeout_s=0.5)
    begin = time.monotonic()
    ran = run(lambda rank: rank == 2 or made[rank].exchange(KIND, memoryview(bytes(size))))
    # Rank 0 or 1 is the first to give up; the other one may then see that end too.
    assert [2] in [_peers(each) for each in ran[:2]]
    assert time.monotonic() - begin < 3
    for mesh in made:
        mesh.close()


@pytest.mark.parametrize(("kind", "size"), [(KIND + 1, 100), (KIND, 99), (KIND, 101), (KIND, BIG)])
def test_rank_out_of_step_is_named_with_what_it_sent(group: list[Mesh], kind: int, size: int) -> None:
    def work(rank: int) -> None:
        mine = (kind, size) if rank == 1 else (KIND, 100)
        group[rank].exchange(mine[0], memoryview(bytes(mine[1])))

    ran = run(work)
    errors = [str(each.exception()) for each in ran if each.exception()]
    assert len(errors) == SIZE
    assert any("rank 1: it sent" in text or "not collective" in text for text in errors)


def test_garbage_is_no_message(group: list[Mesh]) -> None:
    for sockets in group[2]._stripes.values():
        for each in sockets:
            each.sendall(b"GET / HTTP/1.1\r\n\r\n")
    ran = run(lambda rank: rank == 2 or group[rank].exchange(KIND, memoryview(b"x")))
    assert [2] in [_peers(each) for each in ran[:2]]
    assert any("it sent collective kind" in str(each.exception()) for each in ran[:2])


def test_strangers_at_the_door_keep_no_rank_out() -> None:
    meet = Meet()
    strangers = []

    class Open(Meet):
        def put(self, key: str, value: str) -> None:
            # Before the peer hears of the port: one says nothing, one says too little, one has no token.
            for said in (b"", b"short", b"?" * 36):
                stranger = socket.create_connection(("127.0.0.1", int(value)))
                stranger.sendall(said)
                if said == b"short":
                    stranger.close()
                strangers.append(stranger)
            meet.put(key, value)

        def get(self, key: str, timeout_s: float) -> str:
            return meet.get(key, timeout_s)

    ran = run(lambda rank: opened(rank, Open() if rank == 0 else meet, timeout_s=15))
    for each in ran:
        each.result().close()
    for stranger in strangers:
        stranger.close()


def test_rank_of_another_boot_is_missing() -> None:
    meet = Meet()
    ran = run(lambda rank: opened(rank, meet, token=b"?" * 32 if rank == 2 else TOKEN))
    assert [_peers(each) for each in ran[:2]] == [[2], [2]]


def test_absent_rank_is_named() -> None:
    meet = Meet()
    ran = run(lambda rank: rank == 0 or opened(rank, meet, timeout_s=0.3))
    assert [_peers(each) for each in ran[1:]] == [[0], [0]]


def test_peer_that_does_not_listen_is_named() -> None:
    meet = Meet()
    with closing(socket.socket()) as closed:
        closed.bind(("127.0.0.1", 0))
        for stripe in (0, 1):
            meet.put(f"oneshot-collectives/0/2/{stripe}", str(closed.getsockname()[1]))
    with pytest.raises(Broken, match="rank 0: no connection to"):
        opened(2, meet)
