"""A guard over a /proc/meminfo of ours, and processes that stand for the engine's.

A build sandbox has no cgroup to make: there the engine's is a folder with a file cgroup.procs, which a guard
takes for version 1. Given a real cgroup, nothing else differs.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.guard import flags
from sparkserve.guard import state as states

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024  # KiB
# Generous, as builders are busy and give no priority. tests/host/bench_guard.py has what it takes.
KILL_MS = 1000
CLOSEST_MS = 5
ENGINE = "import time\nprint(1, flush=True)\ntime.sleep(600)"
LOCK = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from sparkserve.guard.flags import Flags
flags = Flags(Path(sys.argv[2]))
for flag in sys.argv[3:]: flags.take(int(flag))
print(1, flush=True)
time.sleep(600)
"""


class Levels(NamedTuple):
    """In MiB and ms, as the guard's options have them."""

    floor: int
    line: int
    interval: int

    def __str__(self) -> str:
        return f"{self.floor},{self.line},{self.interval}"


STARTUP = Levels(5120, 7130, 250)
# Without the shorter steps near the line, memory would fall by more than the margin between two samples.
STEADY = Levels(3072, 5082, 5000)


class World:
    """Files in `folder`; `cgroup` is a real one, or made up when None."""

    def __init__(
        self, program: str, folder: Path, cgroup: Path | None = None, kill_ms: int = KILL_MS
    ) -> None:
        self.program = program
        self.folder = folder
        self.cgroup = cgroup or folder / "engine"
        self._real = cgroup is not None
        self.kill_ms = kill_ms
        self.flags = folder / flags.NAME
        self.state_file = folder / "guard.json"
        self.meminfo = folder / "meminfo"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.engine: list[subprocess.Popen[bytes]] = []
        self.guard: subprocess.Popen[bytes] | None = None
        self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notified.bind(str(folder / "notify"))
        self._file = os.open(self.meminfo, os.O_WRONLY | os.O_CREAT)
        self.available(64 * 1024 * MIB)

    def available(self, kib: int) -> None:
        """Say that so much memory is available."""
        self.text(f"MemTotal:       127926272 kB\nMemFree:  7 kB\nMemAvailable:  {kib:10d} kB\nX: 1 kB\n")

    def text(self, text: str) -> None:
        """Say something else. In one write of one length, as the guard may read at any time."""
        os.pwrite(self._file, text.encode().ljust(256, b"\n"), 0)

    def start(self, startup: Levels = STARTUP, steady: Levels = STEADY, *more: str) -> None:
        """Start the guard."""
        argv = [self.program, "--startup", str(startup), "--steady", str(steady), *more]
        argv += ["--closest", str(CLOSEST_MS)] if "--closest" not in more else []
        argv += ["--kill", str(self.kill_ms), "--state", str(self.state_file), "--flags", str(self.flags)]
        argv += ["--cgroup", str(self.folder / "nowhere"), "--cgroup", str(self.cgroup)]
        argv += ["--meminfo", str(self.meminfo)] if "--meminfo" not in more else []
        environment = {"NOTIFY_SOCKET": str(self.folder / "notify")}
        self.guard = subprocess.Popen(argv, stderr=subprocess.PIPE, env=environment)
        self.processes.append(self.guard)

    def run_engine(self, count: int = 3) -> None:
        """Start processes of the engine; they run when this returns."""
        enter = [self.program, "--enter", str(self.cgroup)] if self._real else []
        self.engine = [
            subprocess.Popen([*enter, sys.executable, "-c", ENGINE], stdout=subprocess.PIPE)
            for _ in range(count)
        ]
        self.processes += self.engine
        for each in self.engine:
            assert each.stdout is not None
            each.stdout.readline()
        if not self._real:
            self.cgroup.mkdir(exist_ok=True)
            text = "".join(f"{each.pid}\n" for each in self.engine)
            (self.cgroup / "cgroup.procs").write_text(text)

    def hold(self, *which: int) -> subprocess.Popen[bytes]:
        """A process that has set flags, as a supervisor does."""
        source = str(Path(states.__file__).parents[2])
        argv = [sys.executable, "-c", LOCK, source, str(self.flags), *map(str, which)]
        made = subprocess.Popen(argv, stdout=subprocess.PIPE)
        self.processes.append(made)
        assert made.stdout is not None
        assert made.stdout.readline() == b"1\n"
        return made

    def state(self) -> states.State:
        """What the guard wrote."""
        return states.read(self.state_file)

    def until(self, done: Callable[[states.State], object], seconds: float = 10.0) -> states.State:
        """Wait for a state."""
        deadline = time.monotonic() + seconds
        while True:
            found = states.look(self.state_file)
            if found is not None and done(found):
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.002)

    def word(self, seconds: float) -> str | None:
        """What the guard tells systemd next; None when nothing comes."""
        self.notified.settimeout(seconds)
        with suppress(TimeoutError):
            return self.notified.recv(256).decode()
        return None

    def alive(self) -> bool:
        """Whether any process of the engine lives."""
        return any(each.poll() is None for each in self.engine)

    def dead(self, seconds: float) -> bool:
        """Wait until all of the engine is dead."""
        deadline = time.monotonic() + seconds
        for each in self.engine:
            with suppress(subprocess.TimeoutExpired):
                each.wait(max(0.0, deadline - time.monotonic()))
        if not self._real and not self.alive():
            (self.cgroup / "cgroup.procs").write_text("")
        return not self.alive()

    def ended(self, seconds: float = 10.0) -> tuple[int, str]:
        """The guard's exit code and what it said."""
        assert self.guard is not None
        _, said = self.guard.communicate(timeout=seconds)
        return self.guard.returncode, said.decode()

    def said(self) -> str:
        """What the guard has said up to now."""
        assert self.guard is not None
        assert self.guard.stderr is not None
        text = b""
        while select.select([self.guard.stderr], [], [], 0.1)[0]:
            text += os.read(self.guard.stderr.fileno(), 4096)
        return text.decode()

    def end(self) -> None:
        """Nothing stays."""
        for each in self.processes:
            each.kill()
            each.wait()
        self.notified.close()
        os.close(self._file)
