"""What only a kernel of its own can show: RoCE GIDs, a watchdog, NFS over mounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import guest as machine

if TYPE_CHECKING:
    from guest import Guest

PORT = machine.CABLES[0]
DEVICE = "rocep1s0f0"
_GIDS = (
    f"cd /sys/class/infiniband/{DEVICE}/ports/1; for i in gids/*; do n=${{i#gids/}}; "
    'echo "$n $(cat gids/$n) $(cat gid_attrs/types/$n 2>/dev/null)"; done'
)


def gids(guest: Guest) -> dict[str, int]:
    """The index of each RoCE v2 GID that is there."""
    lines = [line.split(maxsplit=2) for line in guest.sh(_GIDS).splitlines()]
    return {gid: int(index) for index, gid, *kind in lines if kind == ["RoCE v2"] and set(gid) != {"0", ":"}}


def test_the_gid_of_an_address_has_no_fixed_index(guest: Guest) -> None:
    """The address's GID moves with the link-local one, so no plan may hold an index (issues B02)."""
    guest.sh(
        f"ip link set {PORT} up; ip addr flush dev {PORT}; sysctl -qw net.ipv6.conf.{PORT}.disable_ipv6=1"
    )
    guest.sh(
        f"ip addr add 10.12.1.1/24 dev {PORT}; modprobe rdma_rxe; "
        f"rdma link add {DEVICE} type rxe netdev {PORT}"
    )
    mine = "0000:0000:0000:0000:0000:ffff:0a0c:0101"
    alone = gids(guest)
    guest.sh(f"ip addr flush dev {PORT}; sysctl -qw net.ipv6.conf.{PORT}.disable_ipv6=0")
    guest.sh(f"ip link set {PORT} down; ip link set {PORT} up; sleep 3; ip addr add 10.12.1.1/24 dev {PORT}")
    after = gids(guest)
    guest.sh(f"rdma link delete {DEVICE}; ip addr flush dev {PORT}")
    assert mine in alone
    assert mine in after
    assert alone[mine] != after[mine]


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
