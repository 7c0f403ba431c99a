"""The group over real sockets; engines misbehave on command, and every fault ends all ranks, by name."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from group_values import engines, free_ports, gone, group, plan

from sparkserve.engine import procfs
from sparkserve.errors import SparkserveError
from sparkserve.fabric import host
from sparkserve.front.state import FrontState, Probe, write
from sparkserve.group import channel, client, controller, preflight, protocol, run_files, supervisor
from sparkserve.group.engine import RankEngine
from sparkserve.group.supervisor import Supervisor

if TYPE_CHECKING:
    from pathlib import Path

    from group_values import Group


pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between boots; engines of other tests and of this machine are none of ours."""
    monkeypatch.setattr(controller, "RETRY_S", 0.05)
    monkeypatch.setattr(controller, "PREFLIGHT_S", 2.0)
    monkeypatch.setattr(supervisor, "RETRY_S", 0.05)
    monkeypatch.setattr(preflight, "old_engines", lambda: [])


def file(made: Group) -> dict[str, Any]:
    """group.json."""
    value: dict[str, Any] = json.loads((made.folder / "0/group.json").read_text())
    return value


def pid(made: Group, rank: int) -> int:
    """The engine's launcher of a rank."""
    engine = run_files.engine(made.folder / f"{rank}/rank.json")
    assert engine is not None
    return engine.pid


def asked(port: int) -> client.Controller:
    """Where an operator asks."""
    return client.controller(plan(0, port).model_dump(mode="json"))


async def test_up_and_down(tmp_path: Path) -> None:
    async with group(tmp_path) as made:
        status = await made.until_up()
        assert [rank.phase for rank in status.ranks] == ["ready"] * 3
        assert [rank.adapters for rank in status.ranks] == [("one",)] * 3
        assert run_files.armed(tmp_path / "1/rank.json") == {"one": "d"}
        assert file(made)["state"] == "up"
        assert file(made)["boot"].startswith("1-")
        assert len(engines(tmp_path)) == 12
        answer = await asyncio.to_thread(client.ask, asked(made.port), "stop")
        assert answer["wanted"] is False
        await made.until(lambda s: s.state == "down" and s.phase is None)
        assert made.status().reason == "stopped by an operator"
        await gone(tmp_path)
        assert (tmp_path / "1/logs/boot-1/rank.log").read_text().startswith("server_args")
        await asyncio.to_thread(client.ask, asked(made.port), "start")
        assert (await made.until_up()).number == 2


async def test_workers_start_before_the_head(tmp_path: Path) -> None:
    async with group(tmp_path) as made:
        await made.until_up()
        made_at = [(tmp_path / f"{rank}/logs/boot-1").stat().st_ctime for rank in range(3)]
        assert made_at[0] > max(made_at[1:])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"FAULT_1": "die:Load"}, "rank 1 (spark-1): its engine ended with exit code 3"),
        ({"FAULT_2": "hang:Init"}, "rank 2 (spark-2) stuck in: importing"),
        ({"FAULT_0": "hang:KV"}, "rank 0 (spark-0) stuck in: allocating the KV cache"),
        ({"FAULT_1": "hang:Load", "FAULT_2": "hang:Load"}, "rank 1 (spark-1) and rank 2 (spark-2) stuck in:"),
        ({"FAULT_0": "error"}, "rank 0 (spark-0): no first token"),
    ],
)
async def test_a_start_that_fails(
    tmp_path: Path, fault: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sparkserve.group import phases

    short = [phase._replace(share=0.25) for phase in phases.PHASES]
    monkeypatch.setattr(phases, "PHASES", tuple(short))
    async with group(tmp_path, faults=fault, start_limit=1) as made:
        assert (await made.until_ended()).startswith(reason)
        status = await made.until(lambda s: not s.wanted and not s.phase)
        await gone(tmp_path)
        assert status.reason.startswith("given up after 1 starts in 600 s")
        assert reason in status.reason
        assert ("no weights" in status.starts[-1].log) == ("die" in str(fault))
        assert all(rank.connected for rank in status.ranks)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("unarmed", "rank 2 (spark-2): not armed: one"),
        ("refuse", "rank 2 (spark-2): adapter one refused: another source"),
        ("settings", "the ranks armed different settings of one"),
    ],
)
async def test_wrong_adapters_are_not_tried_again(tmp_path: Path, fault: str, reason: str) -> None:
    async with group(tmp_path, faults={"FAULT_2": fault}) as made:
        status = await made.until(lambda s: not s.wanted and not s.phase)
        assert status.reason == f"{reason} (it would fail again)"
        assert len(status.starts) == 1


