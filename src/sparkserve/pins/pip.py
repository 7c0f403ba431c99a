"""pip as the downloader of wheels: its configuration on this machine says where they come from."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError
from sparkserve.pins import processes, wheels

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sparkserve.pins.model import Target

_TAIL = 1500


class AbsentError(SparkserveError):
    """The indexes answered, and none has the file."""


@dataclass(frozen=True)
class Places:
    """Where wheels come from, besides the default index: folders or pages of links, and indexes.

    `settings` is all of pip's configuration.
    """

    find_links: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> list[str]:
        """The options that pip and uv share."""
        links = [option for place in self.find_links for option in ("--find-links", place)]
        return links + [option for place in self.indexes for option in ("--extra-index-url", place)]


def places(given: Sequence[str]) -> Places:
    """pip's places on this machine (its files and environment), after the folders and indexes in `given`."""
    done = subprocess.run([*_pip(), "config", "list"], capture_output=True, text=True)
    settings: dict[str, str] = {}
    # pip prints environment variables first, and they win.
    for scope, key, value in re.findall(r"^(\w+|:env:)\.([\w-]+)=(.*)$", done.stdout, re.MULTILINE):
        if scope in (":env:", "global", "download"):
            settings.setdefault(key, str(ast.literal_eval(value)))
    folders = tuple(str(Path(place).resolve()) for place in given if "://" not in place)
    indexes = tuple(place for place in given if "://" in place)
    return Places(
        find_links=folders + tuple(settings.get("find-links", "").split()),
        indexes=indexes + tuple(settings.get("extra-index-url", "").split()),
        settings=settings,
    )


def command(target: Target, exact: Sequence[str], folder: Path, where: Places) -> list[str]:
    """The pip command that puts the wheels `exact` for `target` into `folder`, whatever Python runs it."""
    # The store is the cache; pip's own would hold every file a second time.
    argv = [*_pip(), "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--quiet"]
    argv += ["--progress-bar", "off", "--no-input", "--disable-pip-version-check", "--dest", str(folder)]
    argv += ["--python-version", target.python, "--implementation", "cp"]
    for tag in wheels.platforms(target):
        argv += ["--platform", tag]
    return [*argv, *where.options(), *exact]


def download(target: Target, exact: Sequence[str], base: Path, where: Places) -> list[Path]:
    """Download `exact` (name==version) for `target` below `base`. Raises `PIN.FETCH`, `HOST.DISK`."""
    # pip downloads into TMPDIR and moves at the end: below `base`, so that the progress is seen there.
    (base / "tmp").mkdir()
    argv = command(target, exact, base / "wheels", where)
    # A machine's constraints are about what people install on it; here they could only refuse what is pinned.
    settings = {"TMPDIR": str(base / "tmp"), "PIP_CONSTRAINT": os.devnull}
    done = processes.run(argv, env={**os.environ, **settings})
    if done.returncode == 0:
        return sorted((base / "wheels").glob("*.whl"))
    target_words = f"pip for Python {target.python}, glibc {target.glibc}"
    absent = re.findall(r"No matching distribution found for (\S+)", done.stderr)
    # pip also says "no matching distribution" when it cannot reach the index.
    cut_off = re.findall(r"connection broken by '(.*?)'?: /", done.stderr)
    if absent and not cut_off:
        raise AbsentError(
            "PIN.FETCH",
            expected=f"an index or folder that has {', '.join(absent)}",
            found="none",
            where=target_words,
            do=local_build_hint(absent)
            or "Run ./sparkserve pins fetch --from FOLDER_OR_URL with one that has it.",
        )
    lines = (
        cut_off or [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr]
    )
    raise SparkserveError(
        "PIN.FETCH",
        expected=f"pip to download {len(exact)} wheels",
        found=lines[-1].rpartition(">: ")[2].strip("')")[-_TAIL:],
        where=target_words,
        do="Check the network, or run ./sparkserve pins fetch --from FOLDER with one that has them.",
    )


def local_build_hint(requests: Collection[str]) -> str:
    """The sentence for builds such as torch's for CPU (versions with `+`); empty when none is among them."""
    local = ", ".join(request for request in requests if "+" in request)
    if not local:
        return ""
    return (
        f"{local} is a special build (such as torch for CPU) that no default index has. Run ./sparkserve "
        "pins fetch --from FOLDER_OR_URL (pins lock takes it too); PyTorch runs an index for its CPU builds."
    )


def _pip() -> list[str]:
    if importlib.util.find_spec("pip") is None:
        raise SparkserveError(
            "HOST.SYSTEM",
            expected="pip beside this Python",
            found="no such module",
            where=sys.executable,
            do="Run it through ./sparkserve, which brings it.",
        )
    return [sys.executable, "-m", "pip"]
