"""What only a kernel of its own can show: RoCE GIDs, a watchdog, NFS over mounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import guest as machine

if TYPE_CHECKING:
    from guest import Guest

pytest_plugins = ("guest_fixtures",)

PORT = machine.CABLES[0]
DEVICE = "rocep1s0f0"
# The table has 1,024 entries, and an emulated machine starts few programs a second; addresses come first.
_GIDS = (
    f"cd /sys/class/infiniband/{DEVICE}/ports/1; for n in $(seq 0 7); do "
    "echo $n $(cat gids/$n) $(cat gid_attrs/types/$n 2>/dev/null); done"
)


def gids(guest: Guest) -> dict[str, int]:
    """The index of each RoCE v2 GID that is there."""
    lines = [line.split(maxsplit=2) for line in guest.sh(_GIDS).splitlines()]
    return {gid: int(index) for index, gid, *kind in lines if kind == ["RoCE v2"] and set(gid) != {"0", ":"}}


def test_the_gid_of_an_address_has_no_fixed_index(guest: Guest) -> None:
    """A GID takes the first free place when its address comes, so no plan may hold an index (issues B02)."""
    guest.sh(f"ip link set {PORT} up; modprobe rdma_rxe; rdma link add {DEVICE} type rxe netdev {PORT}")
    mine = "0000:0000:0000:0000:0000:ffff:0a0c:0101"
    found = {}
    for before in ("", f"ip addr add 10.99.0.1/24 dev {PORT}; "):
        guest.sh(f"ip addr flush dev {PORT}; {before}ip addr add 10.12.1.1/24 dev {PORT}; sleep 1")
        found[before] = gids(guest)
    guest.sh(f"rdma link delete {DEVICE}; ip addr flush dev {PORT}")
    assert all(mine in table for table in found.values())
    assert len({table[mine] for table in found.values()}) == 2


def test_nfs_shows_what_is_mounted_below_an_export_only_with_crossmnt(guest: Guest) -> None:
    """A checkpoint is often a bind mount under the exported folder (issues A14)."""
    guest.sh(
        "systemctl start nfs-server; mkdir -p /srv/model /srv/parts /mnt/seen; "
        "for i in $(seq 48); do echo $i >/srv/parts/$i; done; mkdir -p /srv/model/parts; "
        "mount --bind /srv/parts /srv/model/parts"
    )
    counts = {}
    for option in ("crossmnt", "nocrossmnt"):
        guest.sh(f"exportfs -o ro,no_subtree_check,fsid=0,{option} 127.0.0.1:/srv/model")
        guest.sh("mount -t nfs4 -o ro 127.0.0.1:/ /mnt/seen")
        counts[option] = int(guest.sh("ls /mnt/seen/parts | wc -l"))
        guest.sh("umount /mnt/seen; exportfs -ua")
    guest.sh("umount /srv/model/parts; systemctl stop nfs-server")
    assert counts == {"crossmnt": 48, "nocrossmnt": 0}
