"""What a host closure wants on its node, path by path."""

from __future__ import annotations

import hashlib
import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.host.system import wrong
from sparkserve.host.there import There

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.errors import SparkserveError
    from sparkserve.plan import Host

UNITS = "/etc/systemd/system"
SYSTEM_UNITS = "/lib/systemd/system"
_CHANGE = "Correct host.files, host.units or host.mask, and build again."


class Wanted(NamedTuple):
    """What is to be at a path, with the bytes of a file."""

    there: There
    data: bytes = b""


def wanted(closure: Path, host: Host) -> dict[str, Wanted]:
    """Everything by absolute path. The closure has the files' bytes, the plan `host` their modes.

    Raises `NODE.ACTIVATE` when one path is to be two things, or a file and a folder, and when a unit is to be
    enabled somewhere else than beside the units.
    """
    found: dict[str, Wanted] = {}
    for path, want in _each(closure, host):
        if found.setdefault(path, want) != want:
            raise _clash(closure, path, "two different things there")
    for path in found:
        if above := next((str(above) for above in PurePosixPath(path).parents if str(above) in found), None):
            raise _clash(closure, above, f"{path} below it")
    return found


def _each(closure: Path, host: Host) -> Iterator[tuple[str, Wanted]]:
    for path, file in host.files.items():
        data = (closure / "files" / path.lstrip("/")).read_bytes()
        yield path, _file(data, int(file.mode, 8))
    for name in host.units:
        source = closure / "units" / name
        yield f"{UNITS}/{name}", _link(str(source))
        for target in enabled(source.read_text()):
            if "/" in target:
                raise wrong(f"names of units in [Install] of {name}", target, str(source), _CHANGE)
            yield f"{UNITS}/{target}/{name}", _link(f"../{name}")
    for name in host.mask:
        yield f"{UNITS}/{name}", _link("/dev/null")
    if host.default_target is not None:
        yield f"{UNITS}/default.target", _link(f"{SYSTEM_UNITS}/{host.default_target}")


def _clash(closure: Path, path: str, found: str) -> SparkserveError:
    return wrong(f"one thing at {path}", found, str(closure), _CHANGE)


def enabled(unit: str) -> Iterator[str]:
    """The folders that a unit's text wants a link in, such as multi-user.target.wants."""
    section = ""
    for line in unit.splitlines():
        if line.startswith("["):
            section = line.strip()
        key, _, value = line.partition("=")
        kind = {"WantedBy": "wants", "RequiredBy": "requires"}.get(key.strip())
        if section == "[Install]" and kind:
            yield from (f"{name}.{kind}" for name in value.split())


def _file(data: bytes, mode: int) -> Wanted:
    value = hashlib.sha256(data).hexdigest()
    return Wanted(There(kind="file", value=value, mode=mode, uid=os.geteuid(), gid=os.getegid()), data)


def _link(target: str) -> Wanted:
    return Wanted(There(kind="link", value=target))
