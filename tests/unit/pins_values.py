"""Wheels, debs and pin lists for tests of the pins, and a store that is a folder."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sparkserve.pins import store
from sparkserve.pins.model import Pin, PinList, Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pytest

TARGET = Target(system="x86_64-linux", debian="bookworm", python="3.11", glibc="2.36")
SPARK = TARGET.model_copy(update={"system": "aarch64-linux"})
TARGET_TOML = """
[target]
system = "x86_64-linux"
debian = "bookworm"
python = "3.11"
glibc = "2.36"
"""


def pin(content: bytes = b"content", **changes: Any) -> Pin:
    """A wheel's pin whose hash and size are those of `content`; keywords replace fields."""
    values: dict[str, Any] = {
        "kind": "wheel",
        "name": "one",
        "version": "1.0",
        "sha256": hashlib.sha256(content).hexdigest(),
        "size": len(content),
    }
    values |= changes
    named = "{name}_{version}_amd64.deb" if values["kind"] == "deb" else "{name}-{version}-py3-none-any.whl"
    return Pin(**({"file": named.format(**values)} | values))


def pin_list(*pins: Pin, profile: str = "some") -> PinList:
    """A pin list of `pins`."""
    return PinList(profile=profile, locked="2026-01-02", target=TARGET, pins=pins)


def wheel(folder: Path, name: str, version: str, requires: Sequence[str] = ()) -> Path:
    """Write a pure-Python wheel that has only metadata."""
    file = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {text}" for text in requires]
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name.replace('-', '_')}-{version}.dist-info/METADATA", "\n".join(lines) + "\n\n")
    return file


def _tar(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


def deb(file: Path, members: dict[str, bytes], control: str | None = None) -> Path:
    """Write a Debian package; without `control` that part has an odd size, which `ar` pads."""
    parts = [b"!<arch>\n"]
    for name, content in (
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", b"odd" if control is None else _tar({"./control": control.encode()})),
        ("data.tar.xz", _tar(members)),
    ):
        parts.append(f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode())
        parts.append(content + b"\n" * (len(content) % 2))
    file.write_bytes(b"".join(parts))
    return file


@dataclass
class FolderStore:
    """Takes the place of Nix in `sparkserve.pins.store`: remembers what was added and what is kept."""

    added: dict[str, bytes] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    def missing(self, paths: Iterable[str]) -> set[str]:
        return set(paths) - self.added.keys()

    def add(self, files: Sequence[Path], *, recursive: bool = False) -> list[str]:
        made = []
        for file in files:
            content = (file / file.name).read_bytes() if recursive else file.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            made.append(store.fixed_path(file.name, digest, recursive=recursive))
            self.added[made[-1]] = content
        return made

    def keep(self, paths: Iterable[str]) -> None:
        self.kept |= set(paths)

    def tree_sha256(self, folder: Path) -> str:
        return hashlib.sha256((folder / folder.name).read_bytes()).hexdigest()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> FolderStore:
        for name in ("missing", "add", "keep", "tree_sha256"):
            monkeypatch.setattr(store, name, getattr(self, name))
        return self
