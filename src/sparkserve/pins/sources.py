"""Reads the machine's own apt sources: which mirror has Debian, and which key signs it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

# Third-party repositories use other suite names, or suites with a suffix; only these are Debian itself.
_SUITES = {"bullseye", "bookworm", "trixie", "forky", "duke", "sid"} | {
    "oldoldstable", "oldstable", "stable", "testing", "unstable",
}  # fmt: skip
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True)
class Source:
    """A Debian mirror. `signed_by` is a keyring's path, a key's text, or empty for apt's trusted keys."""

    uri: str
    signed_by: str


def debian(etc: Path = Path("/etc/apt")) -> Source | None:
    """The first source for Debian's component main in `etc`, or None.

    Sources signed by Debian's archive keyring come first: others may use Debian's suite names too.
    """
    found: list[Source] = []
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]:
        if path.suffix == ".sources":
            found += _deb822(path.read_text())
        elif path.suffix == ".list" and path.exists():
            found += _one_line(path.read_text())
    found.sort(key=lambda s: "debian-archive-keyring" not in s.signed_by)
    return found[0] if found else None


def _deb822(text: str) -> list[Source]:
    found: list[Source] = []
    for stanza in "\n".join(x for x in text.splitlines() if not x.startswith("#")).split("\n\n"):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line[:1] in " \t":
                fields[key] = fields.get(key, "") + "\n" + line
            elif ":" in line:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        if fields.get("enabled", "yes").lower() in ("no", "false", "0", "off"):
            continue
        words = {name: fields.get(name, "").split() for name in ("types", "suites", "components", "uris")}
        if "deb" in words["types"] and "main" in words["components"] and _SUITES & set(words["suites"]):
            found += [Source(uri, fields.get("signed-by", "")) for uri in words["uris"]]
    return found


def _one_line(text: str) -> list[Source]:
    found: list[Source] = []
    for line in text.splitlines():
        options, rest = "", line.partition("#")[0].strip()
        kind, _, rest = rest.partition(" ")
        rest = rest.strip()
        if kind != "deb":
            continue
        if rest.startswith("["):
            options, _, rest = rest[1:].partition("]")
        uri, suite, *components = [*rest.split(), "", ""]
        if "main" in components and suite in _SUITES:
            pairs = dict(option.partition("=")[::2] for option in shlex.split(options))
            found.append(Source(uri, pairs.get("signed-by", "")))
    return found
