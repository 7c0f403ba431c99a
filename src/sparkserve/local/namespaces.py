"""Can this machine make the namespaces that the engine runs in? Asked before a long build, not after."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from sparkserve.errors import SparkserveError

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
_MS_REC_PRIVATE = 0x4000 | 0x40000

# What can forbid them, with the value that does.
_SWITCHES = (
    ("user.max_user_namespaces", "0", "15000"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
)


def check() -> None:
    """Raise `HOST.NAMESPACES` unless a process here can get a user namespace and mount in it."""
    pid = os.fork()
    if pid == 0:
        os._exit(_try())
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return
    switches = [
        (name, value, good)
        for name, bad, good in _SWITCHES
        if (value := _sysctl(name)) is not None and value == bad
    ]
    raise SparkserveError(
        "HOST.NAMESPACES",
        expected="user, mount and pid namespaces for the engine",
        # The errno of a forbidden namespace is often ENOSPC; the switch says more.
        found=", ".join(f"{name} = {value}" for name, value, _ in switches) or os.strerror(code),
        where="this machine's kernel",
        do=" and ".join(f"Run: sysctl -w {name}={good}" for name, _, good in switches)
        or "Run it outside of this container, or let the container make namespaces.",
    )


def _try() -> int:
    """The errno of making the namespaces, 0 when all went well. For a child process: it stays in them."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID) != 0:
        return ctypes.get_errno()
    # Ubuntu's AppArmor lets the namespace be made and then forbids to use it.
    if libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None) != 0:
        return ctypes.get_errno()
    return 0


def _sysctl(name: str) -> str | None:
    path = Path("/proc/sys", *name.split("."))
    return path.read_text().strip() if path.exists() else None
