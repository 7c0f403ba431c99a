"""A node in a folder: its files, a kernel's settings, and a systemd that does as they say, or as told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from sparkserve.host.system import System

GOLDEN = Path(__file__).parents[1] / "golden/local-triangle/spark-0.json"
UNITS = "/etc/systemd/system"
RANK = "sparkserve-rank.service"
POLICY = "[Service]\nType=oneshot\nExecStart=@out@/bin/policy\n[Install]\nWantedBy=multi-user.target\n"
EMPTY: dict[str, Any] = {
    **{"files": {}, "units": {}, "mask": [], "default_target": None, "sysctls": {}, "kernel_args": []},
    "kernel": None,
}


class Node:
    """The node; `calls` are the commands that change something, `ran` the units that run now.

    `breaks` has what a command answers in place of success, by its beginning. `links` is what ip shows.
    """

    def __init__(self, root: Path, *, name: str = "spark-0") -> None:
        self.root = root
        self.system = System(root, self.run, name, runs=root / "rank.json", wait_s=0)
        self.calls: list[str] = []
        self.ran: set[str] = set()
        self.failed: set[str] = set()
        self.breaks: dict[str, str] = {}
        self.stale = False
        self.links: list[dict[str, Any]] = []
        self.wire(name)
        for folder in ("etc/systemd/system", "usr/sbin", "proc/sys"):
            (root / folder).mkdir(parents=True)
        self.write("/proc/cmdline", "quiet\n")
        self.write("/proc/sys/kernel/osrelease", "7.0.0-1019-nvidia\n")
        for program in ("systemctl", "sshd", "update-grub", "netplan", "systemd-tmpfiles"):
            self.write(f"/usr/sbin/{program}", "").chmod(0o755)

    def wire(self, name: str) -> None:
        """Give the node the addresses of the golden plan `name`."""
        fabric = plan_of({}, name)["fabric"]
        wired = [fabric["management"], *fabric["links"]]
        self.links = [{}] + [
            {
                **{"ifname": each["interface"], "mtu": 9000 if "peers" in each else 1500},
                # Some versions of ip show entries without these fields.
                "addr_info": [{}, {"local": each["address"], "prefixlen": each["prefix"]}],
            }
            for each in wired
        ]

    def write(self, path: str, text: str) -> Path:
        """Write a file of the node."""
        file = self.system.at(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def tree(self) -> dict[str, object]:
        """Everything in /etc, and the values of the kernel."""
        found: dict[str, object] = {}
        for path in sorted([*(self.root / "etc").rglob("*"), *(self.root / "proc/sys").rglob("*")]):
            stat, name = path.lstat(), str(path.relative_to(self.root))
            if path.is_symlink():
                found[name] = os.readlink(path)  # noqa: PTH115 - as it is
            elif path.is_dir():
                found[name] = stat.st_mode
            else:
                data, mtime = path.read_bytes(), stat.st_mtime_ns
                # The kernel's own tabs do not come back, and times in /proc mean nothing.
                value = (data, mtime) if name.startswith("etc") else b" ".join(data.split())
                found[name] = (value, stat.st_mode, stat.st_uid)
        return found

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """What a program of the node answers."""
        line = " ".join(argv)
        broken = next((text for begin, text in self.breaks.items() if line.startswith(begin)), None)
        if broken is not None:
            return subprocess.CompletedProcess(argv, 1, "", broken)
        if argv[:2] == ("systemctl", "show"):
            return _good(argv, "\n\n".join(map(self._show, argv[3:])))
        if argv[0] == "ip":
            return _good(argv, json.dumps(self.links))
        self.calls.append(line)
        if argv[:2] in (("systemctl", "restart"), ("systemctl", "start")):
            self.ran |= set(argv[2:])
        if argv[:2] == ("systemctl", "stop"):
            self.ran -= set(argv[2:])
        return _good(argv, "")

    def _show(self, unit: str) -> str:
        link = self.system.at(f"{UNITS}/{unit}")
        text = link.read_text() if link.exists() else ""
        masked = link.is_symlink() and os.readlink(link) == "/dev/null"  # noqa: PTH115 - as it is
        state = "failed" if unit in self.failed else "active" if unit in self.ran else "inactive"
        values = {
            "LoadState": "masked" if masked else "loaded" if link.exists() else "not-found",
            "NeedDaemonReload": "yes" if self.stale else "no",
            "ExecStart": next((line for line in text.splitlines() if line.startswith("ExecStart=")), ""),
            "Type": "oneshot" if "Type=oneshot" in text else "simple",
            "ActiveState": state,
            "Result": "exit-code" if state == "failed" else "success",
        }
        return "\n".join(f"{key}={value}" for key, value in values.items())


def _good(argv: tuple[str, ...], out: str) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(argv, 0, out, "")


def plan_of(host: dict[str, Any], node: str = "spark-0") -> dict[str, Any]:
    """The golden plan of a node that wants `host`."""
    plan: dict[str, Any] = json.loads(GOLDEN.with_name(f"{node}.json").read_text())
    plan["host"] = {**EMPTY, **host}
    return plan


def closure(folder: Path, *, node: str = "spark-0", **host: Any) -> Path:
    """A host closure in `folder`; `files` are texts or (text, mode), as nix/host.py writes it."""
    files = {
        path: {"text": given, "mode": "0644"}
        if isinstance(given, str)
        else {"text": given[0], "mode": given[1]}
        for path, given in host.get("files", {}).items()
    }
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(plan_of({**host, "files": files}, node)))
    texts = {f"files{path}": file["text"] for path, file in files.items()}
    texts |= {f"units/{name}": text for name, text in host.get("units", {}).items()}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("@out@", str(folder)))
    return folder
