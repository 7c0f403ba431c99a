"""Asks every check, one after the other, and never ends on one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sparkserve.doctor.check import Check, NotApplicable, Unknown, Verdict
from sparkserve.doctor.guard import Refused, reading_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sparkserve.doctor.node import Node

SCHEMA = "sparkserve.doctor/1"


@dataclass(frozen=True)
class Answer:
    """A check, its verdict, and what was read for it."""

    check: Check
    verdict: Verdict
    evidence: dict[str, Any]

    @property
    def fix(self) -> str:
        """What mends the finding: the verdict's own words, else the check's."""
        return self.verdict.fix or self.check.fix

    def as_dict(self) -> dict[str, Any]:
        """The form that `--json` prints."""
        about = {name: getattr(self.check, name) for name in ("id", "severity", "asks", "source")}
        verdict = {key: value for key, value in asdict(self.verdict).items() if value}
        if self.verdict.status == "fail":
            verdict["fix"] = self.fix
        else:
            verdict.pop("fix", None)
        return about | verdict | {"evidence": self.evidence}


def judge(
    node: Node, checks: Iterable[Check], *, live: bool, progress: Callable[[str], None] = lambda _: None
) -> list[Answer]:
    """The answers of all checks, in their order."""
    with reading_only(live=live):
        spark: bool | None
        try:
            spark, told = node.spark()
        except Unknown as error:
            spark, told = None, f"what machine this is cannot be told: {error}"
        answers = []
        for check in checks:
            progress(check.id)
            node.facts.touched = []
            if check.live and not live:
                verdict = Verdict("not applicable", why="it asks the network or other nodes: add --live")
            elif check.on == "spark" and spark is None:
                verdict = Verdict("unknown", why=told)
            elif check.on == "spark" and not spark:
                verdict = Verdict("not applicable", why=f"not a Spark: {told}")
            else:
                verdict = _verdict(check, node)
            evidence = {key: node.facts.evidence(key) for key in dict.fromkeys(node.facts.touched)}
            answers.append(Answer(check, verdict, evidence))
    return answers


def _verdict(check: Check, node: Node) -> Verdict:
    try:
        return check.judge(node)
    except NotApplicable as why:
        return Verdict("not applicable", why=str(why))
    except Unknown as why:
        return Verdict("unknown", why=str(why))
    except Refused as why:
        return Verdict("unknown", why=f"the doctor only reads, and refused {why}")
    except Exception as error:  # a host that is broken in a new way must not end the doctor
        return Verdict(
            "unknown", why=f"what was read has an unknown form ({type(error).__name__}: {error})"[:200]
        )
