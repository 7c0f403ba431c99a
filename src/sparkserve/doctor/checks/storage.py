"""Weights, Engram's pack, exports and mounts, room on the disk."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from sparkserve.doctor.check import RESTARTED, NotApplicable, Unknown, Verdict, check, quoted, want

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

# Ours is written again by the closure, which refuses one that was edited.
EXPORTS = (
    "in the line of /etc/exports that has the folder, then sudo exportfs -ra; "
    "if /etc/exports.d/sparkserve.exports has it: sudo /nix/var/nix/profiles/sparkserve/bin/activate"
)
SHARDS = 48  # of DeepSeek-V4.1-Flash, mia 1.1
SHARD = re.compile(r"model-\d{5}-of-(\d{5})\.safetensors")


def _mount(n: Node) -> list[str] | None:
    """The mount line of the weights when they come over NFS."""
    path = n.weights()
    rows = [line.split() for line in n.text("/proc/mounts").splitlines()]
    if not any(len(row) == 6 and row[1] == "/" for row in rows):
        raise Unknown("/proc/mounts has no /")
    return next((row for row in rows if len(row) == 6 and row[1] == path and row[2].startswith("nfs")), None)


@check(
    "STORAGE.SPACE",
    "The file system of /nix has at least 20 GiB: a closure is copied whole before it is used.",
    "error",
    "owen, mia",
    fix="sudo nix-collect-garbage --delete-older-than 30d; df -h",
)
def space(n: Node) -> Verdict:
    place = "/nix" if n.exists("/nix") else "/"
    row = n.run("df", "-Pk", place).strip().splitlines()[-1].split()
    if len(row) < 6 or not row[3].isdigit():
        raise Unknown("df printed another form")
    found = int(row[3]) / (1 << 20)
    return want(found >= 20, expected="at least 20 GiB", found=f"{found:.0f} GiB", where=f"df {place}")


@check(
    "STORAGE.SHARDS",
    "The checkpoint has config.json and all of its shards, none empty: a partial one fails after minutes.",
    "error",
    "mia",
    fix="download it again into the same folder: what is whole is kept",
)
def shards(n: Node) -> Verdict:
    folder = n.weights()
    names = n.names(folder) if n.exists(folder) else []
    numbers = [found for name in names if (found := SHARD.fullmatch(name))]
    total = max([int(found[1]) for found in numbers], default=SHARDS)
    empty = [found[0] for found in numbers if n.stat(f"{folder}/{found[0]}")["size"] == 0]
    parts = [f"{len(numbers)} of {total} shards"]
    parts += [f"{len(empty)} empty, such as {empty[0]}"] if empty else []
    parts += ["no config.json"] if "config.json" not in names else []
    good = len(parts) == 1 and len(numbers) == total
    return want(good, expected=f"{total} shards and config.json", found=", ".join(parts), where=folder)


@check(
    "STORAGE.ENGRAM",
    "The node's Engram pack is whole: without it rows come over the network, and every step waits.",
    "error",
    "mia",
    fix="./sparkserve down; pack again on this node; a .partial file is what an interrupted pack left",
)
def engram(n: Node) -> Verdict:
    folder = str(n.plan("engram", "directory"))
    names = n.names(folder) if n.exists(folder) else []
    partial = [name for name in names if name.endswith(".partial")]
    whole = [
        name for name in names if not name.endswith(".partial") and n.stat(f"{folder}/{name}")["size"] > 0
    ]
    found = ", ".join(partial) if partial else f"{len(whole)} files"
    return want(bool(whole) and not partial, expected="a pack, no .partial", found=found, where=folder)


@check(
    "STORAGE.ENGRAM_RAM",
    "Engram's tables are on NVMe: they are 190 GiB and a Spark has 121.7.",
    "error",
    "issues, mia",
    fix=f"take SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE out of engine.env in fleet.nix, {RESTARTED}",
)
def engram_ram(n: Node) -> Verdict:
    n.plan("engram")
    found = n.environment().get("SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE", "0")
    good = found.lower() in ("0", "false")
    return want(good, expected="0", found=found, where="the plan's engine.env")


@check(
    "STORAGE.NFS_SOFT",
    "A weights mount is hard: a soft one gives errors, or zeros, when the head is away for a moment.",
    "error",
    "knapcio, mia",
    fix="./sparkserve down; sudo umount PATH; mount it with hard,timeo=600 (weights.source does)",
)
def nfs_soft(n: Node) -> Verdict:
    row = _mount(n)
    if row is None:
        raise NotApplicable("the weights are on this node's disk")
    options = row[3].split(",")
    fix = (
        f"./sparkserve down; sudo umount {quoted(row[1])}; "
        f"sudo mount -t nfs4 -o ro,hard,timeo=600 {quoted(row[0], row[1])}"
    )
    return want("hard" in options, expected="hard", found=row[3][:120], where=row[1], fix=fix)


@check(
    "STORAGE.NFS_WRITE",
    "A weights mount is read-only: no node may change what the others load.",
    "error",
    "ours, mia",
    fix="sudo mount -o remount,ro PATH; ro in the mount unit",
)
def nfs_write(n: Node) -> Verdict:
    row = _mount(n)
    if row is None:
        raise NotApplicable("the weights are on this node's disk")
    fix = f"sudo mount -o remount,ro {quoted(row[1])}"
    return want("ro" in row[3].split(","), expected="ro", found=row[3][:120], where=row[1], fix=fix)


def _exports(n: Node) -> list[tuple[str, list[str]]]:
    """(client, options) of every export of the weights."""
    path = n.weights()
    if not n.exists("/var/lib/nfs/etab"):
        raise NotApplicable("this node exports nothing")
    text = n.text("/var/lib/nfs/etab")
    rows = re.findall(r"^(\S+)\s+(\S+)\(([^)]*)\)$", text, re.M)
    if text.strip() and not rows:
        raise Unknown("/var/lib/nfs/etab has another form")
    found = [(client, options.split(",")) for folder, client, options in rows if folder == path]
    if not found:
        raise NotApplicable("this node does not export the weights")
    return found


@check(
    "STORAGE.EXPORT_CROSSMNT",
    "The export of the weights has crossmnt: without it a worker sees empty folders where others are "
    "mounted.",
    "error",
    "issues",
    fix=f"crossmnt {EXPORTS}",
)
def crossmnt(n: Node) -> Verdict:
    wrong = [client for client, options in _exports(n) if "crossmnt" not in options]
    found = f"without it for {' '.join(wrong)}" if wrong else "crossmnt"
    return want(not wrong, expected="crossmnt", found=found, where="/var/lib/nfs/etab")


@check(
    "STORAGE.EXPORT_RO",
    "The export of the weights is read-only.",
    "error",
    "ours",
    fix=f"ro {EXPORTS}",
)
def export_ro(n: Node) -> Verdict:
    wrong = [client for client, options in _exports(n) if "ro" not in options]
    found = f"writable for {' '.join(wrong)}" if wrong else "ro"
    return want(not wrong, expected="ro", found=found, where="/var/lib/nfs/etab")


@check(
    "STORAGE.EXPORT_CLIENTS",
    "The weights are exported to the subnets of cables only.",
    "warning",
    "ours, mia",
    fix=f"name the cables' subnets as clients {EXPORTS}",
)
def export_clients(n: Node) -> Verdict:
    nets = [ipaddress.IPv4Network(f"{link['address']}/{link['prefix']}", strict=False) for link in n.links()]
    wrong = []
    for client, _ in _exports(n):
        try:
            net = ipaddress.IPv4Network(client, strict=False)
        except ValueError:
            wrong.append(client)
            continue
        if not any(net.subnet_of(each) for each in nets):
            wrong.append(client)
    return want(
        not wrong, expected="cables only", found=" ".join(wrong) or "cables only", where="/var/lib/nfs/etab"
    )


@check(
    "STORAGE.EXTENTS",
    "Shards lie in as few extents as they can: scattered ones may load slower (not established).",
    "info",
    "owen",
    fix="leave it, or with the group stopped: sudo e4defrag -v, on one scattered shard after the other",
)
def extents(n: Node) -> Verdict:
    folder = n.weights()
    if _mount(n) is not None:
        raise NotApplicable("the weights are on the head's disk")
    names = [name for name in n.names(folder) if SHARD.fullmatch(name)] if n.exists(folder) else []
    if not names:
        raise NotApplicable("there are no shards: see STORAGE.SHARDS")
    out = n.run("e4defrag", "-c", folder)
    pairs = [(int(now), int(best)) for now, best in re.findall(r"\s(\d+)/(\d+)\s", out)]
    if not pairs or any(best < 1 or now < best for now, best in pairs):
        raise Unknown("e4defrag printed no extents")
    many = sum(now > best for now, best in pairs)
    return want(many == 0, expected="none scattered", found=f"{many} of {len(pairs)} files", where=folder)


@check(
    "STORAGE.COALESCING",
    "Interrupt coalescing of the NVMe is off; on, reads of 4 KiB take 200 us and not 55, decode is the same.",
    "info",
    "owen",
    fix="leave it, or: sudo nvme set-feature /dev/nvme0 -f 8 -v 0",
    on="spark",
)
def coalescing(n: Node) -> Verdict:
    out = n.run("nvme", "get-feature", "/dev/nvme0", "-f", "8")
    found = re.search(r"[Vv]alue:\s*(0x)?([0-9a-fA-F]+)\s*$", out, re.M)
    if not found:
        raise Unknown("nvme printed no value")
    return want(int(found[2], 16) == 0, expected="0", found=f"0x{found[2]}", where="nvme get-feature -f 8")
