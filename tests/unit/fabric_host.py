"""A host as /proc and /sys show it, made in a folder from a plan; tests then change what they are about."""

from __future__ import annotations

import shutil
from ipaddress import IPv4Address, ip_interface
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import plan

if TYPE_CHECKING:
    from sparkserve.plan import Fabric, Link, Management, Plan

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(fleet: str) -> list[Plan]:
    """The plans of a fleet by rank."""
    return [plan.load(file) for file in sorted((GOLDEN / fleet).glob("*.json"))]


def fabric(given: Plan) -> Fabric:
    """Its fabric, which is there."""
    assert given.fabric is not None
    return given.fabric


class Host:
    """The host of a plan, as planned. Interfaces and RDMA devices are folders; addresses are `addresses`."""

    def __init__(self, root: Path, given: Plan) -> None:
        self.root = root
        self.net = root / "sys/class/net"
        self.ib = root / "sys/class/infiniband"
        planned = fabric(given)
        self.cabled = planned.links
        both: list[Management | Link] = [planned.management, *planned.links]
        self.addresses = {each.interface: [f"{each.address}/{each.prefix}"] for each in both}
        self.ipv6: dict[str, str] = {"lo": "00000000000000000000000000000001"}
        self._interface(planned.management.interface, 1500)
        for link in planned.links:
            self._interface(link.interface, planned.mtu)
            self._device(link)
        for name, value in given.host.sysctls.items():
            self.write(f"proc/sys/{name.replace('.', '/')}", value)
        self.settle()

    def write(self, path: str, text: str | None) -> None:
        """Write a file; None: take it away."""
        file = self.root / path
        if text is None:
            file.unlink()
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def gid(self, hca: str, place: int, address: str | None, kind: str = "RoCE v2") -> None:
        """An entry of a GID table; None: take it away."""
        text = None
        if address is not None:
            number = int(IPv4Address(address))
            text = f"0000:0000:0000:0000:0000:ffff:{number >> 16:04x}:{number & 0xFFFF:04x}"
        self.write(f"sys/class/infiniband/{hca}/ports/1/gids/{place}", text)
        self.write(f"sys/class/infiniband/{hca}/ports/1/gid_attrs/types/{place}", kind if address else None)

    def rename(self, interface: str, name: str) -> None:
        """As another kernel may name it."""
        (self.net / interface).rename(self.net / name)
        self.addresses[name] = self.addresses.pop(interface)
        self.settle()

    def settle(self) -> None:
        """Write `addresses` and `ipv6` as the kernel shows them."""
        routes = ["Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT"]
        # Routes through a gateway say nothing of the interface's own addresses.
        routes.append("enP7s7\t00000000\t0164A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0")
        first, last = self.cabled[0], self.cabled[-1]
        net = _hex(str(last.address).rpartition(".")[0] + ".0")
        routes.append(f"{first.interface}\t{net}\t01000C0A\t0003\t0\t0\t100\t00FFFFFF\t0\t0\t0")
        trie = ["Main:", "  +-- 0.0.0.0/0 3 0 5"]
        for name, addresses in self.addresses.items():
            for address in map(ip_interface, addresses):
                dest, mask = (_hex(str(part)) for part in (address.network[0], address.netmask))
                routes.append(f"{name}\t{dest}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0")
                trie += [f"        |-- {address.network[0]}", "           /24 link UNICAST"]
                trie += [f"        |-- {address.ip}", "           /32 host LOCAL"]
                trie += [f"        |-- {address.network[-1]}", "           /32 link BROADCAST"]
        self.write("proc/net/route", "\n".join(routes))
        self.write("proc/net/fib_trie", "\n".join(trie))
        self.write("proc/net/if_inet6", "\n".join(f"{n} 02 40 20 80 {name}" for name, n in self.ipv6.items()))

    def remove(self, interface: str) -> None:
        """As when the card is not there."""
        shutil.rmtree(self.net / interface)
        del self.addresses[interface]
        self.settle()

    def _interface(self, name: str, mtu: int) -> None:
        self.write(f"sys/class/net/{name}/mtu", str(mtu))
        self.write(f"sys/class/net/{name}/carrier", "1")

    def _device(self, link: Link) -> None:
        device = self.root / "sys/devices" / link.pci
        (device / "infiniband" / link.hca).mkdir(parents=True)
        (self.net / link.interface / "device").symlink_to(device)
        self.gid(link.hca, 3, str(link.address))
        self.gid(link.hca, 2, str(link.address), "IB/RoCE v1")
        self.write(f"sys/class/infiniband/{link.hca}/ports/1/gids/0", "fe80:" + "0000:" * 6 + "0001")


def _hex(address: str) -> str:
    return "".join(f"{int(part):02X}" for part in reversed(address.split(".")))
