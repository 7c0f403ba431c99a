"""`pins audit`: which pins the advisories of a file are about. No network: the file is what is known."""

from __future__ import annotations

import tarfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.errors import SparkserveError
from sparkserve.pins import debfile, order, osv
from sparkserve.pins.model import normal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sparkserve.pins.model import Pin, PinList, Target

# Advisories name releases by their numbers.
_RELEASES = {"bullseye": "11", "bookworm": "12", "trixie": "13", "forky": "14"}


class Subject(NamedTuple):
    """What advisories can be about: a package of an ecosystem, by the name and version that they use."""

    ecosystem: str
    name: str
    version: str


@dataclass(frozen=True)
class Finding:
    """A pin that an advisory is about; `certain` unless the record cannot tell for this version."""

    subject: Subject
    pin: str
    profiles: list[str]
    advisory: str
    aliases: list[str]
    summary: str
    fixed: list[str]
    certain: bool

    def as_dict(self) -> dict[str, Any]:
        """The form that `--json` prints."""
        return {**vars(self), "subject": self.subject._asdict()}


@dataclass
class Audit:
    """Findings; how many records the file has for each ecosystem of the pins; debs without a known source."""

    findings: list[Finding] = field(default_factory=list)
    records: dict[str, int] = field(default_factory=dict)
    sourceless: list[str] = field(default_factory=list)


def audit(lists: Sequence[PinList], place: Path) -> Audit:
    """Match the pins of `lists` with the records at `place`.

    Debian's advisories name sources, which the packages name: one that is not in the store goes by its own
    name. Raises `PIN.ADVISORIES` for a place without a record, or with none for any of the pins' ecosystems.
    """
    found = Audit()
    subjects = _subjects(lists, found)
    by_name: dict[tuple[str, str], list[Subject]] = defaultdict(list)
    for subject in subjects:
        by_name[subject.ecosystem, subject.name].append(subject)
    ecosystems = sorted({subject.ecosystem for subject in subjects})
    counts: Counter[str] = Counter()
    for record in osv.read(place):
        named = {of for each in record.affected if each.package for of in _ecosystems(each, ecosystems)}
        counts.update(named)
        if record.withdrawn is None:
            found.findings += _about(record, ecosystems, by_name, subjects)
    found.records = {name: counts[name] for name in ecosystems}
    if not counts:
        raise SparkserveError(
            "PIN.ADVISORIES",
            expected=f"records for {' or '.join(ecosystems) or 'the ecosystem of a pin'}",
            found="none",
            where=str(place),
            do="Name a file with records of these ecosystems.",
        )
    found.findings.sort(key=lambda each: (each.subject, each.pin, each.advisory))
    return found


def _subjects(lists: Sequence[PinList], found: Audit) -> dict[Subject, dict[Pin, list[str]]]:
    subjects: dict[Subject, dict[Pin, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in lists:
        for pin in each.pins:
            if pin.kind != "tree":  # its deb is in the same list
                subjects[_subject(pin, each.target, found)][pin].append(each.profile)
    return subjects


def _subject(pin: Pin, target: Target, found: Audit) -> Subject:
    if pin.kind == "wheel":
        return Subject("PyPI", pin.name, pin.version)
    ecosystem = f"Debian:{_RELEASES.get(target.debian, target.debian)}"
    try:
        return Subject(ecosystem, *debfile.source(Path(pin.path)))
    except (OSError, ValueError, KeyError, tarfile.TarError):
        if pin.file not in found.sourceless:
            found.sourceless.append(pin.file)
        return Subject(ecosystem, pin.name, pin.version)


def _ecosystems(affected: osv.Affected, ours: Iterable[str]) -> list[str]:
    """Those of `ours` that an entry is about: `Debian` alone is about all releases."""
    named = affected.package.ecosystem if affected.package else ""
    return [each for each in ours if named in (each, each.partition(":")[0])]


def _about(
    record: osv.Advisory,
    ecosystems: Sequence[str],
    by_name: dict[tuple[str, str], list[Subject]],
    pins: dict[Subject, dict[Pin, list[str]]],
) -> Iterable[Finding]:
    verdicts: dict[Subject, tuple[bool, list[str]]] = {}
    for each in record.affected:
        for ecosystem in _ecosystems(each, ecosystems):
            assert each.package is not None  # noqa: S101 - it has an ecosystem
            key: Callable[[str], Any] = order.pypi if ecosystem == "PyPI" else order.debian
            name = normal(each.package.name) if ecosystem == "PyPI" else each.package.name
            for subject in by_name.get((ecosystem, name), []):
                verdict = each.includes(subject.version, key)
                if verdict is not False:
                    certain, fixed = verdicts.get(subject, (False, []))
                    verdicts[subject] = (certain or verdict is True, [*fixed, *each.fixed()])
    for subject, (certain, fixed) in verdicts.items():
        for pin, profiles in pins[subject].items():
            yield Finding(
                subject,
                f"{pin.name} {pin.version}",
                profiles,
                record.id,
                list(record.aliases),
                record.summary,
                list(dict.fromkeys(fixed)),
                certain,
            )
