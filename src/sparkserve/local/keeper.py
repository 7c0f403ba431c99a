"""One process beside a laptop fleet: powers nodes on that rebooted, and forwards the public port to the head.

`python3 -m sparkserve.local.keeper FOLDER FLEET FD` is started by `start`, in a session of its own. It holds
a lock on a file as long as it lives: who has the lock is the keeper, whatever any pid file says.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.engine import procfs
from sparkserve.errors import SparkserveError
from sparkserve.local import forward, power, record
from sparkserve.local.cgroups import BESIDE
from sparkserve.local.lock import powered
from sparkserve.local.names import NETNS, Names

if TYPE_CHECKING:
    from sparkserve.engine.procfs import Process
    from sparkserve.local.record import Fleet

_START_S = 20.0
_LOOK_S = 0.25
# A node that ends by itself so often in so many seconds is broken; one that is off can be looked at.
_TRIES, _WITHIN_S = 5, 60.0
_FLOCK = "hhqqi4x"  # struct flock: type, whence, start, length, pid


def find(names: Names) -> Process | None:
    """The fleet's keeper, as the kernel knows it."""
    with suppress(FileNotFoundError), (names.folder / "keeper.lock").open("rb") as file:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
        if kind != fcntl.F_UNLCK:
            return procfs.find(pid)
    return None


def start(fleet: Fleet) -> None:
    """Start the keeper unless it runs; returns when it listens on the public port. Raises `HOST.SYSTEM`."""
    if find(fleet.names) is not None:
        return
    reader, writer = os.pipe()
    log = fleet.names.folder / "keeper.log"
    argv = [sys.executable, "-P", "-m", __name__, str(fleet.names.folder), fleet.name, str(writer)]
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
            pass_fds=[writer],
            # The harness finds its modules by its own interpreter; a checkout's Python by this.
            env={**fleet.tools.environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    os.close(writer)
    fleet.cgroups.join(fleet.names.group, BESIDE, process.pid)
    try:
        ready = select.select([reader], [], [], _START_S)[0] and os.read(reader, 1) == b"+"
    finally:
        os.close(reader)
    if not ready:
        said = log.read_text(errors="replace").strip().splitlines()[-1:]
        raise SparkserveError(
            "HOST.SYSTEM",
            expected="the keeper of the fleet to start",
            found=said[0] if said else "no word from it",
            where=str(log),
            do="Run the same command again.",
        )


def stop(names: Names) -> None:
    """End the keeper, if there is one."""
    process = find(names)
    if process is not None:
        process.send(signal.SIGKILL)
        process.wait(5.0)


def main(folder: str, name: str, ready: int) -> None:
    """Keep the fleet until it is down."""
    names = Names(name, Path(folder))
    with (names.folder / "keeper.lock").open("wb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("another keeper was first")
        fleet = record.load(names)
        if fleet is not None:
            asyncio.run(_keep(fleet, ready))


async def _keep(fleet: Fleet, ready: int) -> None:
    serving = fleet.plans[0].serving
    netns = NETNS / fleet.names.netns(fleet.plans[0].node.name)
    server = await forward.listen(serving.host, serving.port, serving.host, serving.port, netns)
    os.write(ready, b"+")
    os.close(ready)
    async with server:
        watchers = [asyncio.create_task(_watch(fleet, node)) for node in fleet.nodes]
        while fleet.names.record.exists():
            await asyncio.sleep(_LOOK_S)
        for watcher in watchers:
            watcher.cancel()


async def _watch(fleet: Fleet, node: str) -> None:
    """Power a node on whenever it is wanted on and is not."""
    again: list[float] = []
    while True:
        process = power.init(fleet, node) if wanted(fleet, node) else None
        if process is not None:
            await _end_of(process)
        elif wanted(fleet, node):
            try:
                await asyncio.to_thread(_again, fleet, node, again)
            except OSError as error:  # a full disk, now; the node is still to be powered on afterwards
                _log(f"{node}: {error}")
        await asyncio.sleep(_LOOK_S)


def wanted(fleet: Fleet, node: str) -> bool:
    """Whether a node should be on."""
    return fleet.names.node(node).switch.exists()


async def _end_of(process: Process) -> None:
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, ended.set)
    try:
        if process.alive():
            await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def _again(fleet: Fleet, node: str, again: list[float]) -> None:
    """What a node that has ended by itself gets: off when it said so, else on again.

    `again` has the times of the last power-ons here, and gets this one.
    """
    with powered(fleet.names):
        if not (wanted(fleet, node) and fleet.names.record.exists()) or power.init(fleet, node) is not None:
            return
        why = fleet.names.node(node).ended.read_text().strip()
        _log(f"{node} ended: {why or 'without a word'}")
        now = time.monotonic()
        again[:] = [then for then in again if now - then < _WITHIN_S]
        broken = len(again) == _TRIES
        if broken or why in ("poweroff", "halt"):
            power.off(fleet, node, clean=False)
            _log(f"{node} stays off" + (f": {_TRIES} ends before in {_WITHIN_S:.0f} s" if broken else ""))
            return
        again.append(now)
        try:
            power.on(fleet, node)
        except SparkserveError as error:
            _log(str(error))
            power.off(fleet, node, clean=False)


def _log(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {text}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
