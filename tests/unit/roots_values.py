"""Made-up ELF files and roots for tests of the rules about engine roots."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from sparkserve.roots.tree import Root

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MACHINES = {"aarch64": 183, "x86_64": 62, "cuda": 190}
_HEADERS = 64 + 3 * 56


class _Strings:
    """A string table that grows."""

    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        self.data += text.encode() + b"\0"
        return len(self.data) - len(text) - 1


def elf(
    machine: str = "aarch64",
    *,
    loader: str = "",
    soname: str = "",
    needed: Sequence[str] = (),
    rpath: str = "",
    runpath: str = "",
    defines: Sequence[str] = (),
    wants: Mapping[str, Sequence[str]] | None = None,
    weak: bool = False,
) -> bytes:
    """The bytes of a library that a loader could read, with `loader` of a program.

    With `weak` it can miss what it `wants`.
    """
    strings = _Strings()
    at_loader = _HEADERS + strings.add(loader)
    entries = [(1, strings.add(name)) for name in needed]
    for tag, text in ((14, soname), (15, rpath), (29, runpath)):
        if text:
            entries.append((tag, strings.add(text)))
    definitions = b""
    for i, version in enumerate(defines):
        following = 28 if i + 1 < len(defines) else 0
        definitions += struct.pack("<HHHHIII", 1, 0, i + 1, 1, 0, 20, following)
        definitions += struct.pack("<II", strings.add(version), 0)
    wanted = b""
    for i, (library, versions) in enumerate((wants or {}).items()):
        last = i + 1 == len(wants or {})
        following = 0 if last else 16 * (1 + len(versions))
        wanted += struct.pack("<HHIII", 1, len(versions), strings.add(library), 16, following)
        for j, version in enumerate(versions):
            step = 16 if j + 1 < len(versions) else 0
            wanted += struct.pack("<IHHII", 0, 2 if weak else 0, j + 2, strings.add(version), step)
    at_definitions = _HEADERS + len(strings.data)
    at_wanted = at_definitions + len(definitions)
    at_dynamic = at_wanted + len(wanted)
    entries.append((5, _HEADERS))
    if defines:
        entries += [(0x6FFFFFFC, at_definitions), (0x6FFFFFFD, len(defines))]
    if wants:
        entries += [(0x6FFFFFFE, at_wanted), (0x6FFFFFFF, len(wants))]
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in [*entries, (0, 0)])
    end = at_dynamic + len(dynamic)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 3, MACHINES[machine], 1, 0, 64, 0, 0, 64, 56, 3, 0, 0, 0)
    started = (3, at_loader, len(loader) + 1) if loader else (0, 0, 0)
    segments = [(1, 0, end), (2, at_dynamic, len(dynamic)), started]
    table = b"".join(struct.pack("<IIQQQQQQ", kind, 4, at, at, at, n, n, 8) for kind, at, n in segments)
    return ident + header + table + strings.data + definitions + wanted + dynamic


def root(folder: Path, **layers: Any) -> Root:
    """A root of layers in `folder`. Each keyword is a layer, in order: (where it stands, {path: content}).

    Content is text, bytes, or a Path for a link to it.
    """
    made = []
    for name, (target, files) in layers.items():
        for path, content in files.items():
            file = folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                file.write_text(content)
            elif isinstance(content, bytes):
                file.write_bytes(content)
            else:
                file.symlink_to(content)
        made.append((target, folder / name))
    return Root(made)