async def test_at_most_three_starts(tmp_path: Path) -> None:
    async with group(tmp_path, faults={"FAULT_1": "die:Load"}) as made:
        status = await made.until(lambda s: not s.wanted, 30)
        assert [start.number for start in status.starts] == [1, 2, 3]
        # An operator may try again, with a count of his own, and the limit is remembered over a power cut.
        answer = await asyncio.to_thread(client.ask, asked(made.port), "start")
        assert answer["wanted"]
        await made.until(lambda s: not s.wanted and len(s.starts) == 6, 30)


async def test_a_rank_that_dies_takes_the_group_down_and_it_comes_back(tmp_path: Path) -> None:
    trigger = tmp_path / "die"
    async with group(tmp_path, faults={"FAULT_2": f"die-with-file:{trigger}"}) as made:
        await made.until_up()
        old = pid(made, 0)
        begin = time.monotonic()
        trigger.touch()
        reason = await made.until_ended()
        assert time.monotonic() - begin < 3
        trigger.unlink()
        assert reason.startswith("rank 2 (spark-2): its engine ended with exit code 9")
        status = await made.until_up()
        assert status.number == 2
        assert pid(made, 0) != old


async def test_the_rank_at_fault_is_named_though_its_peers_say_it_first(tmp_path: Path) -> None:
    trigger = tmp_path / "die"
    faults = dict.fromkeys(("FAULT_0", "FAULT_1"), f"lose-with-file:{trigger}")
    async with group(tmp_path, faults={**faults, "FAULT_2": f"die-after-file:{trigger}"}) as made:
        await made.until_up()
        trigger.touch()
        await made.until(lambda status: status.state == "down", 2)
        # Whoever sees it first: its supervisor, or the look at the engine's processes.
        assert re.match(
            r"rank 2 \(spark-2\): (its engine ended|.* of its engine died)", await made.until_ended()
        )
        trigger.unlink()


async def test_a_stopped_process_is_named(tmp_path: Path) -> None:
    async with group(tmp_path) as made:
        await made.until_up()
        stopped = pid(made, 1)
        os.kill(stopped, signal.SIGSTOP)
        reason = await made.until_ended()
        assert reason.startswith("rank 1 (spark-1): ")
        assert reason.endswith(f"(process {stopped}) of its engine is stopped (SIGSTOP)")
        await made.until_up()


async def test_a_child_that_dies_is_named_before_sglang_notices(tmp_path: Path) -> None:
    async with group(tmp_path) as made:
        await made.until_up()
        await made.until(lambda _: procfs.children(pid(made, 2)))
        await asyncio.sleep(1.5)  # a beat has seen it
        child = procfs.children(pid(made, 2))[0]
        child.send(signal.SIGKILL)
        reason = await made.until_ended()
        assert reason == f"rank 2 (spark-2): sglang::schedul (process {child.pid}) of its engine died"


async def test_a_supervisor_that_is_stopped_and_started(tmp_path: Path) -> None:
    async with group(tmp_path) as made:
        await made.until_up()
        await made.kill(1)
        assert await made.until_ended() == "rank 1 (spark-1): its supervisor was stopped"
        status = await made.until(lambda s: s.reason.startswith("rank 1 (spark-1) not connected"))
        assert [rank.connected for rank in status.ranks] == [True, False, True]
        await gone(tmp_path)
        made.start(1)
        await made.until_up()


