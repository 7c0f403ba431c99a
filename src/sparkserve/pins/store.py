"""Pins and the Nix store: which path a pin has, whether it is there, and how it gets there."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import disk, nix
from sparkserve.errors import SparkserveError, not_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STORE = "/nix/store"
GC_ROOTS = Path("/nix/var/nix/gcroots/sparkserve-pins")
# Nix leaves out e, o, t and u.
_BASE32 = "0123456789abcdfghijklmnpqrsvwxyz"
_PATHS_PER_CALL = 1000
_BLOCK = 1 << 20


def fixed_path(
    name: str, sha256: str, *, recursive: bool = False, references: Iterable[str] = (), itself: bool = False
) -> str:
    """The store path of content that has the hex hash `sha256` under `name`.

    For `recursive` the hash is of the content's NAR, and it may have `references` to other paths, and to
    `itself`. Same rule as `nix-store --print-fixed-path`.
    """
    if recursive:
        kind, inner = ":".join(["source", *sorted(references), *(["self"] if itself else [])]), sha256
    else:
        kind, inner = "output:out", hashlib.sha256(f"fixed:out:sha256:{sha256}:".encode()).hexdigest()
    digest = hashlib.sha256(f"{kind}:sha256:{inner}:{STORE}:{name}".encode()).digest()
    folded = bytearray(20)
    for i, byte in enumerate(digest):
        folded[i % 20] ^= byte
    number = int.from_bytes(folded, "little")
    return f"{STORE}/{''.join(_BASE32[number >> (5 * i) & 31] for i in reversed(range(32)))}-{name}"


def file_sha256(path: Path) -> str:
    """The hex SHA-256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def missing(paths: Iterable[str]) -> set[str]:
    """Those of `paths` that are not valid in the store."""
    wanted = sorted(set(paths))
    absent: set[str] = set()
    for start in range(0, len(wanted), _PATHS_PER_CALL):
        part = wanted[start : start + _PATHS_PER_CALL]
        absent.update(_run("nix-store", "--check-validity", "--print-invalid", *part).split())
    return absent


def sizes(paths: Sequence[str]) -> dict[str, int]:
    """The bytes that each of `paths`, all valid, has as a NAR: close to the sum of its files' sizes."""
    if not paths:
        return {}
    found = _run("nix-store", "--query", "--size", *paths).split()
    return dict(zip(paths, map(int, found), strict=True))


def damaged(paths: Sequence[str]) -> set[str]:
    """Those of `paths` whose bytes in the store are not what Nix recorded for them."""
    bad: set[str] = set()
    for start in range(0, len(paths), _PATHS_PER_CALL):
        part = paths[start : start + _PATHS_PER_CALL]
        argv = ["nix-store", "--verify-path", *part]
        # Not nix.run: each damaged path is a line, and there may be more of them than it keeps.
        done = subprocess.run(argv, capture_output=True, text=True, env=nix.environment())
        named = {path for path in part if path in done.stderr}
        if done.returncode != 0 and not named:
            raise _failed(argv, done.stderr, done.returncode)
        bad |= named
    return bad


def add(files: Sequence[Path], *, recursive: bool = False) -> list[str]:
    """Add files (or with `recursive` folders) under their base names; return their store paths in order."""
    if not files:
        return []
    if not recursive:
        for file in files:
            # A flat pin keeps the execute bit of its source, which Nix does not count into the path.
            file.chmod(0o644)
    flags = ["--recursive"] if recursive else []
    return _run("nix-store", "--add-fixed", *flags, "sha256", *map(str, files)).split()


def tree_sha256(folder: Path) -> str:
    """The hex SHA-256 of a folder's NAR."""
    return _run("nix-hash", "--type", "sha256", str(folder)).strip()


def keep(paths: Iterable[str]) -> None:
    """Register garbage collector roots for `paths`: nothing that is built keeps a pin alive."""
    try:
        GC_ROOTS.mkdir(parents=True, exist_ok=True)
        present = {entry.name for entry in os.scandir(GC_ROOTS)}
        for path in paths:
            if Path(path).name not in present:
                link = GC_ROOTS / Path(path).name
                temporary = link.with_name(f".{link.name}.{os.getpid()}")
                temporary.symlink_to(path)
                temporary.replace(link)
    except PermissionError as error:
        raise not_root(str(error.filename)) from error


def _run(*argv: str) -> str:
    out, err, code = nix.run(argv)
    if code == 0:
        return out
    raise _failed(argv, err, code)


def _failed(argv: Sequence[str], err: str, code: int) -> SparkserveError:
    if disk.told(err):
        return disk.full(STORE)
    if "Permission denied" in err:
        return not_root(STORE)
    return SparkserveError(
        "NIX.BUILD",
        expected=f"{' '.join(argv[:2])} to work",
        found=err.strip()[-2000:] or f"exit {code}",
        where=STORE,
        do="The text above is Nix's own; ./sparkserve nix store verify --all checks the store.",
    )
