"""A node's disk: a sparse file with ext4, which a node mounts through a loop device of its own."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from sparkserve.local.names import NodeFiles
    from sparkserve.local.tools import Tools

# EXT4_IOC_SHUTDOWN, and its flag "without flushing the journal": what only memory has is lost, as without
# power.
_SHUTDOWN, _NO_LOG_FLUSH = 0x8004587D, 2
_RELEASE_S = 10.0


def make(files: NodeFiles, gib: int, tools: Tools) -> None:
    """Make the disk unless it is there. Its size stays what it was made with. Raises `HOST.SYSTEM`."""
    for folder in (files.disk, files.root):
        folder.mkdir(parents=True, exist_ok=True)
    if files.image.exists():
        return
    part = files.image.with_suffix(".part")
    part.unlink(missing_ok=True)
    with part.open("xb") as file:
        file.truncate(gib << 30)
    # No reserved blocks: a full disk is full for root too. Lazy: tables are written when they are needed.
    lazy = "lazy_itable_init=1,lazy_journal_init=1"
    tools.run(["mkfs.ext4", "-q", "-m", "0", "-E", lazy, str(part)])
    part.rename(files.image)


def loops(below: Path) -> list[str]:
    """The loop devices whose file is in the folder `below`, as `loop0 /path/of/the/file`."""
    found = []
    for backing in sorted(Path("/sys/block").glob("loop*/loop/backing_file")):
        with suppress(OSError):
            file = backing.read_text().strip().removesuffix(" (deleted)")
            if Path(file).is_relative_to(below):
                found.append(f"{backing.parents[1].name} {file}")
    return found


def wait_released(files: NodeFiles) -> None:
    """Wait until no loop device has the disk: two at once would destroy it. Raises `HOST.SYSTEM`."""
    deadline = time.monotonic() + _RELEASE_S
    while left := loops(files.folder):
        if time.monotonic() > deadline:
            raise SparkserveError(
                "HOST.SYSTEM",
                expected="the disk of a node that is off to be free",
                found=f"in use as {', '.join(left)}",
                where=str(files.image),
                do="Something entered the node's mount namespace and is still there: end it.",
            )
        time.sleep(0.01)


def lose_unsynced(pid: int) -> None:
    """Take the power from the disk of the node whose PID 1 is `pid` here: only what was synced stays."""
    disk = os.open(f"/proc/{pid}/root/nix", os.O_RDONLY)
    try:
        fcntl.ioctl(disk, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
    finally:
        os.close(disk)
