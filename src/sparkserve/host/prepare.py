"""What a fresh DGX OS needs before closures can be copied to it. Each step sees for itself if it is done."""

from __future__ import annotations

import grp
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.errors import SparkserveError, not_root
from sparkserve.group import run_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sparkserve.host.system import System

# A GB10 root is made of 3.7 GB of wheels, and a node keeps the one before beside it. Weights come on top.
SPACE_GIB = 24
PROGRAMS = ("nix", "nix-store", "nix-env")
# What every way in has: sudo's secure_path, sshd's default and /etc/environment of Ubuntu.
COMMON = ("/usr/local/bin", "/usr/bin")
DEFAULT_PROFILE = "/nix/var/nix/profiles/default/bin"
FOLDERS = (commands.HOLDS, commands.PROFILE.rpartition("/")[0], str(run_files.STATE))
NIX_CONF = "/etc/nix/nix.conf"
NO_GROUP = "build-users-group ="


@dataclass(frozen=True)
class Step:
    """One thing that a node needs. `found` is how it is, `argv` what does it; empty: a person does."""

    name: str
    needs: str
    found: str
    done: bool
    argv: tuple[tuple[str, ...], ...] = ()
    do: str = ""


def steps(system: System, node: str | None = None) -> list[Step]:
    """What the node needs, with how each thing is now. `node`: its name in the fleet, if known."""
    return [look(system, node) for look in _LOOKS]


def apply(system: System, node: str | None, say: Callable[[Step], None]) -> None:
    """Do what is not done, in order, and look again after each. Run again, it goes on where it ended.

    Raises `HOST.ROOT`, and `HOST.SYSTEM` for a step that fails or that only a person can do.
    """
    if os.geteuid() != 0:
        raise not_root(f"the files of {system.name}")
    for look in _LOOKS:
        step = look(system, node)
        if not step.done:
            for argv in step.argv:
                _run(system, step, argv)
            step = look(system, node)
        say(step)
        if not step.done:
            raise _failed(system, step, step.found, step.do or f"Run by hand: {line(step)}")


def line(step: Step) -> str:
    """How a person would do a step."""
    import shlex

    return " && ".join(map(shlex.join, step.argv)) or step.do


def _run(system: System, step: Step, argv: tuple[str, ...]) -> None:
    done = system.run(*argv)
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())[-300:] or f"exit code {done.returncode}"
        raise _failed(system, step, f"{argv[0]} says: {said}", "Mend that, then run the same command again.")


def _failed(system: System, step: Step, found: str, do: str) -> SparkserveError:
    return SparkserveError("HOST.SYSTEM", expected=step.needs, found=found, where=system.name, do=do)


def _system(system: System, _: str | None) -> Step:
    running = system.at("/run/systemd/system").is_dir()
    return Step(
        "systemd",
        "systemd as the first process",
        "it runs" if running else "another init",
        running,
        do="Boot the machine itself, not a container of it.",
    )


def _name(system: System, node: str | None) -> Step:
    argv = (("hostnamectl", "hostname", node),) if node else ()
    own = system.name.partition(".")[0]
    # An activation refuses the closure of a node with another name.
    return Step("name", f"the host name {node}" if node else "a host name", own, node in (None, own), argv)


def _nix(system: System, _: str | None) -> Step:
    found = [folder for folder in (*COMMON, DEFAULT_PROFILE) if system.at(f"{folder}/nix-store").exists()]
    return Step(
        "nix",
        "Nix, to receive closures",
        found[0] if found else "none",
        bool(found),
        (("apt-get", "install", "--yes", "--no-install-recommends", "nix-bin"),),
    )


def _path(system: System, _: str | None) -> Step:
    missing = [
        name for name in PROGRAMS if not any(system.at(f"{folder}/{name}").exists() for folder in COMMON)
    ]
    links = tuple(("ln", "-s", f"{DEFAULT_PROFILE}/{name}", f"{COMMON[0]}/{name}") for name in missing)
    return Step(
        "path",
        "Nix on the PATH of sudo and of ssh without a login shell",
        f"without {', '.join(missing)}" if missing else "all there",
        not missing,
        links,
    )


def _settings(system: System, _: str | None) -> Step:
    try:
        text = system.at(NIX_CONF).read_text()
    except FileNotFoundError:
        text = ""
    keys = [line.partition("=")[0].strip() for line in text.splitlines()]
    try:
        grp.getgrnam("nixbld")
        group = True
    except KeyError:
        group = False
    done = group or "build-users-group" in keys
    script = 'mkdir -p "${1%/*}" && printf "\\n%s\\n" "$2" >>"$1"'
    return Step(
        "settings",
        "Nix without a warning at every command: no group nixbld, as nothing is built here",
        f"{NIX_CONF} as it should be" if done else f"neither the group nor a word in {NIX_CONF}",
        done,
        (("sh", "-c", script, "append", NIX_CONF, NO_GROUP),),
    )


def _folders(system: System, _: str | None) -> Step:
    missing = [folder for folder in FOLDERS if not system.at(folder).is_dir()]
    return Step(
        "folders",
        "folders for generations, roots of the garbage collector and records",
        f"without {', '.join(missing)}" if missing else "all there",
        not missing,
        (("mkdir", "-p", *missing),),
    )


def _space(system: System, _: str | None) -> Step:
    place = next(path for path in _upwards(system.at("/nix/store")) if path.exists())
    room = os.statvfs(place)
    free = room.f_bavail * room.f_frsize >> 30
    return Step(
        "space",
        f"{SPACE_GIB} GiB for two closures, beside the weights",
        f"{free} GiB free",
        free >= SPACE_GIB,
        do="Free some space, or mount a larger disk on /nix.",
    )


def _upwards(path: Path) -> Iterator[Path]:
    yield path
    yield from path.parents


_LOOKS = (_system, _name, _nix, _path, _settings, _folders, _space)
