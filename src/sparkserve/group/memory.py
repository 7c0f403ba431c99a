"""What the controller must not forget when its node loses its power: the wish, and the last starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkserve.group.protocol import PastStart  # noqa: TC001 - pydantic reads the annotation

if TYPE_CHECKING:
    from pathlib import Path

KEEP = 10


class Memory(BaseModel):
    """Whether the group is `wanted` up; `reason` why it is not, if it gave up; starts, oldest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    wanted: bool = True
    reason: str = ""
    number: int = 0
    # Starts up to this number no longer count: an operator has decided anew.
    forgiven: int = 0
    starts: tuple[PastStart, ...] = ()

    def started(self, start: PastStart) -> Memory:
        """With one start more."""
        starts = (*self.starts, start)[-KEEP:]
        return self.model_copy(update={"starts": starts})

    def changed(self, number: int, **fields: object) -> Memory:
        """With other fields in start `number`."""
        starts = [s.model_copy(update=fields) if s.number == number else s for s in self.starts]
        return self.model_copy(update={"starts": tuple(starts)})

    def interrupted(self, reason: str) -> Memory:
        """With an end for starts that had none when their controller was gone."""
        starts = [s if s.reason else s.model_copy(update={"reason": reason}) for s in self.starts]
        return self.model_copy(update={"starts": tuple(starts)})

    def recent(self, now: float, window_s: float) -> int:
        """How many starts count at unix time `now`."""
        return sum(1 for s in self.starts if s.number > self.forgiven and 0 <= now - s.at < window_s)


def load(path: Path) -> Memory:
    """What is remembered, a new memory if nothing. A damaged one wants nothing: somebody must look."""
    try:
        return Memory.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Memory()
    except (OSError, ValidationError) as error:
        return Memory(wanted=False, reason=f"{path} is damaged: {' '.join(str(error).split())[:200]}")


def save(path: Path, memory: Memory) -> None:
    """Remember, on the disk. Raises OSError."""
    part = path.with_suffix(".part")
    with part.open("w") as file:
        file.write(memory.model_dump_json(indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
