"""The doctor reads: what it may run and open is a closed list, and the interpreter itself refuses the rest.

`reading_only` switches on an audit hook for the thread. A check that writes or removes a file, binds a
socket or starts a program that is not on the list meets `Refused`, whatever library acts for it.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# No first dash: a value can never become an option of the program.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@\\-]{0,199}")
_PATH = re.compile(r"/[A-Za-z0-9_./+=@,~-]{0,400}")
_PCI = re.compile(r"pci/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}")
_FIELDS = re.compile(r"--(property|query-gpu|query-compute-apps)=[A-Za-z0-9_.,]+")
INSPECT = "{{.Name}} {{.HostConfig.RestartPolicy.Name}} {{.State.Running}} {{.Config.Image}}"

SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "StrictHostKeyChecking=yes")
# What another node may be asked. Constants: nothing of ours is ever taken apart by a shell over there.
REMOTE = (
    "true",
    "cat /proc/sys/kernel/osrelease",
    "getconf PAGESIZE",
    "cat /sys/module/nvidia/version",
    "readlink -f /nix/var/nix/profiles/sparkserve",
    "cat /sys/kernel/mm/transparent_hugepage/enabled",
    "mokutil --sb-state",
    "date +%s",
    """grep -o '"fleet_id": "[0-9a-f]*"' /nix/var/nix/profiles/sparkserve/closure.json""",
)

LOCAL: tuple[tuple[Any, ...], ...] = (
    ("uname", "-m"),
    ("getconf", "PAGESIZE"),
    ("date", "+%s"),
    ("dmesg",),
    ("efibootmgr",),
    ("ibv_devinfo",),
    ("apt-mark", "showhold"),
    ("apt-config", "dump", "APT::Periodic::Unattended-Upgrade"),
    ("mokutil", "--sb-state"),
    ("sshd", "-T"),
    ("ss", "-ltnH"),
    ("ip", "-j", "addr", "show"),
    ("ip", "-j", "neigh", "show"),
    ("ip", "-j", "route", "get", _ADDRESS),
    ("df", "-Pk", _PATH),
    ("e4defrag", "-c", _PATH),
    ("nvme", "get-feature", _PATH, "-f", "8"),
    ("systemctl", "get-default"),
    ("systemctl", "show", _FIELDS),
    ("systemctl", "show", _FIELDS, _NAME),
    ("systemctl", "is-active", _NAME),
    ("systemctl", "is-enabled", _NAME),
    ("nmcli", "-t", "-f", "DEVICE,STATE,CONNECTION", "device"),
    ("devlink", "-j", "dev", "param", "show", _PCI, "name", "hairpin_queue_size"),
    ("nvidia-smi", _FIELDS, "--format=csv,noheader,nounits"),
    ("docker", "ps", "-aq", "--no-trunc"),
    ("docker", "inspect", "--format", INSPECT, re.compile(r"[0-9a-f]{12,64}")),
    ("git", "-C", _PATH, "ls-files"),
)
_PING = ("ping", "-n", "-q", "-c", "1", "-W", "2", "-M", "do", "-s")
LIVE: tuple[tuple[Any, ...], ...] = (
    (*_PING, re.compile(r"\d{1,4}"), "-I", _NAME, _ADDRESS),
    (*SSH, _ADDRESS, re.compile("|".join(re.escape(each) for each in REMOTE))),
)
# Files whose text may be read; names in folders, links, sizes and modes may be asked of any path.
_READABLE = re.compile(
    r"/proc/(cmdline|meminfo|swaps|buddyinfo|mounts|uptime|cpuinfo|sys/.*|driver/nvidia/.*"
    r"|\d+/(comm|cmdline|cgroup|maps|stat))"
    r"|/sys/.*"
    r"|/etc/(dgx-release|os-release|exports|fstab|hostname|nix/nix\.conf|default/grub(\.d/[^/]+\.cfg)?"
    r"|modprobe\.d/[^/]+\.conf|netplan/[^/]+\.yaml|systemd/network/[^/]+\.network"
    r"|apt/apt\.conf\.d/20auto-upgrades)"
    r"|/boot/grub/(grubenv|grub\.cfg)"
    r"|/run/sparkserve/(rank|group|guard)\.json|/var/log/sparkserve/[a-z.-]+\.log"
    r"|/nix/var/nix/profiles/sparkserve/(plan|closure)\.json"
    r"|/var/lib/nfs/etab"
)


# Where links of a sound host lead from there. Everybody may read the store.
_LED_TO = re.compile(
    r"/usr/lib/os-release|/proc/\d+/mounts|/run/nfs/etab|/nix/store/[A-Za-z0-9].*\.(json|conf)"
)


class Refused(PermissionError):  # noqa: N818 - a refusal of ours, not of the system
    """Something that could change a host was about to be done."""


def check_command(argv: Sequence[str], *, live: bool) -> None:
    """Raise `Refused` unless `argv` is on the list: a list of words, never a line for a shell."""
    if isinstance(argv, (str, bytes)):
        raise Refused(f"a line for a shell: {argv!r}")
    for allowed in LOCAL + (LIVE if live else ()):
        if len(allowed) == len(argv) and all(map(_fits, allowed, argv)):
            return
    raise Refused(f"not a command that only reads: {' '.join(map(str, argv))}")


def _fits(allowed: Any, word: Any) -> bool:
    if isinstance(allowed, re.Pattern):
        return isinstance(word, str) and allowed.fullmatch(word) is not None
    return bool(allowed == word)


def check_text(path: str) -> None:
    """Raise `Refused` unless the text of `path` may be read."""
    if ".." in path.split("/") or not _READABLE.fullmatch(path):
        raise Refused(f"not a file that the doctor reads: {path}")


def check_led(path: str) -> None:
    """Raise `Refused` unless a link in a name of the list may lead to `path`, which has no links."""
    if not _LED_TO.fullmatch(path) and not _READABLE.fullmatch(path):
        raise Refused(f"it leads to {path}, which the doctor does not read")


_CHANGES = re.compile(
    r"os\.(remove|rename|[rm]k?dir|ch(mod|own|flags)|r?(sym)?link|truncate|utime|(set|remove)xattr|system|exec"
    r"|posix_spawn|spawn|fork(pty)?|putenv|kill(pg)?)|shutil\..*|socket\.(bind|connect|send(to|msg))|fcntl\.ioctl"
    r"|pty\.spawn|ctypes\..*|signal\..*"
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_state = threading.local()
_hooked = threading.Lock()


@contextmanager
def reading_only(*, live: bool) -> Iterator[None]:
    """While the body runs, the interpreter refuses every change from this thread."""
    if _hooked.acquire(blocking=False):  # once in a process: a hook can never be taken out again
        sys.addaudithook(_hook)
    before = getattr(_state, "live", None)
    _state.live = live
    try:
        yield
    finally:
        _state.live = before


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    live = getattr(_state, "live", None)
    if live is None:
        return
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITES and path != os.devnull:
            raise Refused(f"to open {path!r} for writing")
    elif event == "subprocess.Popen":
        check_command(arguments[1], live=live)
    elif event == "os.kill":
        if arguments[0] != getattr(_state, "child", None):
            raise Refused("to end a process that the doctor did not start")
    elif _CHANGES.fullmatch(event):
        raise Refused(f"{event} {arguments!r:.200}")


def child(pid: int | None) -> None:
    """The one process that may be ended: the program that runs for the doctor now."""
    _state.child = pid
