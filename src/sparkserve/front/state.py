"""The two files that the front and the group controller tell each other things with.

`group.json` is written by the controller (the rank supervisor of the head) and read by the front;
`front.json` the other way. Both are replaced in one step (`write`), so a reader sees the old or the new one,
never half. They live in a tmpfs: after a power cut nobody is up, and no file says so.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

if TYPE_CHECKING:
    from pathlib import Path

State = Literal["up", "starting", "down", "draining"]
# What a client is told: the group's state, or why an "up" group still cannot be called healthy.
Verdict = Literal["ok", "proving", "silent", "starting", "down", "draining"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class Group(_Record):
    """`group.json`: what the controller does with the group.

    state     up: every rank is ready, and the controller itself has got a right answer from the engine.
              starting: a boot is under way. draining: what runs may end, nothing new begins. down: the rest.
    reason    one sentence for people, "" when there is nothing to say; clients see it in their 503.
    boot      id of this start of the group, another one for every start: what happened in one boot proves
              nothing about the next. "" while there has been none.
    since     unix time of the last change of state.
    retry_after_s   what 503 tells clients to wait; None takes the front's default for the state.
    """

    schema_: Literal["sparkserve.group/1"] = Field(default="sparkserve.group/1", alias="schema")
    state: State
    reason: str = ""
    boot: str = ""
    since: float = 0.0
    retry_after_s: int | None = Field(default=None, ge=1)


class Probe(_Record):
    """The last canary. seconds: how long it took, or has been out. detail: what went wrong.

    age_s: since it was sent, None when none was in this boot.
    """

    result: Literal["none", "pending", "ok", "failed"] = "none"
    seconds: float = 0.0
    detail: str = ""
    age_s: float | None = None


class FrontState(_Record):
    """`front.json`: what the front sees of the engine, written every second and at every change of verdict.

    The controller acts on `verdict` "silent": the group is up, and for `lost_s` no token came out of it. It
    should also look at `written_at` (unix time): a front that is stopped or gone says nothing at all.
    `last_token_age_s` is None when no token has come out in this boot; `in_flight` counts requests that are
    with the engine, `requests` those that are over by how they ended, since the front's start.
    """

    schema_: Literal["sparkserve.front/1"] = Field(default="sparkserve.front/1", alias="schema")
    written_at: float
    pid: int
    boot: str
    verdict: Verdict
    reason: str
    last_token_age_s: float | None
    in_flight: int
    requests: dict[str, int] = Field(default_factory=dict)
    canary: Probe


class GroupFile:
    """Reads `group.json` when it has changed. Whatever is wrong with it means "down", with the reason."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self.group = self._down("nothing has said yet that the group is up")

    def poll(self) -> Group:
        """What the file says now. One stat when it is unchanged."""
        try:
            stat = self._path.stat()
            seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if seen != self._seen:
                self.group = Group.model_validate_json(self._path.read_bytes())
                self._seen = seen
        except FileNotFoundError:
            self._seen, self.group = None, self._down(f"no group controller has written {self._path}")
        except (OSError, ValidationError) as error:
            self._seen, self.group = (
                None,
                self._down(f"{self._path} is damaged: {' '.join(str(error).split())[:200]}"),
            )
        return self.group

    @staticmethod
    def _down(reason: str) -> Group:
        return Group(state="down", reason=reason)


def write(path: Path, record: Group | FrontState) -> None:
    """Write a record in one step. The folder must exist. Raises OSError."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(record.model_dump_json(by_alias=True) + "\n")
    part.replace(path)
