"""Two builds into two empty stores, by different people on different days: every path has the same hash.

`nix build --rebuild` is no substitute: it rebuilds only the last step, and passes over a layer with a date
in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sparkserve import checkout, nix
from sparkserve.checks import Outcome
from sparkserve.pins import BUILDER, fetch, model

if TYPE_CHECKING:
    from collections.abc import Callable

title = "two builds into two empty stores (path, user, umask, zone, date, locale differ) are bit-identical"
cost_s = 420
slow = True

TARGET = "hosts.local-single.spark-0"
BASE = "engine-base"
PROFILES = (*BUILDER, "engine-cpu", "demo-model")
# What a careless builder would do.
PLANTED = 'bb mkdir -p "$out/etc"; bb date +%s >"$out/etc/built"'
NOBODY = 65534


@dataclass(frozen=True)
class Builder:
    """One person at one machine: a store, a checkout of its own, and habits that must not matter."""

    folder: Path
    uid: int
    umask: int
    habits: dict[str, str]
    nix_options: tuple[str, ...] = ()

    def prepare(self) -> None:
        """Make the checkout (what git tracks, as it is now) and a store with the pins and nothing else."""
        tree = self.folder / "checkout"
        listed = subprocess.run(
            ["git", "ls-files", "-z"],
            cwd=checkout.root(),
            env=nix.environment(),
            capture_output=True,
            check=True,
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(checkout.root() / name, tree / name)
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-C", str(tree)]
        for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "x"]):
            subprocess.run([*git, *arguments], check=True)
        pins = [pin.path for name in PROFILES for pin in model.load(name).pins]
        _nix("copy", "--no-check-sigs", "--to", f"{self.folder}/store", *pins)
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def build(self, package: str) -> dict[str, str]:
        """Build `package` in this person's store; returns the NAR hash of every path of its closure."""
        common = [
            "--store",
            f"{self.folder}/store",
            f"git+file://{quote(str(self.folder))}/checkout#{package}",
        ]
        _nix("build", "--no-link", "--print-build-logs", *self.nix_options, *common, person=self)
        infos = json.loads(_nix("path-info", "--recursive", "--json", *common, person=self))
        # Nix 2.19 turned the list into an object.
        entries = infos.items() if isinstance(infos, dict) else ((info["path"], info) for info in infos)
        return {path: info["narHash"] for path, info in entries}


def _nix(*arguments: str, person: Builder | None = None) -> str:
    """Run Nix as `person`, or as this process's user."""
    environment = nix.environment("*")
    if person is not None:
        environment |= {"HOME": str(person.folder), **person.habits}
    identity: dict[str, Any] = {"user": person.uid, "group": person.uid, "extra_groups": []} if person else {}
    done: subprocess.CompletedProcess[str] = subprocess.run(
        ["nix", *arguments],
        env=environment,
        umask=person.umask if person else 0o022,
        capture_output=True,
        text=True,
        **identity,
    )
    if done.returncode:
        raise nix.error(done.stderr, "NIX.BUILD", " ".join(arguments[:2]))
    return done.stdout


def run(detail: Callable[[str], None]) -> Outcome:
    """Build twice and compare; then plant a date and see it caught. Raises `NIX.BUILD`, `PIN.MISSING`."""
    fetch.fetch([*PROFILES, "repro"], [], None)
    with tempfile.TemporaryDirectory(prefix="repro-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            return _compare(folder, detail)
        finally:
            # A store is read-only; make it removable.
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
            shutil.rmtree(folder, ignore_errors=True)


def _compare(folder: Path, detail: Callable[[str], None]) -> Outcome:
    here = Builder(folder / "one", 0, 0o022, {"TZ": "UTC", "LC_ALL": "C.UTF-8"})
    there = Builder(
        folder / "another place",
        NOBODY,
        0o077,
        {"TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "SOURCE_DATE_EPOCH": "1", "USER": "someone"},
        _another_day(folder),
    )
    for builder in (here, there):
        detail(f"a checkout and a store in {builder.folder}")
        builder.prepare()
    hashes = []
    for number, builder in enumerate((here, there), 1):
        detail(f"build {number} of 2")
        hashes.append(builder.build(TARGET))
    failures = _differences(*hashes)
    detail("a planted date")
    for builder in (here, there):
        script = builder.folder / "checkout/nix/rootfs.sh"
        script.write_text(script.read_text().replace("configure() {\n", f"configure() {{\n  {PLANTED}\n", 1))
    if not any("engine-base" in line for line in _differences(here.build(BASE), there.build(BASE))):
        failures.append("a date planted in the base layer was not caught")
    return Outcome(len(hashes[0]) + 1 - len(failures), failures)


def _another_day(folder: Path) -> tuple[str, ...]:
    """Nix options under which builders believe it is 400 days later.

    libfaketime is preloaded inside the sandbox, by the files that every glibc loader reads: the machine's
    clock stays as it is.
    """
    [pin] = (pin for pin in model.load("repro").pins if pin.name == "libfaketime")
    subprocess.run(["dpkg-deb", "--extract", pin.path, str(folder / "faketime")], check=True)
    [library] = (folder / "faketime").rglob("libfaketime.so.1")
    (folder / "ld.so.preload").write_text("/faketime.so\n")
    (folder / "faketimerc").write_text("+400d\n")
    binds = {
        "/etc/ld.so.preload": folder / "ld.so.preload",
        "/etc/faketimerc": folder / "faketimerc",
        "/faketime.so": library,
    }
    return ("--option", "extra-sandbox-paths", " ".join(f"{inside}={path}" for inside, path in binds.items()))


def _differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return [
        f"{path}: {one.get(path)} and {other.get(path)}"
        for path in sorted({*one, *other})
        if one.get(path) != other.get(path)
    ]
