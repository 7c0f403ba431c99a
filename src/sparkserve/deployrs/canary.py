"""The file between an activation and its deployer: whoever deletes it has reached the node after the change.

Its name is deploy-rs's: the deployer deletes it by that. Its contents are ours: the process that waits.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from sparkserve.engine import procfs

POLL_S = 0.05


def place(folder: Path, closure: str) -> Path:
    """Where the canary of `closure` is: its name has the hash of the store path."""
    return folder / f"deploy-rs-canary-{Path(closure).name.partition('-')[0]}"


def lay(path: Path) -> None:
    """Make the file, in place of one that a killed activation has left. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    own = procfs.find(os.getpid())
    text = json.dumps({"pid": own.pid, "start": own.start} if own else {})
    # Not through a link, which anybody can lay in /tmp.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(text)


def sings(path: Path) -> bool:
    """Whether an activation waits there now. One that was killed has left a file that nobody watches."""
    try:
        value = json.loads(path.read_text())
        return procfs.Process(int(value["pid"]), int(value["start"])).alive()
    except (OSError, ValueError, KeyError, TypeError):
        return False


def appears(path: Path, seconds: float) -> bool:
    """Wait for `sings`, at most `seconds`."""
    deadline = time.monotonic() + seconds
    while not sings(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def taken(path: Path, seconds: float) -> bool:
    """Wait until somebody has deleted the file, at most `seconds`; nobody can afterwards.

    Of the deployer and this one only one can delete it: they never disagree on whether it was in time.
    """
    deadline = time.monotonic() + seconds
    while os.path.lexists(path):
        if time.monotonic() > deadline:
            try:
                path.unlink()
            except FileNotFoundError:
                return True
            return False
        time.sleep(POLL_S)
    return True
