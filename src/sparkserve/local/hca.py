"""What /sys/class/infiniband shows on a Spark, made from a node's plan: a laptop has no RDMA device. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sparkserve.plan import Link, Plan

FIRMWARE = "28.45.4028"  # that of DGX OS 26.09


def files(plan: Plan, hardware_address: Callable[[str], str]) -> Mapping[str, str]:
    """The files below /sys/class, with what is in them. `hardware_address` gives the MAC of an interface."""
    links = plan.fabric.links if plan.fabric else ()
    return {
        f"infiniband/{link.hca}/{name}": f"{text}\n"
        for link in links
        for name, text in _device(link, hardware_address(link.interface)).items()
    }


def _device(link: Link, mac: str) -> dict[str, str]:
    found = {
        "fw_ver": FIRMWARE,
        "hca_type": "MT4129",
        # A folder of the interface's name, as the PCI device has.
        f"device/net/{link.interface}/address": mac,
        "ports/1/state": "4: ACTIVE",
        "ports/1/phys_state": "5: LinkUp",
        "ports/1/link_layer": "Ethernet",
        "ports/1/rate": "200 Gb/sec (4X HDR)",
    }
    # In the driver's order: every address once for each version of RoCE, the one of the MAC first.
    gids = [gid for gid in (_link_local(mac), _mapped(link)) for _ in range(2)]
    for index, gid in enumerate(gids):
        found[f"ports/1/gids/{index}"] = gid
        found[f"ports/1/gid_attrs/types/{index}"] = ("IB/RoCE v1", "RoCE v2")[index % 2]
        found[f"ports/1/gid_attrs/ndevs/{index}"] = link.interface
    return found


def _mapped(link: Link) -> str:
    return f"0000:0000:0000:0000:0000:ffff:{_groups(link.address.packed)}"


def _link_local(mac: str) -> str:
    """RFC 4291, appendix A: ff:fe in the middle, and the second bit of the first byte turned."""
    first, *rest = bytes.fromhex(mac.replace(":", ""))
    middle = bytes([first ^ 2, *rest[:2], 0xFF, 0xFE, *rest[2:]])
    return f"fe80:0000:0000:0000:{_groups(middle)}"


def _groups(data: bytes) -> str:
    return ":".join(data[index : index + 2].hex() for index in range(0, len(data), 2))
