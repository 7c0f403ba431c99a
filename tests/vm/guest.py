"""A machine of its own: Debian's kernel and systemd under QEMU emulation, reached by ssh.

The kernel's command line is what GRUB would make of the guest's own files, so a change of it counts after a
reboot, as on a real machine. The guest sees this machine's store, read-only, at its place.
"""

from __future__ import annotations

import socket
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MANAGEMENT = "enP7s7"
CABLES = ("enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1", "enP2p1s0f1np1")
MEMORY_MIB = 1024
# Emulation is 10 to 50 times slower than the machine: 57 s to the first login with other work beside it.
BOOT_S = 300.0
# The command line of the first entry that update-grub wrote.
_GRUB = "sed -n 's/^linux [^ ]* //p' /boot/grub/grub.cfg"


@dataclass
class Guest:
    """One guest with its disk in `folder`; `address` is its own on the management network."""

    folder: Path
    kernel: Path
    address: str
    arguments: str = ""
    process: subprocess.Popen[bytes] | None = None
    port: int = field(default=0)

    def start(self) -> None:
        """Power on, and wait until it answers."""
        self.port = _free_port()
        network = self.address.rsplit(".", 1)[0]
        argv = [
            *("qemu-system-x86_64", "-accel", "tcg", "-m", str(MEMORY_MIB), "-smp", "2", "-display", "none"),
            *("-serial", f"file:{self.folder}/console.log", "-no-reboot", "-action", "watchdog=reset"),
            *("-kernel", f"{self.kernel}/vmlinuz", "-initrd", f"{self.kernel}/initramfs"),
            *("-append", f"console=ttyS0 {self.arguments}"),
            *("-drive", f"file={self.folder}/disk.img,if=virtio,format=raw,cache=none"),
            *_share("/nix/store", "store"),
            *_share(f"{self.folder}/given", "given"),
            *(
                "-netdev",
                f"user,id=management,net={network}.0/24,host={network}.254,dns={network}.253,restrict=on,ipv6=off,"
                f"hostfwd=tcp:127.0.0.1:{self.port}-{self.address}:22",
            ),
            *("-device", f"virtio-net-pci,netdev=management,mac={mac(0)}"),
            *("-device", "virtio-rng-pci", "-device", "i6300esb"),
        ]
        # A cable with nothing at its other end: the link is up, and nobody answers.
        for number, _ in enumerate(CABLES, 1):
            argv += ["-netdev", f"hubport,id=cable{number},hubid={number}"]
            argv += ["-device", f"virtio-net-pci,netdev=cable{number},mac={mac(number)}"]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        end = time.monotonic() + BOOT_S
        while self.attempt("true").returncode != 0:
            assert self.process.poll() is None, f"QEMU ended with {self.process.returncode}: {self.console()}"
            assert time.monotonic() < end, f"no answer after {BOOT_S} s: {self.console()}"
            time.sleep(1)

    def attempt(self, command: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
        """What `command` printed and how it ended; exit code 255 when the guest does not answer."""
        options = [
            "UserKnownHostsFile=/dev/null",
            "StrictHostKeyChecking=no",
            "LogLevel=ERROR",
            "ConnectTimeout=20",
        ]
        argv = ["ssh", "-i", f"{self.folder}/key", "-p", str(self.port), "root@127.0.0.1"]
        argv += [word for option in options for word in ("-o", option)]
        try:
            return subprocess.run(
                [*argv, command], capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(argv, 255, "", f"no answer in {timeout} s")

    def sh(self, command: str, timeout: float = 120.0) -> str:
        """What `command` printed; it must succeed."""
        done = self.attempt(command, timeout)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def reboot(self) -> None:
        """From inside, with the command line that its GRUB files give."""
        self.arguments = self.sh(_GRUB).strip()
        self.attempt("systemctl reboot", 30)
        self.until_off(BOOT_S)
        self.start()

    def cut(self) -> None:
        """Cut the power: what the disk does not have is lost."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def until_off(self, seconds: float) -> None:
        """Wait until the guest has ended by itself (QEMU ends instead of a reboot)."""
        assert self.process is not None
        self.process.wait(seconds)

    def console(self) -> str:
        """The last that it said."""
        return (self.folder / "console.log").read_text(errors="replace")[-3000:]


def mac(number: int) -> str:
    """The hardware address of interface `number`."""
    return f"52:54:00:77:00:{number:02x}"


def _share(folder: str, tag: str) -> list[str]:
    return ["-virtfs", f"local,path={folder},mount_tag={tag},security_model=none,readonly=on,multidevs=remap"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
