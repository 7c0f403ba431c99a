"""The ssh keys of a laptop fleet, made once and pinned: nobody is asked whether a host is the right one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sparkserve.local.names import Names
    from sparkserve.local.tools import Tools
    from sparkserve.plan import FleetNode

# A node that is cut off or frozen is noticed in 10 s; one whose two cores are busy has time to answer.
_OPTIONS = {
    "User": "root",
    "IdentitiesOnly": "yes",
    "PreferredAuthentications": "publickey",
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "/dev/null",
    "UpdateHostKeys": "no",
    "BatchMode": "yes",
    "LogLevel": "ERROR",
    "ConnectTimeout": "5",
    "ServerAliveInterval": "2",
    "ServerAliveCountMax": "5",
    # The fastest there is on processors with AES, and every byte of a closure passes through it.
    "Ciphers": "aes128-gcm@openssh.com",
    "ControlMaster": "auto",
    "ControlPersist": "60",
}


def make(names: Names, nodes: Sequence[str], tools: Tools) -> None:
    """Make the keys that are missing, and known_hosts from those that are there. Raises `HOST.SYSTEM`."""
    client = names.folder / "id_ed25519"
    for path, comment in (
        (client, names.fleet),
        *((names.node(node).host_key, node) for node in nodes),
    ):
        public = path.with_name(f"{path.name}.pub")
        if not public.exists():
            path.unlink(missing_ok=True)  # a half of a pair
            tools.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])
    lines = []
    for node in nodes:
        kind, key = names.node(node).host_key.with_suffix(".pub").read_text().split()[:2]
        lines.append(f"{node} {kind} {key}\n")
    (names.folder / "known_hosts").write_text("".join(lines))


def config(names: Names, nodes: Sequence[FleetNode]) -> str:
    """The text of an ssh_config that knows every node by its name. Pure."""
    common = {
        **_OPTIONS,
        "IdentityFile": _quoted(names.folder / "id_ed25519"),
        "UserKnownHostsFile": _quoted(names.folder / "known_hosts"),
        "ControlPath": str(names.run / "%n"),
    }
    blocks = [f"Host {node.name}\n  HostName {node.address}\n  HostKeyAlias {node.name}\n" for node in nodes]
    everyone = "".join(f"  {name} {value}\n" for name, value in common.items())
    return "\n".join([*blocks, f"Host *\n{everyone}"])


def _quoted(path: Path) -> str:
    # ssh takes % as the start of a token.
    return '"' + str(path).replace("%", "%%") + '"'
