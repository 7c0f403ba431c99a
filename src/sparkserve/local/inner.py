"""Becomes a node: runs as PID 1 of its new namespaces, does what start.json says, and ends as its systemd.

A program of its own that needs only the standard library: `python3 -I inner.py start.json`. Every mount is in
the node's mount namespace, so none needs undoing.
"""

import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

_CLONE_NEWCGROUP = 0x02000000


def main() -> None:
    """Do the steps; never returns."""
    start = json.loads(Path(sys.argv[1]).read_text())
    for folder in start["cgroups"]:
        # 0 is the writer itself, whatever its pid is in which namespace.
        Path(folder, "cgroup.procs").write_text("0")
    # Only now, so that the node sees its own cgroups as the top.
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWCGROUP) != 0:
        raise OSError(ctypes.get_errno(), "no cgroup namespace")
    for step in start["steps"]:
        do(step)
    os.execve(start["init"][0], start["init"], start["environment"])  # noqa: S606 - systemd needs no shell


def do(step: dict[str, Any]) -> None:
    """One step: a command, the host name, a folder to be in, a part of /proc, or something to make."""
    match step["do"]:
        case "hostname":
            socket.sethostname(step["name"])
        case "hide" if Path(step["path"]).exists():
            do({"do": "run", "argv": ["mount", "--bind", "dev/null", step["path"]]})
        case "run":
            done = subprocess.run(step["argv"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(step['argv'])}: {done.stderr.strip() or done.returncode}")
        case "own" if Path(step["path"]).exists():
            _copy_values(Path(step["path"]), Path(step["copy"]))
            do({"do": "run", "argv": ["mount", "--bind", step["copy"], step["path"]]})
        case "cmdline":
            _fresh(step["path"]).write_text(f"{_arguments(Path(step['menu'])) or step['without']}\n")
        case "enter":
            os.chdir(step["path"])
        case "folder":
            os.makedirs(step["path"], exist_ok=True)  # noqa: PTH103 - relative to the folder entered
            os.chmod(step["path"], step["mode"])  # noqa: PTH101
        case "file":
            Path(step["path"]).parent.mkdir(parents=True, exist_ok=True)
            _fresh(step["path"]).write_text(step["text"])
        case "link":
            _fresh(step["path"]).symlink_to(step["target"])
        case "copy":
            shutil.copyfile(step["source"], _fresh(step["path"]))
            os.chmod(step["path"], step["mode"])  # noqa: PTH101


def _copy_values(source: Path, copy: Path) -> None:
    """Copy a file of /proc/sys, or a folder of them. What only a write makes happen is an empty file."""
    for file in sorted(source.iterdir()) if source.is_dir() else [source]:
        target = copy / file.name if source.is_dir() else copy
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.write_text(file.read_text())
        except OSError:
            target.write_text("")
        target.chmod(file.stat().st_mode & 0o777)


def _arguments(menu: Path) -> str | None:
    """The kernel's command line in a menu of GRUB, as /proc/cmdline shows it."""
    try:
        found = re.search(r"^\s*linux\s+(\S+)(.*)$", menu.read_text(), re.MULTILINE)
    except OSError:
        return None
    return f"BOOT_IMAGE={' '.join((found[1] + found[2]).split())}" if found else None


def _fresh(path: str) -> Path:
    """The path, free: what lies there may be a link to elsewhere."""
    Path(path).unlink(missing_ok=True)
    return Path(path)


if __name__ == "__main__":
    main()
