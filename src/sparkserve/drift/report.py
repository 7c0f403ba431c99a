"""What one node says of itself beside its closure, as JSON that goes from it to whoever asked."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from sparkserve.doctor.redact import HIDDEN, redact_value

ANOTHER = f"{HIDDEN} (another one, not shown)"
_BEFORE_VALUE = re.compile(r"[^\w-]")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Difference(_Part):
    """One value that is not as it is to be: `what` of which `part`."""

    part: str
    what: str
    expected: str
    found: str


class Report(_Part):
    """One node. `closure` is what it is compared with, `checked` how many things of each part were looked at.

    `facts` are what all nodes must have alike, in words; `compiled` are files that the engine made itself and
    runs. `engine` is its launcher's pid, None when it was not looked for or is not there.
    """

    schema_: Literal["sparkserve.drift/1"] = Field(default="sparkserve.drift/1", alias="schema")
    node: str
    closure: str
    generation: int | None
    fleet_id: str
    engine: int | None
    checked: dict[str, int]
    differences: tuple[Difference, ...]
    facts: dict[str, str]
    compiled: tuple[str, ...] = ()


def difference(part: str, what: str, expected: str | None, found: str | None) -> Difference:
    """A difference with both values, None for nothing. A value that may be a secret is not shown: not by its
    form, and not under a name of secrets."""
    shown = [_shown(what, value) for value in (expected, found)]
    if shown[0] == shown[1]:
        shown[1] = ANOTHER
    return Difference(part=part, what=what, expected=shown[0], found=shown[1])


def _shown(what: str, value: str | None) -> str:
    if value is None:
        return "nothing"
    # The last word of "the variable X_TOKEN" is what the value is called.
    told: str = redact_value(value, _BEFORE_VALUE.split(what)[-1])
    return told
