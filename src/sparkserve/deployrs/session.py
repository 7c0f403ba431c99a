"""What a node remembers of the last activation by deploy-rs: what ran before, and if it was confirmed."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkserve.deploy.plan import Base, StorePath  # noqa: TC001 - pydantic needs them at run time
from sparkserve.errors import SparkserveError
from sparkserve.group import run_files
from sparkserve.host.there import There, put

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.host.system import System


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Before(_Frozen):
    """What the node goes back to: the current generation, and the closure in effect; null for none.

    They differ when something has ended between an activation and its switch.
    """

    generation: Base | None
    in_effect: StorePath | None

    @property
    def path(self) -> str | None:
        """The closure that is current."""
        return None if self.generation is None else self.generation.path

    def __str__(self) -> str:
        number = "no generation" if self.generation is None else f"generation {self.generation.generation}"
        if self.in_effect == self.path:
            return f"{number}, {self.path}" if self.path else f"{number} and nothing in effect"
        return (
            f"{number}{f', {self.path}' if self.path else ''}, with {self.in_effect or 'nothing'} in effect"
        )


class Session(_Frozen):
    """The activation of `closure`.

    `state`: `open` from before the first change until the confirmation; `stands` since then, until a dry run
    of the same closure makes it `settled`: deploy-rs revokes it no more; `undone`. `newest` is the highest
    number of a generation before it, 0 for none, and `epoch` that of the node's deployments by sparkserve.
    """

    schema_name: Literal["sparkserve.deploy-rs/1"] = "sparkserve.deploy-rs/1"
    closure: StorePath
    before: Before
    newest: int
    epoch: int
    state: Literal["open", "stands", "settled", "undone"] = "open"


def folder(system: System) -> Path:
    """Where it is, on the node's disk."""
    return system.at(f"{run_files.STATE}/deploy-rs")


def load(system: System) -> Session | None:
    """The last session; None when there was none. Raises `NODE.ACTIVATE` for what nobody here has written."""
    file = folder(system) / "session.json"
    try:
        return Session.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise SparkserveError(
            "NODE.ACTIVATE",
            expected="the record of the last activation by deploy-rs",
            found=" ".join(str(error).split())[:200],
            where=str(file),
            do="Of another version, or edited: see that the node is as it should be, and delete it.",
        ) from None


def save(system: System, session: Session) -> None:
    """Write it down, on the disk, before what it tells of is done."""
    system.step(f"write down that it is {session.state}")
    text = json.dumps(session.model_dump(mode="json"), indent=1, sort_keys=True)
    mine = There(kind="file", value="", mode=0o600, uid=os.geteuid(), gid=os.getegid())
    put(folder(system) / "session.json", mine, text.encode())
