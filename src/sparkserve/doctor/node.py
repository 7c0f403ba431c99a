"""A host as checks see it: facts taken apart, strictly. An unknown form is `Unknown`, never a guess."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sparkserve.doctor.check import NotApplicable, Unknown
from sparkserve.doctor.words import ENGINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sparkserve.doctor.facts import Facts

PLAN = "/nix/var/nix/profiles/sparkserve/plan.json"
GIB = 1 << 20  # in KiB, which /proc/meminfo counts in
WEIGHTS = "/srv/sparkserve/weights"  # the default of weights.path
RANK_UNIT = "sparkserve-rank.service"
# Makers sell the GB10 board under their own names.
_SPARK = re.compile(r"(?i)dgx[ _-]?spark|\bgb10\b|gx10|gb10-fe")


class Node:
    """One host. Every method raises `Unknown` when the facts do not have the answer."""

    def __init__(self, facts: Facts, plan: Mapping[str, Any] | None, checkout: str | None = None) -> None:
        self.facts = facts
        self.planned = plan
        self.checkout = checkout
        self.text = facts.text
        self.names = facts.names
        self.link = facts.link
        self.stat = facts.stat
        self.exists = facts.exists
        self.run = facts.run
        self.answer = facts.answer

    # The plan. Another version may lack a key: then the question does not arise.

    def plan(self, *keys: str) -> Any:
        """The plan's value at `keys`. Raises `NotApplicable` without a plan, a key, or a value."""
        value: Any = self.planned
        if value is None:
            raise NotApplicable(f"no plan: {PLAN} is not there and --plan was not given")
        for key in keys:
            if not isinstance(value, dict) or value.get(key) is None:
                raise NotApplicable(f"the plan has no {'.'.join(keys)}")
            value = value[key]
        return value

    def links(self) -> list[dict[str, Any]]:
        """The stripes of this node's cables."""
        found = [
            link for link in self.plan("fabric", "links") if isinstance(link, dict) and "interface" in link
        ]
        if not found:
            raise NotApplicable("the plan has no cables")
        return found

    def peers(self) -> list[tuple[str, str]]:
        """(own interface, address of a node at the other end) of every stripe."""
        return [
            (str(link["interface"]), str(peer["address"])) for link in self.links() for peer in link["peers"]
        ]

    def weights(self) -> str:
        """The folder with the checkpoint: the plan's; without a plan the usual one if it is there."""
        if self.planned is not None:
            return str(self.plan("weights", "path"))
        if not self.exists(WEIGHTS):
            raise NotApplicable(f"no plan names a checkpoint, and {WEIGHTS} is not there")
        return WEIGHTS

    def environment(self) -> dict[str, str]:
        """The engine's planned environment."""
        return {str(key): str(value) for key, value in self.plan("engine", "env").items()}

    def argument(self, name: str) -> str | None:
        """The value of an engine's argument; "" for a flag, None when it is not given."""
        words = [str(word) for word in self.plan("engine", "args")]
        for place, word in enumerate(words):
            if word.startswith(f"{name}="):
                return word.partition("=")[2]
            if word == name:
                after = words[place + 1] if place + 1 < len(words) else ""
                return "" if after.startswith("--") else after
        return None

    # The machine.

    def spark(self) -> tuple[bool, str]:
        """Whether this is a Spark, and what told so."""
        machine = self.run("uname", "-m").strip()
        if not re.fullmatch(r"[a-z0-9_]+", machine):
            raise Unknown(f"`uname -m` printed {machine[:40]!r}")
        if machine != "aarch64":
            return False, f"a {machine} machine"
        for path in ("/etc/dgx-release", "/sys/class/dmi/id/product_name"):
            try:
                if found := _SPARK.search(self.text(path)):
                    return True, f"{found[0]} in {path}"
            except Unknown:
                continue
        return False, "an aarch64 machine whose firmware does not say DGX Spark or GB10"

    def release(self) -> str:
        """The running kernel, such as 7.0.0-1019-nvidia."""
        found = self.text("/proc/sys/kernel/osrelease").strip()
        if not re.fullmatch(r"\d+\.\d+\S*", found):
            raise Unknown(f"/proc/sys/kernel/osrelease is no kernel release: {found[:60]!r}")
        return found

    def version(self) -> tuple[int, int]:
        """Major and minor number of the running kernel."""
        major, minor = re.findall(r"\d+", self.release())[:2]
        return int(major), int(minor)

    def page_size(self) -> int:
        """Bytes of a page."""
        return number(self.run("getconf", "PAGESIZE"), "getconf PAGESIZE")

    def pages_64k(self) -> None:
        """Raises `NotApplicable` on a kernel with 4 KiB pages."""
        if (size := self.page_size()) != 65536:
            raise NotApplicable(f"pages are {size} bytes; the question arises with 65536")

    def cmdline(self) -> list[str]:
        """The words of the kernel's command line."""
        words = self.text("/proc/cmdline").split()
        if not words or not all(re.fullmatch(r"[\x21-\x7e]+", word) for word in words):
            raise Unknown("/proc/cmdline is empty or no text")
        return words

    def meminfo(self, key: str) -> int:
        """A value of /proc/meminfo in KiB."""
        found = re.search(rf"^{re.escape(key)}:\s+(\d+)(?: kB)?$", self.text("/proc/meminfo"), re.M)
        if not found:
            raise Unknown(f"/proc/meminfo has no {key}")
        return int(found[1])

    def value(self, path: str) -> int:
        """The whole number that a file of /proc or /sys holds."""
        return number(self.text(path), path)

    def json(self, *argv: str) -> list[dict[str, Any]]:
        """The objects that a command printed as JSON."""
        out = self.run(*argv)
        try:
            value = json.loads(out)
        except ValueError:
            raise Unknown(f"`{' '.join(argv)}` did not print JSON") from None
        if not isinstance(value, list):
            raise Unknown(f"`{' '.join(argv)}` printed JSON of another form")
        return [each for each in value if isinstance(each, dict)]

    def addresses(self, family: str = "inet") -> list[tuple[str, str, int]]:
        """(interface, address, prefix) of every address; link-local ones too."""
        interfaces = self.json("ip", "-j", "addr", "show")
        if not any("ifname" in each for each in interfaces):
            raise Unknown("`ip -j addr show` names no interface")
        return [
            (str(each["ifname"]), str(a["local"]), int(a["prefixlen"]))
            for each in interfaces
            if "ifname" in each
            for a in each.get("addr_info", [])
            if a.get("family") == family and "local" in a
        ]

    def listening(self) -> list[tuple[str, int]]:
        """(address, port) of every listening TCP socket."""
        rows = [line.split() for line in self.run("ss", "-ltnH").splitlines() if line.strip()]
        places = [row[3].rpartition(":") if len(row) >= 4 else ("", "", "") for row in rows]
        if not all(port.isdigit() for _, _, port in places):
            raise Unknown("`ss -ltnH` printed another form")
        return [(host, int(port)) for host, _, port in places]

    def unit(self, name: str, *properties: str) -> dict[str, str]:
        """Properties of a systemd unit; "" as `name` asks the manager itself."""
        asked = ("systemctl", "show", f"--property={','.join(properties)}", *([name] if name else []))
        out = self.run(*asked)
        values = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
        if missing := [each for each in properties if each not in values]:
            raise Unknown(f"systemd does not tell {', '.join(missing)} of {name or 'its manager'}")
        return values

    # The engine.

    def engine(self) -> int:
        """The pid of our running engine. Raises `NotApplicable` when none runs."""
        nobody = NotApplicable("no engine of ours runs")
        if not self.exists("/run/sparkserve/rank.json"):
            raise nobody
        try:
            value = json.loads(self.text("/run/sparkserve/rank.json"))["engine"]
            pid, start = (0, 0) if value is None else (int(value["pid"]), int(value["start"]))
        except (ValueError, KeyError, TypeError):
            raise Unknown("/run/sparkserve/rank.json is not what a supervisor writes") from None
        if not self.exists(f"/proc/{pid}/stat"):
            raise nobody
        # The 22nd field, counted behind the name, which may hold blanks: a reused pid has another start.
        fields = self.text(f"/proc/{pid}/stat").rpartition(")")[2].split()
        if len(fields) < 20:
            raise Unknown(f"/proc/{pid}/stat has another form")
        if fields[19] != str(start):
            raise nobody
        return pid

    def idle(self) -> None:
        """Raises `NotApplicable` while our engine runs."""
        try:
            pid = self.engine()
        except NotApplicable:
            return
        raise NotApplicable(f"our engine runs (process {pid}); the question arises without it")

    def processes(self) -> Iterator[tuple[int, str]]:
        """(pid, command name) of every process."""
        pids = [name for name in self.names("/proc") if name.isdigit()]
        if not pids:
            raise Unknown("/proc has no processes")
        for pid in pids:
            if (name := self._living(pid, "comm")) is not None:
                yield int(pid), name.strip()

    def floor(self) -> int:
        """What the guard keeps free while the engine serves, in KiB: the plan's, else 3 GiB (owen 5.3)."""
        try:
            return int(self.plan("guard", "steady", "floor_mib")) << 10
        except NotApplicable:
            return 3 * GIB

    def ours(self, pid: int) -> bool:
        """Whether a process is in the unit of our supervisor."""
        path = f"/proc/{pid}/cgroup"
        if not self.exists(path):  # it has ended
            return False
        text = self.text(path)
        if not re.match(r"\d+:[^:\n]*:/", text):
            raise Unknown(f"{path} has another form")
        return RANK_UNIT in text

    def engines(self) -> dict[int, str]:
        """Command lines of every process that is an inference engine, ours or not."""
        found = {}
        for pid, name in self.processes():
            if ENGINES.search(name) or name.startswith("python"):
                words = self.command(pid)
                if ENGINES.search(" ".join(words[:4])):
                    found[pid] = " ".join(words)
        return found

    def command(self, pid: int) -> list[str]:
        """The words of a process's command line; none when it has ended."""
        return [word for word in (self._living(pid, "cmdline") or "").split("\0") if word]

    def _living(self, pid: int | str, name: str) -> str | None:
        """A file of a process; None when it has ended, which is not the same as unreadable."""
        path = f"/proc/{pid}/{name}"
        try:
            return self.text(path)
        except Unknown:
            if self.exists(path):
                raise
            return None

    def log(self) -> str:
        """The engine's log."""
        return self.text("/var/log/sparkserve/rank.log")


def number(text: str, where: str) -> int:
    """`text` as a whole number. Raises `Unknown`."""
    if not re.fullmatch(r"\s*-?\d{1,18}\s*", text):
        raise Unknown(f"{where} is no number: {text[:40]!r}")
    return int(text)
