"""What a host really has, read from /proc and /sys. What is not there to read is None or empty: no error."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from sparkserve.host import kernel

ROOT = Path("/")


class Gid(NamedTuple):
    """An entry of an RDMA device's GID table that is an IPv4 address, such as `RoCE v2`."""

    place: int
    address: IPv4Address
    type: str


@dataclass(frozen=True)
class Interface:
    """A network interface. `carrier` is None while it is set down, `pci` and `hca` without such a device."""

    mtu: int | None
    carrier: bool | None
    pci: str | None
    hca: str | None
    addresses: tuple[IPv4Interface, ...]
    ipv6: tuple[IPv6Address, ...]


@dataclass(frozen=True)
class Facts:
    """The interfaces by name, and the IPv4 entries of each RDMA device's first port."""

    interfaces: dict[str, Interface]
    gids: dict[str, tuple[Gid, ...]]
    root: Path

    def sysctl(self, name: str) -> str | None:
        """The value of a kernel setting, as sysctl names it."""
        return _text(self.root / "proc/sys" / kernel.place(name))


def read(root: Path = ROOT) -> Facts:
    """The facts of the host whose file system is `root`."""
    addresses, ipv6 = _addresses(root), _ipv6(root)
    found = {
        path.name: _interface(path, addresses.get(path.name, []), ipv6.get(path.name, []))
        for path in _entries(root / "sys/class/net")
    }
    return Facts(found, {path.name: _gids(path) for path in _entries(root / "sys/class/infiniband")}, root)


def _interface(path: Path, addresses: list[IPv4Interface], ipv6: list[IPv6Address]) -> Interface:
    device = path / "device"
    mtu, carrier = _text(path / "mtu"), _text(path / "carrier")
    hcas = _entries(device / "infiniband")
    return Interface(
        mtu=int(mtu) if mtu else None,
        carrier=None if carrier is None else carrier == "1",
        pci=device.resolve().name if device.exists() else None,
        hca=hcas[0].name if hcas else None,
        addresses=tuple(addresses),
        ipv6=tuple(ipv6),
    )


def _addresses(root: Path) -> dict[str, list[IPv4Interface]]:
    """By interface. The kernel lists a host's addresses without one, and its networks with theirs."""
    trie = (_text(root / "proc/net/fib_trie") or "").splitlines()
    local = {
        IPv4Address(before.split()[-1]) for before, line in pairwise(trie) if line.strip() == "/32 host LOCAL"
    }
    found: dict[str, list[IPv4Interface]] = {}
    for line in (_text(root / "proc/net/route") or "").splitlines()[1:]:
        fields = line.split()
        if fields[2] != "00000000" or fields[1] == "00000000":
            continue  # through a gateway
        net = IPv4Network((_hex(fields[1]), str(_hex(fields[7]))))
        for address in sorted(address for address in local if address in net):
            found.setdefault(fields[0], []).append(IPv4Interface(f"{address}/{net.prefixlen}"))
    return found


def _ipv6(root: Path) -> dict[str, list[IPv6Address]]:
    found: dict[str, list[IPv6Address]] = {}
    for line in (_text(root / "proc/net/if_inet6") or "").splitlines():
        fields = line.split()
        found.setdefault(fields[5], []).append(IPv6Address(int(fields[0], 16)))
    return found


def _gids(device: Path) -> tuple[Gid, ...]:
    port = device / "ports/1"
    found = []
    for path in _entries(port / "gids"):
        mapped = IPv6Address(_text(path) or "::").ipv4_mapped
        if mapped is not None:
            kind = _text(port / "gid_attrs/types" / path.name) or "unknown"
            found.append(Gid(int(path.name), mapped, kind))
    return tuple(sorted(found))


def _hex(text: str) -> IPv4Address:
    """An address as /proc/net/route has it: its bytes as the processor, little-endian here, orders them."""
    return IPv4Address(bytes.fromhex(text)[::-1])


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
