"""The rule about shared libraries: every one that a file needs is found as the dynamic loader would find it.

The loader looks in DT_RPATH (where there is no DT_RUNPATH), LD_LIBRARY_PATH, DT_RUNPATH and its own folders,
in this order. DT_RPATH of what loaded a library holds for that library too, but not for one that Python loads
by itself, so it does not count here. What is found only since something else was loaded before, or what comes
from outside, is in a table with its reason.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sparkserve.roots.elf import Elf
    from sparkserve.roots.tree import Root


@dataclass(frozen=True)
class Loaded:
    """A library that is in the process when another file needs it.

    `library`: its name, or a pattern of names. `user`: a pattern of paths, of those that need it. `by`: the
    folder of the root that it was loaded from, or `driver` for what the host's driver brings.
    """

    library: str
    user: str
    by: str
    because: str


def libraries(
    root: Root, machine: str, loaded: Sequence[Loaded], library_path: Sequence[str] = ()
) -> Iterator[str]:
    """Every needed library of every ELF file for `machine` is found, in the symbol versions that are wanted.

    So is the loader of every program.
    `library_path` is LD_LIBRARY_PATH. An entry of `loaded` that no file needs is told too.
    """
    unused = set(loaded)
    for path, each in root.elves.items():
        if each.machine != machine:
            continue
        if each.loader and _usable(root, each.loader, machine) is None:
            yield f"{path} is started by {each.loader}, which is not there"
        for name in each.needed:
            found = find(root, path, name, machine, library_path)
            entry = next((e for e in loaded if _fits(e, path, name)), None) if found is None else None
            if entry is not None:
                unused.discard(entry)
                if entry.by == "driver":
                    continue
                found = _usable(root, f"{entry.by}/{name}", machine)
            if found is None:
                yield f"{path} needs {name}, which is nowhere that the loader looks{_elsewhere(root, name)}"
            else:
                yield from _versions(root, path, each, name, found)
    for entry in sorted(unused, key=lambda e: (e.library, e.user)):
        yield f"{entry.library} for {entry.user} is listed as loaded already, and no file needs it so"


def find(root: Root, path: str, name: str, machine: str, library_path: Sequence[str] = ()) -> str | None:
    """The library `name` that the loader takes for the ELF file `path`; None where it finds none."""
    each = root.elves[path]
    if "/" in name:
        return _usable(root, name, machine)
    system = (f"/lib/{machine}-linux-gnu", f"/usr/lib/{machine}-linux-gnu", "/lib", "/usr/lib")
    rpath = () if each.runpath else each.rpath
    for folder in (*rpath, *library_path, *each.runpath, *system):
        here = re.sub(r"\$\{?ORIGIN\}?", posixpath.dirname(path), folder)
        # The loader takes a relative folder from where the process stands, which is nowhere in particular.
        if here.startswith("/") and (found := _usable(root, f"{here}/{name}", machine)):
            return found
    return None


def _usable(root: Root, path: str, machine: str) -> str | None:
    found = root.find(path)
    # The loader passes over files of another machine.
    return found if found in root.elves and root.elves[found].machine == machine else None


def _fits(entry: Loaded, path: str, name: str) -> bool:
    return fnmatchcase(name, entry.library) and fnmatchcase(path, entry.user)


def _versions(root: Root, path: str, each: Elf, name: str, found: str) -> Iterator[str]:
    defined = root.elves[found].defines
    wanted = {version for library, version in each.wants if library == name}
    # The loader only warns of a library that defines no version at all.
    for version in sorted(wanted - defined) if defined else ():
        kind = version.partition("_")[0]
        newest = max((v for v in defined if v.startswith(f"{kind}_")), key=_number, default="none")
        yield f"{path} wants {version} of {found}, whose newest is {newest}"


def _number(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _elsewhere(root: Root, name: str) -> str:
    others = root.named(name)
    return f" (there is {', '.join(others)})" if others else ""
