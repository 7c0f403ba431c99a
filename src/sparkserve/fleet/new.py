"""Makes a new fleet from the template."""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from typing import TYPE_CHECKING

from sparkserve import checkout, disk
from sparkserve.errors import SparkserveError
from sparkserve.fleet import names

if TYPE_CHECKING:
    from pathlib import Path


def create(name: str) -> Path:
    """Write hosts/`name`/fleet.nix, tell git about it, and return its path.

    Raises `FLEET.NAME` for a name that cannot be used or is taken; nothing is left behind then.
    """
    folder = checkout.root() / "hosts" / name
    if not names.PATTERN.fullmatch(name):
        raise _refused(folder, "1 to 31 small letters, digits and -, a letter first", name, "Choose another.")
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise _refused(
            folder, "a name that is free", f"{name} exists", "Choose another, or edit it."
        ) from error
    try:
        file = folder / "fleet.nix"
        with disk.guarded(folder):
            file.write_text(files("sparkserve").joinpath("fleet/template.nix").read_text())
        _same_owner(folder, file)
        names.track(file)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return file


def _same_owner(*paths: Path) -> None:
    # Under sudo in a user's clone, the user must be able to edit the file.
    owner = (checkout.root() / "hosts").stat()
    for path in paths:
        os.chown(path, owner.st_uid, owner.st_gid)


def _refused(folder: Path, expected: str, found: str, do: str) -> SparkserveError:
    return SparkserveError("FLEET.NAME", expected=expected, found=found, where=str(folder), do=do)
