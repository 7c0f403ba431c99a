"""What must be told of a changed file before it counts: systemd, netplan, nftables, udev, GRUB, sshd.

Nothing here starts or stops the engine's group, but for a front that is running already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sparkserve.host.system import System, wrong
from sparkserve.host.wanted import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# A model load must not sit inside an activation; `up` and `deploy` start these. The guard comes and goes with
# the rank. The front stays while the group is away, so nobody else would give it what has changed.
FRONT = "sparkserve-front.service"
LEFT_ALONE = ("sparkserve-rank.service", "sparkserve-guard.service")
GROUP = (*LEFT_ALONE, FRONT)


FILE = "FILE"


class Reader(NamedTuple):
    """Who reads the files that begin with `prefix`. `check` says beforehand whether it would take them.

    A `reload` with the word FILE is called for each changed file.
    """

    prefix: str
    reload: tuple[str, ...]
    check: tuple[str, ...] = ()

    def commands(self, written: Iterable[str]) -> list[tuple[str, ...]]:
        """What is called when the paths `written` are new or others."""
        if FILE not in self.reload:
            return [self.reload]
        files = [path for path in written if path.startswith(self.prefix)]
        return [tuple(path if word == FILE else word for word in self.reload) for path in files]


READERS = (
    # It also takes system.conf.d anew, such as the time of the watchdog (tried with systemd 252).
    Reader("/etc/systemd/", ("systemctl", "daemon-reload")),
    Reader("/etc/tmpfiles.d/", ("systemd-tmpfiles", "--create", FILE)),
    Reader("/etc/udev/rules.d/", ("udevadm", "control", "--reload")),
    # Modules of the first seconds are configured by the copies in there.
    Reader("/etc/modprobe.d/", ("update-initramfs", "-u")),
    Reader("/etc/default/grub", ("update-grub",)),
    # A file that sshd refuses would lock everybody out at its next start. No reload: an sshd that ssh.socket
    # has started, as Ubuntu does, ends with "Cannot bind any address" (9.2). A restart keeps the sessions.
    Reader("/etc/ssh/", ("systemctl", "try-restart", "ssh.service"), ("sshd", "-t")),
    Reader("/etc/netplan/", ("netplan", "apply"), ("netplan", "generate")),
    Reader("/etc/systemd/network/", ("networkctl", "reload")),
    Reader("/etc/exports", ("exportfs", "-ra")),
)


def readers(system: System, changed: Iterable[str]) -> list[Reader]:
    """Those who read one of the paths `changed` and are on this node."""
    paths = list(changed)
    return [
        reader
        for reader in READERS
        if any(path.startswith(reader.prefix) for path in paths) and system.has(reader.reload[0])
    ]


def refused(system: System, reader: Reader) -> str | None:
    """Why a reader would not take the files as they are now; None when it would."""
    if not reader.check:
        return None
    done = system.run(*reader.check)
    return None if done.returncode == 0 else _said(done.stderr or done.stdout)


def change(system: System, *argv: str) -> None:
    """Run a program that changes the node. Raises `NODE.ACTIVATE` unless it succeeds."""
    system.step(" ".join(argv))
    output(system, *argv)


def output(system: System, *argv: str) -> str:
    """The output of a program, which must succeed. Raises `NODE.ACTIVATE`."""
    done = system.run(*argv)
    if done.returncode != 0:
        raise wrong(f"success of: {' '.join(argv)}", _said(done.stderr or done.stdout), system.name)
    return done.stdout


def units(changed: Iterable[str], texts: Iterable[str]) -> list[str]:
    """The units in `texts` (names) among `changed` that are restarted: policy, and the front if it runs."""
    paths = set(changed)
    return [name for name in sorted(texts) if name not in LEFT_ALONE and f"{UNITS}/{name}" in paths]


def running(system: System, names: Sequence[str]) -> list[str]:
    """Those of the units `names` that run now."""
    shown = show(system, names, "ActiveState")
    return [name for name, values in shown.items() if values.get("ActiveState") in ("active", "activating")]


def show(system: System, names: Sequence[str], *properties: str) -> dict[str, dict[str, str]]:
    """What systemd says of units, by name. Raises `NODE.ACTIVATE`."""
    if not names:
        return {}
    done = system.run("systemctl", "show", f"--property={','.join(properties)}", *names)
    blocks = done.stdout.rstrip("\n").split("\n\n")
    if done.returncode != 0 or len(blocks) != len(names):
        raise wrong(f"systemd to know {', '.join(names)}", _said(done.stderr or done.stdout), system.name)
    return {
        name: dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        for name, block in zip(names, blocks, strict=True)
    }


def _said(text: str) -> str:
    return " ".join(text.split())[-300:] or "no word"
