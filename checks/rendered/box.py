"""A node as its readers see it: a root of pinned packages, and an /etc of its own with the rendered files."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

FOLDERS = ("/run", "/tmp", "/var", "/srv")  # noqa: S108 - in the box
PROGRAM = re.compile(r"@out@(/[A-Za-z0-9_./-]+)")


class Box:
    """`etc` is on the disk under `work`; `host` is the plan's section."""

    def __init__(self, work: Path, root: Path, bwrap: str, plan: dict[str, Any]):
        self.root, self.bwrap, self.plan, self.host = root, bwrap, plan, plan["host"]
        self.work = work
        shutil.rmtree(work, ignore_errors=True)
        self.etc = work / "etc"
        shutil.copytree(root / "etc", self.etc, symlinks=True)
        for path in [self.etc, *self.etc.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o200)
        for path, file in self.host["files"].items():
            self.write(path, file["text"], int(file["mode"], 8))
        for name, text in self.host["units"].items():
            self.write(f"/etc/systemd/system/{name}", text)

    def at(self, path: str) -> Path:
        """Where an absolute path of the node is here: /etc, and folders that a reader has `--bind`ed."""
        return self.work / path.removeprefix("/")

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """A file of the node, as rendered. What it calls of its closure is there, and does nothing."""
        for program in PROGRAM.findall(text):
            self.write(f"/closure{program}", "#!/bin/sh\n", 0o755)
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).write_text(text.replace("@out@", "/closure"))
        self.at(path).chmod(mode)

    def run(
        self, *argv: str, uid: int = 0, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in the root, without a network; `options` are bubblewrap's."""
        self.at("/closure").mkdir(exist_ok=True)
        binds = ["--ro-bind", str(self.root), "/", "--bind", str(self.etc), "/etc"]
        binds += ["--ro-bind", str(self.at("/closure")), "/closure", "--proc", "/proc", "--dev", "/dev"]
        folders = [word for path in FOLDERS for word in ("--tmpfs", path)]
        apart = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--die-with-parent"]
        who = ["--uid", str(uid), "--gid", str(uid), "--clearenv", "--setenv", "PATH", "/usr/sbin:/usr/bin"]
        who += ["--setenv", "HOME", "/srv", "--setenv", "LC_ALL", "C.UTF-8"]
        command = [self.bwrap, *apart, *who, *binds, *folders, *options, *argv]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def lines(*outputs: str, but: str = r"$^") -> list[str]:
    """The lines of outputs that are not blank and do not match `but`."""
    found = [line for output in outputs for line in output.splitlines()]
    return [line for line in found if line.strip() and not re.search(but, line)]
