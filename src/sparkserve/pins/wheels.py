"""Wheels: resolved by uv and downloaded by pip, both told about the target instead of this machine."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import checkout
from sparkserve.errors import SparkserveError
from sparkserve.pins import store
from sparkserve.pins.model import Pin, Target, clean_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OLDEST_GLIBC_MINOR = 5
_TAIL = 1500


@dataclass(frozen=True)
class Places:
    """Where wheels come from, besides the default index: folders or pages of links, and indexes."""

    find_links: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


def places(given: Sequence[str]) -> Places:
    """pip's configuration on this machine (files and environment), with `given` folders and indexes before it."""
    done = subprocess.run([*pip(), "config", "list"], capture_output=True, text=True)
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


def pip() -> list[str]:
    """The command for pip: this Python's own."""
    if importlib.util.find_spec("pip") is None:
        raise _no_tool("pip")
    return [sys.executable, "-m", "pip"]


def resolve(
    target: Target,
    requests: Sequence[str],
    *,
    constraints: Sequence[str],
    excludes: Sequence[str],
    where: Places,
) -> list[str]:
    """The exact requirements (`name==version`) that `requests` and their dependencies come to on `target`.

    uv and not pip, because pip evaluates markers for the machine that it runs on. Raises `PIN.RESOLVE`.
    """
    if importlib.util.find_spec("uv") is None:
        raise _no_tool("uv")
    import uv

    argv = [uv.find_uv_bin(), "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate"]
    argv += ["--python-platform", f"x86_64-manylinux_{target.glibc.replace('.', '_')}"]
    argv += ["--python-version", target.python, "--no-build", "--no-python-downloads"]
    # As pip chooses: the best version over all places, not the first place that has the name.
    argv += ["--index-strategy", "unsafe-best-match", "--cache-dir", str(checkout.state() / "uv")]
    for place in where.find_links:
        argv += ["--find-links", place]
    for place in where.indexes:
        argv += ["--extra-index-url", place]
    if "index-url" in where.settings:
        argv += ["--index-url", where.settings["index-url"]]
    environment = dict(os.environ)
    if "cert" in where.settings:
        environment.setdefault("SSL_CERT_FILE", where.settings["cert"])
    with tempfile.TemporaryDirectory() as folder:
        for option, lines in (("--constraints", constraints), ("--excludes", excludes)):
            file = Path(folder) / option.strip("-")
            file.write_text("".join(f"{line}\n" for line in lines))
            argv += [option, str(file)]
        done = subprocess.run(
            argv, input="\n".join(requests), capture_output=True, text=True, env=environment
        )
    if done.returncode != 0:
        raise SparkserveError(
            "PIN.RESOLVE",
            expected="versions that satisfy all wheel requests",
            found=done.stderr.strip()[-_TAIL:],
            where=f"Python {target.python}, glibc {target.glibc}",
            do=f"Change the requests of the profile. {local_build_hint(requests)}".strip(),
        )
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def download_command(target: Target, exact: Sequence[str], folder: Path, where: Places) -> list[str]:
    """The pip command that puts the wheels `exact` for `target` into `folder`, whatever Python runs it."""
    # The store is the cache; pip's own would hold every file a second time.
    argv = [*pip(), "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--quiet"]
    argv += ["--progress-bar", "off", "--no-input", "--disable-pip-version-check", "--dest", str(folder)]
    argv += ["--python-version", target.python, "--implementation", "cp"]
    for tag in platforms(target):
        argv += ["--platform", tag]
    for place in where.find_links:
        argv += ["--find-links", place]
    for place in where.indexes:
        argv += ["--extra-index-url", place]
    return [*argv, *exact]


def platforms(target: Target) -> list[str]:
    """Every wheel platform tag that the target can run, newest first: pip does not add the older ones itself."""
    newest = int(target.glibc.partition(".")[2])
    tags = [f"manylinux_2_{minor}_x86_64" for minor in range(newest, _OLDEST_GLIBC_MINOR - 1, -1)]
    return [*tags, "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]


def read(file: Path) -> Pin:
    """The pin of a wheel file; `requires` leaves out what only extras need."""
    with zipfile.ZipFile(file) as archive:
        member = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        fields = HeaderParser().parsestr(archive.read(member).decode())
    requires = [str(text) for text in fields.get_all("Requires-Dist", [])]
    return Pin(
        kind="wheel",
        name=normal(str(fields["Name"])),
        version=str(fields["Version"]),
        file=clean_name(file.name),
        sha256=store.file_sha256(file),
        size=file.stat().st_size,
        requires=tuple(text for text in requires if not re.search(r"\bextra\s*==", text)),
    )


def normal(name: str) -> str:
    """The one spelling of a distribution's name that indexes compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


def local_build_hint(requests: Sequence[str]) -> str:
    """The sentence for builds such as torch's for CPU (versions with `+`); empty when none is among them."""
    local = [request for request in requests if "+" in request]
    if not local:
        return ""
    return (
        f"{', '.join(local)} is a special build that no default index has: name a folder or an index with "
        "--from (PyTorch publishes an index of CPU builds)."
    )


def _no_tool(name: str) -> SparkserveError:
    return SparkserveError(
        "HOST.SYSTEM",
        expected=f"{name} beside this Python",
        found="no such module",
        where=sys.executable,
        do="Run it through ./sparkserve, which brings both.",
    )
