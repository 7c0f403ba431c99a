"""The rules about what a root has once: a distribution, a module, a library; and where it has it from."""

from __future__ import annotations

import base64
import csv
import hashlib
import posixpath
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from sparkserve.roots import loader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sparkserve.roots.tree import Root

_INFO = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.dist-info")
_MANYLINUX = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}


def distributions(root: Root, sites: Sequence[str]) -> Iterator[str]:
    """No distribution is there twice, in whatever versions. `sites`: the folders of modules."""
    found = defaultdict(list)
    for site, name in _infos(root, sites):
        match = _INFO.fullmatch(name)
        if match:
            found[re.sub(r"[-_.]+", "-", match["name"]).lower()].append(f"{site}/{name}")
    for name, places in sorted(found.items()):
        if len(places) > 1:
            yield f"{name} is there {len(places)} times: {', '.join(places)}"


def modules(root: Root, sites: Sequence[str]) -> Iterator[str]:
    """No module hides another one of its name, and no .pth file is there: none of these folders has one read.

    A folder without `__init__.py` hides nothing: Python puts all of its name together.
    """
    owners = defaultdict(set)
    for site in sites:
        for name in root.names(site):
            path = f"{site}/{name}"
            if name.endswith(".pth"):
                yield f"{path} has no effect: only the `site` module reads it, and not in this folder"
            elif name.endswith(".py") or root.find(f"{path}/__init__.py"):
                owners[name.removesuffix(".py")].add(root.find(path) or path)
    for name, places in sorted(owners.items()):
        if len(places) > 1:
            yield f"the module {name} is there {len(places)} times: {', '.join(sorted(places))}"


def tags(root: Root, sites: Sequence[str], machine: str, glibc: str) -> Iterator[str]:
    """Every wheel says that it runs on `machine` with `glibc`."""
    for site, name in _infos(root, sites):
        wheel = f"{site}/{name}/WHEEL"
        if root.find(wheel) is None:
            continue
        found = re.findall(r"^Tag: \S+-(\S+)$", root.text(wheel), re.MULTILINE)
        if not any(_runs(tag, machine, glibc) for tag in found):
            runs_on = " or ".join(found) or "nothing"
            yield f"{site}/{name} is for {runs_on}, the root is {machine} with glibc {glibc}"


def library(root: Root, machine: str, name: str, place: str, user: str) -> Iterator[str]:
    """The library `name` is there once, at `place`, and that is the one that the ELF file `user` maps."""
    stem = name.partition(".so")[0]
    for path, each in sorted(root.elves.items()):
        if path != place and (each.soname == name or re.match(rf"{stem}\.so", posixpath.basename(path))):
            yield f"{path} is another {name}, beside {place}"
    if user not in root.elves:
        yield f"{user}, which maps {name}, is not there"
    elif (taken := loader.find(root, user, name, machine)) != place:
        yield f"{user} maps {taken or 'no file'} as {name}, not {place}"


def owner(root: Root, site: str, module: str, distribution: str) -> Iterator[str]:
    """Every Python file of `module` is the one that `distribution` (name-version) brought, by its RECORD."""
    record = f"{site}/{distribution}.dist-info/RECORD"
    if root.find(record) is None:
        yield f"{record} is not there, so nothing says what {module} has to be"
        return
    known = {row[0]: row[1] for row in csv.reader(root.text(record).splitlines()) if row}
    for path, place in root.places():
        inside = path.removeprefix(f"{site}/")
        if path.startswith(f"{site}/{module}/") and path.endswith(".py"):
            digest = base64.urlsafe_b64encode(hashlib.sha256(place.read_bytes()).digest()).rstrip(b"=")
            if known.get(inside) != f"sha256={digest.decode()}":
                yield f"{path} is not the file that {distribution} brought"


def _infos(root: Root, sites: Sequence[str]) -> Iterator[tuple[str, str]]:
    for site in sites:
        for name in root.names(site):
            if name.endswith(".dist-info"):
                yield site, name


def _runs(tag: str, machine: str, glibc: str) -> bool:
    # NVIDIA's word for servers with Arm processors.
    tag = tag.replace("sbsa", "aarch64")
    if tag in ("any", f"linux_{machine}"):
        return True
    level, _, built_for = tag.partition(f"_{machine}")
    if built_for or not tag.endswith(machine):
        return False
    level = _MANYLINUX.get(level, level.removeprefix("manylinux_").replace("_", "."))
    return bool(re.fullmatch(r"\d+\.\d+", level)) and _parts(level) <= _parts(glibc)


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
