"""A group of three ranks in one process, on loopback, whose engines are fake_bwrap.py."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine_values import closure
from engine_values import plan as single

from sparkserve import plan as plans
from sparkserve.adapters.plugin import VARIABLE
from sparkserve.group.controller import Controller
from sparkserve.group.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sparkserve.group.protocol import Status
    from sparkserve.plan import Plan

SIZE = 3
NAMES = [f"spark-{rank}" for rank in range(SIZE)]


def plan(rank: int, port: int, *, faults: dict[str, str] | None = None, **changes: Any) -> Plan:
    """The plan of `rank` of a group that takes the eleven ports from `port`; `changes` are of its group."""
    value = json.loads(single().model_dump_json(by_alias=True))
    nodes = [{"name": name, "rank": n, "address": f"127.0.0.{n + 1}"} for n, name in enumerate(NAMES)]
    links = [
        {
            **{"interface": "lo", "hca": "rxe0", "pci": "0000:01:00.0", "port": 0, "rail": 0, "stripe": 0},
            **{"address": f"127.1.{peer}.{rank + 1}", "prefix": 24},
            "peers": [{"rank": peer, "address": f"127.1.{rank}.{peer + 1}"}],
        }
        for peer in range(SIZE)
        if peer != rank
    ]
    value["fleet"] = {"name": "local-triangle", "topology": "triangle", "nodes": nodes}
    value["node"] = {"name": NAMES[rank], "rank": rank}
    value["fabric"] = {
        "management": {"interface": "lo", "address": f"127.0.0.{rank + 1}", "prefix": 8},
        "mtu": 9000,
        "nccl": None,
        "links": links,
    }
    value["group"] = {
        **{"size": SIZE, "control_port": port, "rendezvous_ports": [port + 5, port + 10]},
        # All ranks are on one loopback here.
        **{"engine_port": port + 2 + rank, "start_limit": 3, "start_window_s": 600},
        **{"canary_s": 1, "lost_s": 4, **changes},
    }
    value["metrics"] = {"port": port}
    value["engine"] |= {"args": ["--model-path", "/model"], "env": faults or {}}
    value["adapters"] = [{"name": "one", "settings": {"timeout_s": 30}}]
    value["serving"]["ready_timeout_s"] = 20
    return plans.parse(value)


def free_ports() -> int:
    """The first of eleven ports that nobody listens on."""
    while True:
        first = random.randrange(20000, 30000)  # noqa: S311
        try:
            for port in range(first, first + 11):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return first


class Group:
    """Three supervisors and a controller; `kill(rank)` ends a supervisor as SIGTERM does."""

    def __init__(self, folder: Path, port: int, **given: Any) -> None:
        self.folder = folder
        self.port = port
        self.given = given
        self.tasks: dict[int, asyncio.Task[None]] = {}
        bwrap = folder / "bwrap"
        bwrap.write_text(f"#!{sys.executable}\n{_body()}")
        bwrap.chmod(0o755)
        layer = {"name": "base", "target": "/", "path": str(folder), "diff_id": "sha256:" + "0" * 64}
        root = {"digest": "sha256:" + "0" * 64, "layers": [layer]}
        self.closure = closure(bwrap=str(bwrap), root=root)
        for rank in range(SIZE):
            (folder / f"{rank}/logs").mkdir(parents=True)
        self.controller = Controller(
            plan(0, port, **given), self.closure, run=folder / "0", state=folder / "0"
        )

    def start(self, rank: int, **changes: Any) -> None:
        """Start the supervisor of a rank."""
        given = plan(rank, self.port, **{**self.given, **changes})
        folder = self.folder / str(rank)
        supervisor = Supervisor(given, self.closure, run=folder, logs=folder / "logs")
        self.tasks[rank] = asyncio.create_task(supervisor.serve())

    async def kill(self, rank: int) -> None:
        """End the supervisor of a rank."""
        self.tasks[rank].cancel()
        with suppress(asyncio.CancelledError):
            await self.tasks[rank]

    def status(self) -> Status:
        """What an operator would be told."""
        from sparkserve.group.report import status

        return status(self.controller)

    async def until(self, done: Callable[[Status], object], seconds: float = 15.0) -> Status:
        """Wait until `done`."""
        deadline = time.monotonic() + seconds
        while not done(now := self.status()):
            assert time.monotonic() < deadline, now
            await asyncio.sleep(0.02)
        return now

    async def until_up(self) -> Status:
        """Wait until it serves."""
        return await self.until(lambda status: status.state == "up")

    async def until_ended(self, boots: int = 1) -> str:
        """Wait until that many starts have ended; why the last of them did."""
        found = await self.until(lambda s: len([1 for each in s.starts if each.ended_at]) >= boots)
        return found.starts[boots - 1].reason


@asynccontextmanager
async def group(folder: Path, *, ranks: tuple[int, ...] = (0, 1, 2), **given: Any) -> AsyncIterator[Group]:
    """A group whose ranks `ranks` run; afterwards no engine is left."""
    made = Group(folder, free_ports(), **given)
    main = asyncio.create_task(made.controller.serve())
    await asyncio.sleep(0)
    for rank in ranks:
        made.start(rank)
    try:
        yield made
    finally:
        for rank in list(made.tasks):
            await made.kill(rank)
        main.cancel()
        with suppress(asyncio.CancelledError):
            await main
    await gone(folder)


async def gone(folder: Path) -> None:
    """No engine is left. Without a real namespace the last one takes a moment."""
    deadline = time.monotonic() + 3
    while left := engines(folder):
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.02)


def engines(folder: Path) -> list[str]:
    """Command lines of processes of fake engines below `folder`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
            if str(folder / "bwrap") in line and VARIABLE in line:
                found.append(line)
    return found


def _body() -> str:
    here = Path(__file__).parent
    return f"import sys\nsys.path.insert(0, {str(here)!r})\nimport fake_bwrap\nfake_bwrap.main()\n"
