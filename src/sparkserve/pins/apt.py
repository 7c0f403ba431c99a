"""Debian packages through apt in a private root: the machine's own apt state is neither read nor changed."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkserve import checkout
from sparkserve.errors import SparkserveError
from sparkserve.pins import processes, sources
from sparkserve.pins.model import Pin, clean_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sparkserve.pins.model import Target

_INSTALL = re.compile(r"^Inst (\S+) \((\S+) ", re.MULTILINE)
# In "libc6 (>= 2.34) | libc6.1": the names.
_NAME = re.compile(r"(?:^|\| *)([a-z0-9][a-z0-9+.-]*)")
_TAIL = 1500

# The machine's proxy and credentials stay in force; its hooks must not run for a root that is not its own.
_CONF = """
#clear APT::Update;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear APT::Architectures;
#clear APT::Default-Release;
APT::Architecture "{machine}";
APT::Architectures {{ "{machine}"; }};
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Dir "{root}";
Dir::State "var/lib/apt";
Dir::State::lists "lists";
Dir::State::status "{root}/var/lib/dpkg/status";
Dir::Cache "var/cache/apt";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{root}/etc/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::trusted "/etc/apt/trusted.gpg";
Dir::Etc::trustedparts "/etc/apt/trusted.gpg.d";
Dir::Etc::netrc "/etc/apt/auth.conf";
Dir::Etc::netrcparts "/etc/apt/auth.conf.d";
"""


@dataclass(frozen=True)
class Apt:
    """A private apt root for one Debian suite and processor; `opened` makes one."""

    root: Path

    def resolve(self, requests: Sequence[str], without: Sequence[str] = ()) -> list[Pin]:
        """All packages that `requests` (names or name=version) need, as pins with Debian's own hashes.

        `without` are left out with whatever only they need: apt is told that they are installed.
        Raises `PIN.RESOLVE`, also for one of them that nothing needs.
        """
        cut = self._show(without)
        (self.root / "var/lib/dpkg/status").write_text("".join(map(_installed, cut)))
        plan = self._run("apt-get", "install", "--simulate", "-q", *requests, id="PIN.RESOLVE")
        exact = [f"{name.partition(':')[0]}={version}" for name, version in _INSTALL.findall(plan)]
        pins = sorted({_pin(fields) for fields in self._show(exact)}, key=lambda pin: pin.name)
        needed = {name for pin in pins for need in pin.requires for name in _NAME.findall(need)}
        if unused := [fields["Package"] for fields in cut if needed.isdisjoint(_names(fields))]:
            raise SparkserveError(
                "PIN.RESOLVE",
                expected="every excluded package to be needed by another one",
                found=f"nothing that needs {', '.join(sorted(unused))}",
                where="[debs] exclude in nix/profiles",
                do="Remove it there.",
            )
        return pins

    def _show(self, packages: Sequence[str]) -> list[dict[str, str]]:
        if not packages:
            return []
        text = self._run("apt-cache", "show", "--no-all-versions", *packages, id="PIN.RESOLVE")
        return [_fields(stanza) for stanza in text.split("\n\n") if stanza.strip()]

    def download(self, pins: Sequence[Pin], folder: Path) -> list[Path]:
        """Download debs into `folder` and return their files. Raises `PIN.FETCH`, `HOST.DISK`."""
        exact = [f"{pin.name}={pin.version}" for pin in pins]
        self._run("apt-get", "download", "-q", *exact, id="PIN.FETCH", cwd=folder)
        return sorted(folder.glob("*.deb"))

    def _run(self, *argv: str, id: str, cwd: Path | None = None) -> str:
        command = [argv[0], "-c", str(self.root / "apt.conf"), *argv[1:]]
        done = processes.run(command, cwd=cwd)
        if done.returncode == 0:
            return done.stdout
        problem = done.stderr.strip() or done.stdout.strip()
        do = "Check the mirror and the network, or take another: ./sparkserve pins fetch --mirror URI."
        if id == "PIN.RESOLVE":
            do = "Correct the names in the profile; a version that is gone needs a new lock of its profile."
        if "was not found" in problem and id == "PIN.FETCH":
            do = (
                "The mirror has other versions now: pins fetch --mirror an archive of that day, or pins lock."
            )
        raise SparkserveError(
            id, expected="apt to finish", found=problem[-_TAIL:], where=" ".join(argv[:2]), do=do
        )


def root_name(target: Target) -> str:
    """The private root for `target`: each suite and processor has its own, for `pins fetch` asks several."""
    return f"{target.debian}-{target.debian_machine}"


def opened(target: Target, mirror: str | None) -> Apt:
    """A private root whose one source is the suite of `target`, main, at the machine's Debian mirror (or
    `mirror`), updated; its packages are for the processor of `target`, whatever this machine has.

    Only main, never the security suite: files that security supersedes leave the mirror, and a pin must stay
    downloadable. Raises `PIN.FETCH` when there is no apt, no Debian source, or no key for it.
    """
    if shutil.which("apt-get") is None:
        raise _no_source(
            "no apt-get", "Install apt, or give the packages as a folder: pins fetch --from DIR."
        )
    source = sources.Source(mirror, "") if mirror else sources.debian()
    if source is None:
        raise _no_source(
            "no source for Debian in /etc/apt",
            "Name a Debian mirror: ./sparkserve pins fetch --mirror URI (pins lock takes it too).",
        )
    key = source.signed_by
    if not key:
        if mirror and not sources.KEYRING.exists():
            raise _no_source(f"no {sources.KEYRING}", "Install the package debian-archive-keyring.")
        key = str(sources.KEYRING) if sources.KEYRING.exists() else ""
    root = checkout.state() / "apt" / root_name(target)
    for name in (
        "etc/sources",
        "var/lib/dpkg",
        "var/lib/apt/lists/partial",
        "var/cache/apt/archives/partial",
    ):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "var/lib/dpkg/status").touch()
    (root / "apt.conf").write_text(_CONF.format(root=root, machine=target.debian_machine))
    signed = f"Signed-By: {key}\n" if key else ""
    place = f"URIs: {source.uri}\nSuites: {target.debian}\nComponents: main\n"
    (root / "etc/sources/debian.sources").write_text(f"Types: deb\n{place}Targets: Packages\n{signed}")
    apt = Apt(root)
    apt._run("apt-get", "update", "-q", id="PIN.FETCH")
    return apt


def _no_source(found: str, do: str) -> SparkserveError:
    return SparkserveError(
        "PIN.FETCH", expected="a Debian mirror to take packages from", found=found, where="/etc/apt", do=do
    )


def _fields(stanza: str) -> dict[str, str]:
    return dict(re.findall(r"^(\S+): (.*)$", stanza, re.MULTILINE))


def _names(fields: dict[str, str]) -> set[str]:
    """A package's name, and those of the virtual packages it stands for."""
    provided = fields.get("Provides", "").split(", ")
    return {fields["Package"], *(name for text in provided for name in _NAME.findall(text))}


def _installed(fields: dict[str, str]) -> str:
    kept = ("Package", "Version", "Architecture", "Multi-Arch", "Provides")
    lines = [f"{name}: {fields[name]}" for name in kept if name in fields]
    return (
        "\n".join([*lines, "Status: install ok installed", "Maintainer: none", "Description: none"]) + "\n\n"
    )


def _pin(fields: dict[str, str]) -> Pin:
    needs = [fields.get("Pre-Depends", ""), fields.get("Depends", "")]
    # The name that apt-get download gives the file, with the epoch, which the mirror's own name lacks.
    base = f"{fields['Package']}_{fields['Version'].replace(':', '%3a')}_{fields['Architecture']}.deb"
    return Pin(
        kind="deb",
        name=fields["Package"],
        version=fields["Version"],
        file=clean_name(base),
        sha256=fields["SHA256"],
        size=int(fields["Size"]),
        requires=tuple(need for text in needs for need in text.split(", ") if need),
    )
