"""What the machine's kernel calls the parts of a laptop fleet, and where its files are. Pure.

Every name ends with, or holds, a tag made from the fleet's folder, so that fleets of several checkouts can
stand side by side, and so that everything of a fleet is found again by its name alone.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

NETNS = Path("/run/netns")


class Names(NamedTuple):
    """The names of the fleet `fleet`, whose state is in `folder`."""

    fleet: str
    folder: Path

    @property
    def tag(self) -> str:
        """Six letters: an interface's name has at most 15."""
        return hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:6]

    @property
    def group(self) -> str:
        """What names of namespaces begin with; the fleet's own cgroup."""
        return f"sparkserve-{self.fleet}-{self.tag}"

    @property
    def wires(self) -> str:
        """The network namespace that the cables lie in, between the nodes."""
        return f"{self.group}-wires"

    def netns(self, node: str) -> str:
        """The network namespace of a node."""
        return f"{self.group}-{node}"

    @property
    def interface(self) -> str:
        """The machine's own interface to the management network of the fleet."""
        return f"spk-{self.tag}"

    @property
    def run(self) -> Path:
        """Runtime files: short, for sockets, and without spaces, where Nix splits its ssh options."""
        return Path("/run") / self.group

    @property
    def connections(self) -> Path:
        """How the folders of shared ssh connections begin, one folder for each command that has some."""
        return Path("/run/sparkserve") / f"ssh-{self.tag}"

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`: every node under its name."""
        return self.run / "ssh_config"

    @property
    def record(self) -> Path:
        """What the fleet was made from; there while it is up."""
        return self.folder / "fleet.json"

    def node(self, name: str) -> NodeFiles:
        """The files of a node."""
        return NodeFiles(self.folder / name)


class NodeFiles(NamedTuple):
    """The files of one node."""

    folder: Path

    @property
    def image(self) -> Path:
        """The node's disk."""
        return self.folder / "disk.img"

    @property
    def disk(self) -> Path:
        """Where the disk is mounted, in the node's own mount namespace only."""
        return self.folder / "disk"

    @property
    def root(self) -> Path:
        """Where the node's root is put together, in its own mount namespace only."""
        return self.folder / "root"

    @property
    def switch(self) -> Path:
        """There while the node is wanted on: the keeper powers on what is wanted and dead."""
        return self.folder / "switch"

    @property
    def ended(self) -> Path:
        """What the node's systemd ended with: reboot, poweroff, halt. Empty while it runs and after a cut."""
        return self.folder / "ended"

    @property
    def start(self) -> Path:
        """What the next start does, as JSON for inner.py."""
        return self.folder / "start.json"

    @property
    def log(self) -> Path:
        """What the start says until systemd runs. Later messages are in the node's journal."""
        return self.folder / "start.log"

    @property
    def host_key(self) -> Path:
        """The node's ssh host key; the public part has the suffix .pub."""
        return self.folder / "ssh_host_ed25519_key"
