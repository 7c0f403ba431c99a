"""What is printed: one line for each finding, then the counts; or JSON with everything."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sparkserve.doctor.judge import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sparkserve.doctor.check import Check
    from sparkserve.doctor.judge import Answer

_ORDER = {"error": 0, "warning": 1, "info": 2}


def printable(text: str) -> str:
    """`text` with what would move a cursor, or make a line look like another, as \\x1b and such."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text
    )


def failed(answers: Iterable[Answer]) -> bool:
    """Whether a check with the severity error failed."""
    return any(a.verdict.status == "fail" and a.check.severity == "error" for a in answers)


def counts(answers: Sequence[Answer]) -> dict[str, int]:
    """How many findings of each severity, and how many checks of each other status."""
    found = Counter(a.check.severity if a.verdict.status == "fail" else a.verdict.status for a in answers)
    return {name: found[name] for name in ("error", "warning", "info", "pass", "unknown", "not applicable")}


def lines(answers: Sequence[Answer], host: str) -> Iterator[str]:
    """Host, findings with the gravest first, what could not be read, counts; all of it printable."""
    yield printable(host)
    for answer in sorted(answers, key=lambda a: (_ORDER[a.check.severity], a.check.id)):
        verdict = answer.verdict
        if verdict.status == "fail":
            seen = f"expected {verdict.expected}, found {verdict.found} ({verdict.where})"
            yield printable(f"{answer.check.severity} {answer.check.id}: {seen}. Fix: {answer.fix}")
    for answer in answers:
        if answer.verdict.status == "unknown":
            yield printable(f"unknown {answer.check.id}: {answer.verdict.why}")
    n = counts(answers)
    yield (
        f"{n['error']} errors, {n['warning']} warnings, {n['info']} infos; {n['pass']} passed, "
        f"{n['unknown']} unknown, {n['not applicable']} not applicable"
    )


def as_dict(answers: Sequence[Answer], host: str) -> dict[str, Any]:
    """The whole, for scripts."""
    return {
        "schema": SCHEMA,
        "host": host,
        "failed": failed(answers),
        "counts": counts(answers),
        "checks": [answer.as_dict() for answer in answers],
    }


def about(check: Check) -> str:
    """One check in words."""
    where = "on a Spark only" if check.on == "spark" else "on every host"
    asked = f"{where}, with --live" if check.live else where
    return f"{check.id} ({check.severity}, {asked})\n{check.asks}\nSource: {check.source}\nFix: {check.fix}"


def table(checks: Mapping[str, Check]) -> list[dict[str, Any]]:
    """Every check, for `--list --json`."""
    names = ("id", "severity", "asks", "source", "fix", "on", "live")
    return [{name: getattr(check, name) for name in names} for check in checks.values()]


def page(checks: Mapping[str, Check]) -> str:
    """The table of docs/doctor.md."""
    rows = ["| id | severity | asks | where | source |", "|---|---|---|---|---|"]
    for check in checks.values():
        where = ("a Spark" if check.on == "spark" else "any host") + (", --live" if check.live else "")
        rows.append(f"| {check.id} | {check.severity} | {check.asks} | {where} | {check.source} |")
    return "\n".join(rows) + "\n"


def renewed(text: str) -> str:
    """docs/doctor.md with the table of now; it stands between two comments."""
    from sparkserve.doctor.check import all_checks

    before, _, rest = text.partition(_BEGIN)
    return before + _BEGIN + page(all_checks()) + _END + rest.partition(_END)[2]


_BEGIN, _END = "<!-- table -->\n\n", "\n<!-- end -->"

if __name__ == "__main__":
    import sys
    from pathlib import Path

    file = Path(sys.argv[1])
    file.write_text(renewed(file.read_text(encoding="utf-8")), encoding="utf-8")
