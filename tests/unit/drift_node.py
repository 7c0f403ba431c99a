"""A node whose engine runs, in a folder: files, systemd, store, and what /proc shows of the engine."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import engine_values
import host_node
from test_activate import WANTS

from sparkserve.adapters import fingerprint
from sparkserve.drift import line
from sparkserve.engine import closure as closures
from sparkserve.engine import procfs, runner
from sparkserve.group import run_files
from sparkserve.group.launch import launch
from sparkserve.host.activate import activate
from sparkserve.plan import load

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MONITOR, INIT, LAUNCHER, SCHEDULER = 100, 101, 102, 103
BOOT, PORT = 7, 29507
START = 12345
LIBRARY = "/opt/engine/lib/libtorch.so"
# What bubblewrap adds to what it was asked for, as seen with 0.8.
MORE = (
    ("/proc/irq", "/irq", "ro,nosuid", "proc", "proc", "rw"),
    ("/dev/null", "/null", "rw,nosuid", "devtmpfs", "devtmpfs", "rw"),
    ("/dev/pts", "/", "rw,nosuid", "devpts", "devpts", "rw"),
)


class Place:
    """The node. Tests change a file, or one of the attributes and then call `write`.

    `words` and `lines` are the engine's and bubblewrap's command lines, `mounts` lines of mountinfo without
    their numbers, `maps` (permissions, inode, path) of every process.
    """

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.node = host_node.Node(tmp_path / "node")
        for name, value in (("vm/swappiness", "60"), ("net/ipv4/tcp_rmem", "1 2 3")):
            self.node.write(f"/proc/sys/{name}", f"{value}\n")
        self.invalid: list[str] = []
        self.verified = ""
        self.drop_ins: dict[str, str] = {}
        self.system = dataclasses.replace(self.node.system, run=self.run)
        self.folder = host_node.closure(tmp_path / "host", **WANTS)
        self.root = tmp_path / "root"
        self._make_root()
        activate(self.node.system, self.folder)
        profile = self.node.system.at("/nix/var/nix/profiles/sparkserve")
        profile.parent.mkdir(parents=True)
        profile.symlink_to("sparkserve-4-link")
        self.plan, self.closure = load(self.folder / "plan.json"), closures.load(self.folder)
        place = launch(self.plan, port=PORT)
        self.line = runner.command(
            self.plan, self.closure, args=place.args, env=place.env, leashed=True, status_fd=9
        )
        wanted = line.parse(self.line)
        self.words, self.environment = list(wanted.words), wanted.environment
        self.mounts = [*map(_mount, wanted.mounts.items()), *MORE]
        self.maps = [
            ("r-xp", self.inode("base/usr/bin/python3.11"), "/usr/bin/python3.11"),
            ("r--p", self.inode("site/lib/libtorch.so"), LIBRARY),
            ("r-xp", self.inode("site/lib/libtorch.so"), LIBRARY),
            ("r--s", 3, "/dev/shm/loads.shm"),  # noqa: S108 - in the engine's root
            ("r--s", 4, "/tmp/counter.db"),  # noqa: S108 - in the engine's root
            ("rw-p", 0, "[heap]"),
            ("rw-p", 0, ""),
        ]
        self.armed = {"oneshot-collectives": self._agreed()}
        self.proc = tmp_path / "proc"
        monkeypatch.setattr(procfs, "PROC", self.proc)
        self.write()

    def inode(self, path: str) -> int:
        """The inode of a file of the layers."""
        return (self.root / path).stat().st_ino

    def write(self) -> None:
        """Make /proc and the supervisor's file show what this says now."""
        for pid, parent, name in (
            (MONITOR, 1, "bwrap"),
            (INIT, MONITOR, "bwrap"),
            (LAUNCHER, INIT, "python3"),
        ):
            self._process(pid, parent, name)
        self._process(SCHEDULER, LAUNCHER, "sglang::schedul")
        self._strings(MONITOR, "cmdline", self.line)
        self._strings(LAUNCHER, "cmdline", self.words)
        self._strings(LAUNCHER, "environ", [f"{name}={value}" for name, value in self.environment.items()])
        mounts = [
            f"{60 + i} 43 254:0 {root} {target} {how} master:7 - {kind} {source} {settings}"
            for i, (target, root, how, kind, source, settings) in enumerate(self.mounts)
        ]
        (self.proc / f"{LAUNCHER}/mountinfo").write_text("\n".join(mounts) + "\n")
        maps = "".join(
            f"7f00-7f01 {how} 00000000 fe:00 {inode}      {path}\n" for how, inode, path in self.maps
        )
        for pid in (MONITOR, INIT):
            (self.proc / f"{pid}/maps").write_text(
                "7f00-7f01 r-xp 0 fe:00 1   /nix/store/tools/usr/bin/bwrap\n"
            )
        for pid in (LAUNCHER, SCHEDULER):
            (self.proc / f"{pid}/maps").write_text(maps)
        run_files.note_engine(self.system.runs, BOOT, procfs.Process(LAUNCHER, START), self.armed)

    def run(self, *argv: str, timeout_s: float = 90) -> subprocess.CompletedProcess[str]:
        """What a program of the node answers: its Nix, and systemd with `drop_ins`."""
        if argv[:2] == ("nix-store", "--query"):
            return subprocess.CompletedProcess(argv, 0, f"{argv[-1]}\n/nix/store/tools\n", "")
        if argv[0] == "nix-store":
            return subprocess.CompletedProcess(argv, 1 if self.invalid else 0, "\n".join(self.invalid), "")
        if argv[0] == "nix":
            return subprocess.CompletedProcess(argv, 2 if self.verified else 0, "", self.verified)
        done = self.node.run(*argv)
        if argv[:2] != ("systemctl", "show"):
            return done
        texts = [
            f"{text}\nDropInPaths={self.drop_ins.get(name, '')}"
            for name, text in zip(argv[3:], done.stdout.split("\n\n"), strict=True)
        ]
        return subprocess.CompletedProcess(argv, 0, "\n\n".join(texts), "")

    def _make_root(self) -> None:
        layers = []
        for name, target in (("base", "/"), ("site", "/opt/engine"), ("model", "/model")):
            folder = self.root / name
            folder.mkdir(parents=True)
            layers.append(
                {"name": name, "target": target, "path": str(folder), "diff_id": engine_values.DIGEST}
            )
        for file in ("base/usr/bin/python3.11", "site/lib/libtorch.so"):
            (self.root / file).parent.mkdir(parents=True)
            (self.root / file).touch()
        # As the mounts would show them below the first layer.
        (self.root / "base/opt").mkdir()
        (self.root / "base/opt/engine").symlink_to(self.root / "site")
        (self.root / "base/model").symlink_to(self.root / "model")
        made = engine_values.closure(root={"digest": engine_values.DIGEST, "layers": layers})
        (self.folder / "closure.json").write_text(made.model_dump_json(by_alias=True))

    def _agreed(self) -> str:
        """What the ranks of the plan agree on, as adapters/plugin.py puts it together."""
        around = "sglang.srt.distributed.parallel_state.GroupCoordinator."
        names = [f"{around}{name}" for name in ("all_reduce", "all_gather", "all_gather_into_tensor")]
        sources = {name: fingerprint.recorded()[name] for name in names}
        (adapter,) = self.plan.adapters
        mine = {"settings": adapter.settings, "fingerprint": fingerprint.digest(sources)}
        return fingerprint.digest({adapter.name: mine})

    def _process(self, pid: int, parent: int, name: str) -> None:
        folder = self.proc / str(pid)
        folder.mkdir(parents=True, exist_ok=True)
        fields = ["S", str(parent), *["0"] * 17, str(START), "0"]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
        self._strings(pid, "cmdline", [name])
        root = folder / "root"
        root.unlink(missing_ok=True)
        root.symlink_to(self.root / "base")

    def _strings(self, pid: int, name: str, words: list[str]) -> None:
        (self.proc / str(pid) / name).write_bytes(b"".join(word.encode() + b"\0" for word in words))


def _mount(item: tuple[str, line.Wanted]) -> tuple[str, ...]:
    target, want = item
    match want.kind:
        case "--ro-bind":
            return target, want.source, "ro,nosuid", "ext4", "/dev/vda", "rw"
        case "--proc":
            return target, "/", "rw,nosuid", "proc", "proc", "rw"
    size = "" if want.size is None else f",size={want.size >> 10}k"
    return target, "/", "rw,nosuid", "tmpfs", "tmpfs", f"rw{size}"


def plan_json(place: Place) -> dict[str, Any]:
    """The plan in the node's closure, to change and write back."""
    value: dict[str, Any] = json.loads((place.folder / "plan.json").read_text())
    return value


def same_file(path: Path) -> Path:
    """Replace `path` by a copy: the same bytes as another file."""
    data = path.read_bytes()
    os.rename(path, path.with_name(f"{path.name}.old"))  # noqa: PTH104 - keeps its inode in use
    path.write_bytes(data)
    return path
