"""Builder of the check: has each rendered file of each node read, and then files with a mistake.

in (environment): plans (JSON file: fleet, node, plan), root (what the readers run in), bwrap
"""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
import services
import system
from box import Box


class Reader(NamedTuple):
    """`files` is a pattern of paths; `read` gives complaints; `mistake` must bring one with `word`."""

    files: str
    read: Callable[[Box, list[str]], list[str]]
    mistake: str
    word: str


READERS = [
    Reader("/etc/sysctl.d/[^/]+.conf", system.sysctl, "vm.watermark_bost_factor = 0", "watermark_bost"),
    Reader("/etc/modprobe.d/[^/]+.conf", system.modprobe, "blaklist mt7925e", "blaklist"),
    Reader("/etc/udev/rules.d/[^/]+.rules", system.udev, 'SUBSISTEM=="pci", RUN+="/bin/true"', "SUBSISTEM"),
    Reader("/etc/security/limits.d/[^/]+.conf", system.limits, "* hard", "invalid line"),
    Reader("/etc/default/grub.d/[^/]+.cfg", system.grub, 'GRUB_DEFAULT="1', "ntermin"),
    Reader("/etc/systemd/system/[^/]+.d/[^/]+.conf", services.units, "MemoryMinimum=1", "MemoryMinimum"),
    Reader("/etc/systemd/system.conf.d/[^/]+.conf", services.manager, "RuntimeWatchdog=1", "RuntimeWatchdog"),
    Reader("/etc/ssh/sshd_config.d/[^/]+.conf", services.sshd, "LoginGrace 1", "LoginGrace"),
    Reader("/etc/tmpfiles.d/[^/]+.conf", services.tmpfiles, "d var 0755 root root", "not absolute"),
    Reader("/etc/exports.d/[^/]+.exports", services.exports, "/srv 10.0.0.1(readonly)", "readonly"),
    Reader("/etc/netplan/[^/]+.yaml", services.netplan, "  ethernet: {}", "ethernet"),
    Reader("/etc/sparkserve/sshd-answers", services.reach, "done", "syntax error"),
    Reader("/etc/sparkserve/nftables.conf", services.nft, "add chian inet sparkserve x", "chian"),
]

plans: dict[str, dict[str, Any]] = json.loads(Path(os.environ["plans"]).read_text())
wrong: list[str] = []


def box(plan: dict[str, Any]) -> Box:
    """A fresh one for each reader: some add files."""
    return Box(Path("box").absolute(), Path(os.environ["root"]), os.environ["bwrap"], plan)


def matching(reader: Reader, plan: dict[str, Any]) -> list[str]:
    return [path for path in plan["host"]["files"] if re.fullmatch(reader.files, path)]


unread, seen = set(), set()
for fleet, nodes in plans.items():
    for node, plan in nodes.items():
        host = plan["host"]
        if host["kernel"] is None:
            continue
        unread |= host["files"].keys() - {path for reader in READERS for path in matching(reader, plan)}
        for reader in READERS:
            paths = matching(reader, plan)
            # Most files of a fleet's nodes are equal.
            texts = [host["files"][path] for path in paths] + [host["units"]] * (
                reader.read is services.units
            )
            same = json.dumps([reader.files, texts])
            if paths and same not in seen:
                seen.add(same)
                found = reader.read(box(plan), paths)
                wrong += [f"{fleet}/{node}: {reader.read.__name__}: {line}" for line in found]
wrong += [f"{path}: no reader of checks/rendered reads it" for path in sorted(unread)]

# What has all kinds of files on one node.
plan = plans["everything"]["spark-0"]
for reader in READERS:
    paths = matching(reader, plan)
    broken = box(plan)
    file = plan["host"]["files"][paths[-1]]
    broken.write(paths[-1], f"{file['text']}{reader.mistake}\n", int(file["mode"], 8))
    if not any(reader.word in line for line in reader.read(broken, paths)):
        wrong += [f"{reader.read.__name__} takes {reader.mistake!r} in {paths[-1]}"]

if wrong:
    sys.exit("\n".join(wrong))
Path(os.environ["out"]).touch()
