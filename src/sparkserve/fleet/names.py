"""Which fleets there are, and what is wrong with a name that is none."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from typing import TYPE_CHECKING

from sparkserve import checkout, disk, nix
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# A fleet's name becomes a folder, a Nix attribute and a part of unit names.
PATTERN = re.compile(r"[a-z][a-z0-9-]{0,30}")


def known() -> list[str]:
    """The names of all fleets, tracked by git or not."""
    return sorted(path.parent.name for path in (checkout.root() / "hosts").glob("*/fleet.nix"))


def check(name: str) -> None:
    """Raise `FLEET.NAME` for what cannot be the name of a fleet: it becomes a part of paths."""
    if not PATTERN.fullmatch(name):
        file(name)


def file(name: str) -> Path:
    """The fleet.nix of `name`.

    Raises `FLEET.NAME` when there is no such fleet, with the names that are close.
    """
    names = known()
    if name in names:
        return checkout.root() / "hosts" / name / "fleet.nix"
    close = difflib.get_close_matches(name, names)
    raise SparkserveError(
        "FLEET.NAME",
        expected=f"one of the fleets {', '.join(names) or '(none)'}",
        found=name,
        where=str(checkout.root() / "hosts"),
        do=(f"Did you mean {close[0]}? " if close else "") + "./sparkserve fleet new NAME makes one.",
    )


def no_node(name: str, nodes: Iterable[str], found: str, do: str = "Name one of these.") -> SparkserveError:
    """The error for a node `found` that is none of the fleet's `nodes`."""
    return SparkserveError(
        "FLEET.NAME",
        expected=f"one of the nodes {', '.join(nodes)}",
        found=found,
        where=f"hosts/{name}/fleet.nix",
        do=do,
    )


def untracked(name: str) -> list[str]:
    """The files in the fleet's folder that git does not track, relative to the checkout.

    A flake is evaluated from what git tracks, so Nix does not see these. Ignored files do not count.
    """
    folder = f"hosts/{name}"
    argv = ["git", "ls-files", "--others", "--exclude-standard", "-z", "--", folder]
    return [path for path in git(argv).split("\0") if path]


def track(path: Path) -> None:
    """Let git know `path` without its content (`git add -N`): enough for a flake, and nothing is staged.

    Under sudo as the checkout's owner, who could not add objects beside those that root has added.
    """
    owner = checkout.root().stat() if os.geteuid() == 0 else None
    git(["git", "add", "--intent-to-add", "--", str(path)], owner)


def require_tracked(name: str) -> None:
    """Raise `FLEET.UNTRACKED` when Nix would not see all of the fleet's files."""
    missing = untracked(name)
    if missing:
        raise SparkserveError(
            "FLEET.UNTRACKED",
            expected="files that git tracks: Nix sees no others",
            found="untracked " + ", ".join(missing),
            where=str(checkout.root() / "hosts" / name),
            do=f"Run: git add -N hosts/{name}",
        )


def git(argv: list[str], owner: os.stat_result | None = None) -> str:
    """What a command of git says in the checkout, as the user `owner`. Raises `HOST.SYSTEM` when it fails."""
    root = checkout.root()
    # Another user may not look into root's home.
    env = nix.environment() | ({"HOME": str(root)} if owner else {})
    user, group = (owner.st_uid, owner.st_gid) if owner else (None, None)
    try:
        done = subprocess.run(
            argv,
            cwd=root,
            env=env,
            user=user,
            group=group,
            capture_output=True,
            text=True,
            errors="backslashreplace",  # a picture in a fleet's folder is no text
            check=True,
        )
    except FileNotFoundError as error:
        raise SparkserveError(
            "HOST.SYSTEM",
            expected="git, through which Nix reads the checkout",
            found="no such program in PATH",
            where="git",
            do="Install it: apt-get install git.",
        ) from error
    except subprocess.CalledProcessError as error:
        if disk.told(error.stderr):
            raise disk.full(str(root)) from error
        raise SparkserveError(
            "HOST.SYSTEM",
            expected="git to know the checkout",
            found=error.stderr.strip(),
            where=str(root),
            do="Get sparkserve with git clone: Nix evaluates what git tracks.",
        ) from error
    return done.stdout
