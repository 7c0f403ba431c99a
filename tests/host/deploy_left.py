"""What a deployment has left on the nodes: their journals, closures and group, beside what may be left."""

from __future__ import annotations

import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from group_fleet import HEAD
from nodes import FRONT, RANK, processes

from sparkserve.deploy import effect, survey
from sparkserve.engine import procfs
from sparkserve.errors import SparkserveError
from sparkserve.group import run_files
from sparkserve.local import power, several
from sparkserve.transport import rollout

if TYPE_CHECKING:
    from sparkserve.deploy.survey import Found
    from sparkserve.group.protocol import Status
    from sparkserve.local.record import Fleet

LOOK_S = 0.2
SYNC_S = 2.0  # from a write that others see to its end on the disk, on busy cores


class Journals:
    """Looks into the nodes' journals from outside for as long as it is entered.

    A line that was seen must stay for ever, unless its node lost power within `SYNC_S`: then nobody may have
    been told yet that it is written.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.cut: dict[str, tuple[float, float]] = {}  # begin and end of a power cut, by node
        self._fleet = fleet
        self._seen: dict[tuple[str, str], list[tuple[float, bytes]]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on)

    def __enter__(self) -> Journals:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def lost(self) -> list[str]:
        """What was seen and is gone; all nodes are on."""
        self._look()
        found = []
        for (node, name), looks in self._seen.items():
            path = self._folder(node) / name
            now = path.read_bytes() if path.exists() else b""
            begin, end = self.cut.get(node, (0.0, 0.0))
            for at, data in looks:
                if not now.startswith(data) and not begin - SYNC_S <= at <= end:
                    ago = f"seen {time.monotonic() - at:.0f} s ago"
                    found.append(f"{node}: of {name}, {ago}: {data!r}; now {now!r}")
        return found

    def _look_on(self) -> None:
        while not self._stop.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        for node in self._fleet.nodes:
            with suppress(OSError, SparkserveError):  # it is off, or goes
                for path in self._folder(node).iterdir():
                    at, data = time.monotonic(), path.read_bytes()
                    whole = data[: data.rfind(b"\n") + 1]
                    looks = self._seen.setdefault((node, path.name), [])
                    if not looks or looks[-1][1] != whole:
                        looks.append((at, whole))

    def _folder(self, node: str) -> Path:
        process = power.init(self._fleet, node)
        if process is None:
            raise FileNotFoundError(node)
        return Path(f"/proc/{process.pid}/root{run_files.STATE}/deploy/journal")


class Left(NamedTuple):
    """What each node says, and what of it is `wrong`."""

    found: dict[str, Found]
    status: Status | None
    wrong: list[str]

    @property
    def fleet_id(self) -> str:
        """That of the head's current generation."""
        return self.found[HEAD].fleet_id or "none"


def look(fleet: Fleet) -> Left:
    """How all nodes stand after a deployment's end, when the group is up."""
    wrong = []
    with closing(several.connect(fleet)) as runner:
        found = survey.survey(runner, fleet.nodes)
        try:
            effect.check(runner, fleet.plans[0].fleet.name, found)
        except SparkserveError as error:
            wrong.append(str(error))
        paths = {node: Path(there.base.path if there.base else "/") for node, there in found.items()}
        still = {node: units for node, units in rollout.lacking(runner, paths).items() if units}
        status = rollout.status(runner, HEAD)
    ids = {node: there.fleet_id for node, there in found.items()}
    if len(set(ids.values())) > 1 or None in ids.values():
        wrong.append(f"several fleet ids: {ids}")
    wrong += _processes(fleet, found)
    wrong += [f"{node}: {there.state.open.id} is open" for node, there in found.items() if there.state.open]
    wrong += [f"{node}: {', '.join(units)} not running" for node, units in still.items()]
    if status is None or status.state != "up":
        wrong.append(f"the group is not up: {status and status.reason}")
    elif {rank.fleet_id for rank in status.ranks} != {ids[HEAD]}:
        wrong.append(f"ranks of other fleet ids: {[(rank.node, rank.fleet_id) for rank in status.ranks]}")
    return Left(found, status, wrong)


def _processes(fleet: Fleet, found: dict[str, Found]) -> list[str]:
    """Supervisors, and the front, that are not of what is current: systemd tells what it would start."""
    wrong = []
    for node, unit in ((HEAD, FRONT), *((node, RANK) for node in fleet.nodes)):
        lines = [procfs.command_line(process.pid) for process in processes(fleet.names, node, unit)]
        base = found[node].base
        if base is None or not any(
            f"{base.path}/plan.json" in line or line.rstrip().endswith(f" {base.path}") for line in lines
        ):
            wrong.append(f"{node}: {unit} runs {lines[:1]}, current is {base and base.path}")
    return wrong
