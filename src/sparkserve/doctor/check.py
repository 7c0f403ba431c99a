"""What a check is, what it may answer, and the list of all of them.

A check is a function in a file of `checks/`; being in the folder registers it. Its id is an interface:
scripts match on it, so it is never renamed or used for another question.
"""

from __future__ import annotations

import importlib
import pkgutil
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.doctor.node import Node

Severity = Literal["error", "warning", "info"]
Status = Literal["pass", "fail", "unknown", "not applicable"]


class Unknown(Exception):  # noqa: N818 - an answer, not an error
    """The check could not be answered; the text says why."""


class NotApplicable(Exception):  # noqa: N818 - an answer, not an error
    """The question does not arise on this host; the text says why."""


@dataclass(frozen=True)
class Verdict:
    """The answer of one check. `why` is for unknown and not applicable, the rest for pass and fail."""

    status: Status
    expected: str = ""
    found: str = ""
    where: str = ""
    fix: str = ""
    why: str = ""


@dataclass(frozen=True)
class Check:
    """A question with a stable id. `on` is where it arises; `live` ones ask the network or other nodes."""

    id: str
    asks: str
    severity: Severity
    source: str
    fix: str
    on: Literal["spark", "any"]
    live: bool
    judge: Callable[[Node], Verdict]

    @property
    def area(self) -> str:
        """What stands before the dot."""
        return self.id.partition(".")[0]


_REGISTERED: dict[str, Check] = {}


def check(
    id: str,
    asks: str,
    severity: Severity,
    source: str,
    *,
    fix: str,
    on: Literal["spark", "any"] = "any",
    live: bool = False,
) -> Callable[[Callable[[Node], Verdict]], Callable[[Node], Verdict]]:
    """Register the decorated function as the check `id`."""

    def register(judge: Callable[[Node], Verdict]) -> Callable[[Node], Verdict]:
        if id in _REGISTERED:
            raise ValueError(f"{id} is there twice")
        _REGISTERED[id] = Check(id, asks, severity, source, fix, on, live, judge)
        return judge

    return register


RESTARTED = "then ./sparkserve down and ./sparkserve up"  # a change of fleet.nix counts from there


def want(good: bool, *, expected: str, found: Any, where: str, fix: str = "") -> Verdict:
    """Pass or fail. `fix` replaces the check's own when the finding allows a more exact command."""
    return Verdict("pass" if good else "fail", expected=expected, found=str(found), where=where, fix=fix)


def none_wrong(wrong: list[str], expected: str, good: str, where: str, fix: str = "") -> Verdict:
    """Pass, with `good` as what was found, when nothing is in `wrong`; else what is."""
    return want(not wrong, expected=expected, found="; ".join(wrong) or good, where=where, fix=fix)


def quoted(*words: object) -> str:
    """What others named, as words of a command that is typed into a shell."""
    return shlex.join(map(str, words))


def all_checks() -> dict[str, Check]:
    """Every check by id, in the order of ids."""
    from sparkserve.doctor import checks

    for module in pkgutil.iter_modules(checks.__path__):
        importlib.import_module(f"{checks.__name__}.{module.name}")
    return dict(sorted(_REGISTERED.items()))