async def test_a_defect_of_a_supervisor_ends_its_engine_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody would look at an engine whose watch ended in silence."""

    def broken(_: RankEngine) -> None:
        raise KeyError("a word of another SGLang")

    async with group(tmp_path) as made:
        await made.until_up()
        with monkeypatch.context() as patch:
            patch.setattr(RankEngine, "read", broken)
            reason = await made.until_ended()
        assert re.fullmatch(
            r"rank \d \(spark-\d\): its supervisor failed: KeyError\(.a word of another SGLang.\)", reason
        )
        await made.until_up()
    assert "Traceback" in capsys.readouterr().err


async def test_a_connection_that_breaks(tmp_path: Path) -> None:
    async with group(tmp_path) as made:
        await made.until_up()
        made.controller.members.present[2].channel._writer.transport.abort()
        assert await made.until_ended() == "rank 2 (spark-2): its connection was lost"
        await made.until_up()


async def test_a_rank_that_says_nothing(tmp_path: Path) -> None:
    """As a frozen node does: its connection stays, and nothing comes."""
    async with group(tmp_path, ranks=(0, 1)) as made:
        given = plan(2, made.port)
        hello = Supervisor(given, made.closure, run=tmp_path / "2", logs=tmp_path / "2")._hello()
        await made.until(lambda s: s.ranks[0].connected and s.ranks[1].connected)
        frozen = await channel.connect("127.0.0.1", made.port, 2, "127.0.0.3")
        await frozen.send(hello)
        status = await made.until(lambda s: "silent for 2 s" in s.reason)
        assert "rank 2 (spark-2): silent for 2 s (frozen, or off the network)" in status.reason
        assert status.starts == ()  # a preflight that fails is no start
        await frozen.close()


async def test_ranks_that_differ_are_refused(tmp_path: Path) -> None:
    async with group(tmp_path, ranks=(0, 1)) as made:
        value = plan(2, made.port)
        other = value.model_copy(
            update={"adapters": (value.adapters[0].model_copy(update={"settings": {"timeout_s": 31}}),)}
        )
        rank = Supervisor(other, made.closure, run=tmp_path / "2", logs=tmp_path / "2")
        made.tasks[2] = asyncio.create_task(rank.serve())
        status = await made.until(lambda s: "another" in s.reason)
        assert status.reason == "rank 2 (spark-2) has another timeout_s of adapter one: 31, the head 30"
        assert (status.ranks[2].connected, status.ranks[2].trouble) == (False, status.reason)
        await made.kill(2)
        made.start(2)
        await made.until_up()


async def test_preflight_names_the_link_and_counts_as_no_start(tmp_path: Path) -> None:
    async with group(tmp_path, ranks=(0, 1)) as made:
        value = json.loads(plan(2, made.port).model_dump_json(by_alias=True))
        value["fabric"]["links"][0]["peers"][0]["address"] = "127.9.9.9"
        from sparkserve import plan as plans

        rank = Supervisor(plans.parse(value), made.closure, run=tmp_path / "2", logs=tmp_path / "2")
        made.tasks[2] = asyncio.create_task(rank.serve())
        status = await made.until(lambda s: "no echo" in s.reason)
        assert "rank 2 (spark-2): no echo from rank 0 at 127.9.9.9 over lo in 2 s" in status.reason
        assert status.starts == ()


async def test_preflight_names_an_rdma_device_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback = host.Interface(65536, carrier=True, pci=None, hca=None, addresses=(), ipv6=())
    monkeypatch.setattr(host, "read", lambda: host.Facts({"lo": loopback}, {}, tmp_path))
    async with group(tmp_path, ranks=(0, 1)) as made:
        given = plan(2, made.port)
        assert given.fabric is not None
        roce = given.model_copy(update={"fabric": given.fabric.model_copy(update={"nccl": "stock"})})
        rank = Supervisor(roce, made.closure, run=tmp_path / "2", logs=tmp_path / "2")
        made.tasks[2] = asyncio.create_task(rank.serve())
        status = await made.until(lambda s: "RDMA" in s.reason)
        assert "rank 2 (spark-2): lo: expected RDMA device rxe0, found none" in status.reason
        assert status.starts == ()


async def test_preflight_finds_a_taken_port(tmp_path: Path) -> None:
    import socket

    async with group(tmp_path, ranks=(0, 1)) as made:
        with socket.create_server(("127.0.0.1", made.port + 4)):
            made.start(2)
            status = await made.until(lambda s: "is taken" in s.reason)
            assert status.reason == f"preflight: rank 2 (spark-2): port {made.port + 4} of 127.0.0.1 is taken"
        await made.until_up()


async def test_a_group_that_gives_no_token_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "HANG", 1)
    async with group(tmp_path) as made:
        await made.until_up()

        def silent(seconds: float) -> FrontState:
            return FrontState(
                written_at=time.time(),
                pid=1,
                boot=made.controller.state.boot,
                verdict="silent",
                reason="",
                last_token_age_s=seconds,
                in_flight=2,
                canary=Probe(result="pending", seconds=9),
            )

        write(tmp_path / "0/front.json", silent(3))
        await asyncio.sleep(1)
        assert made.status().state == "up"  # a large prefill is as silent as this
        deadline = time.monotonic() + 15
        while made.status().state == "up" and time.monotonic() < deadline:
            write(tmp_path / "0/front.json", silent(7))
            await asyncio.sleep(0.2)
        reason = await made.until_ended()
        assert reason == "no token for 7 s with 2 requests in flight; last probe pending: 9 s"


async def test_the_end_of_the_head_ends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with group(tmp_path) as made:
        await made.until_up()
        monkeypatch.setattr(supervisor, "RETRY_S", 60)  # nobody is there to tell them
        old = [run_files.engine(tmp_path / f"{rank}/rank.json") for rank in range(3)]
        for member in list(made.controller.members.present.values()):
            member.channel._writer.transport.abort()  # as a kill -9 of the controller looks from outside
        for engine in old:
            assert engine is not None
            assert await asyncio.to_thread(engine.wait, 2.0)


async def test_strangers(tmp_path: Path) -> None:
    async with group(tmp_path) as made:
        await made.until_up()
        noise = await channel.connect("127.0.0.1", made.port, 2)
        noise._writer.write(b"GET / HTTP/1.1\r\n\r\n")
        answer = await noise.receive(2)
        assert isinstance(answer, protocol.Refused)
        operator = await channel.connect("127.0.0.1", made.port, 2, "127.0.0.2")
        await operator.send(protocol.Ask(what="stop"))
        answer = await operator.receive(2)
        assert isinstance(answer, protocol.Refused)
        assert answer.reason.startswith("not allowed from 127.0.0.2")
        assert made.status().state == "up"


def test_no_controller() -> None:
    with pytest.raises(SparkserveError, match=r"GROUP\.STATE"):
        client.ask(asked(free_ports()), "status")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"[1]\n", r"\[1\]"),
        (b"HTTP/1.1 400 Bad Request\r\n", "Expecting value"),
        (b'{"type": "refused", "reason": "not allowed"}\n', "not allowed"),
        (b"", "no answer"),
    ],
)
def test_another_server_at_the_controllers_port(said: bytes, told: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(SparkserveError, match=told) as caught:
            client.ask(asked(server.getsockname()[1]), "status")
        thread.join()
    assert caught.value.id == "GROUP.STATE"


def test_a_process_and_its_state() -> None:
    stat = procfs.look(os.getpid())
    assert stat is not None
    assert stat.state == "R"
    assert procfs.look(4_000_000) is None
