"""What a laptop fleet was made from, written down so that any later command finds the same fleet."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - pydantic needs it at run time
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from sparkserve import given
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.local.boot import Sizes  # noqa: TC001 - as above
from sparkserve.local.cgroups import Cgroups, detect
from sparkserve.local.tools import Tools
from sparkserve.plan import Plan  # noqa: TC001 - as above

if TYPE_CHECKING:
    from sparkserve.local.names import Names


class Record(BaseModel):
    """`root` and `tools` are store paths: the base root of the nodes, and the programs for the machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_: Literal["sparkserve.nodes/1"] = Field(default="sparkserve.nodes/1", alias="schema")
    plans: tuple[Plan, ...]
    root: Path
    tools: Path
    sizes: Sizes


@dataclass(frozen=True)
class Fleet:
    """A laptop fleet that is up, or is being made. Calls of this package take one."""

    names: Names
    plans: tuple[Plan, ...]
    root: Path
    tools: Tools
    sizes: Sizes
    cgroups: Cgroups

    @property
    def name(self) -> str:
        """The fleet's name."""
        return self.names.fleet

    @property
    def nodes(self) -> list[str]:
        """The nodes' names in rank order."""
        return [plan.node.name for plan in self.plans]

    def plan(self, node: str) -> Plan:
        """The plan of a node. Raises `FLEET.NAME` for a name that is none of them."""
        for plan in self.plans:
            if plan.node.name == node:
                return plan
        raise SparkserveError(
            "FLEET.NAME",
            expected=f"one of the nodes {', '.join(self.nodes)}",
            found=node,
            where=self.name,
            do="Name one of them.",
        )

    @property
    def ssh_config(self) -> Path:
        """The file for `ssh -F`, which knows every node by its name. Its path has no spaces."""
        return self.names.ssh_config

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which `ssh`, and `nix copy --to ssh://NODE`, reach the nodes."""
        return {**self.tools.environment(), "NIX_SSHOPTS": f"-F {self.ssh_config}"}


def save(fleet: Fleet) -> None:
    """Write the record in one step."""
    record = Record(
        schema="sparkserve.nodes/1",
        plans=fleet.plans,
        root=fleet.root,
        tools=fleet.tools.folder,
        sizes=fleet.sizes,
    )
    part = fleet.names.record.with_suffix(".part")
    part.write_text(record.model_dump_json(by_alias=True, indent=2) + "\n")
    os.replace(part, fleet.names.record)  # noqa: PTH105 - the same call, and atomic by its documentation


def load(names: Names) -> Fleet | None:
    """The recorded fleet; None when it is down. Raises `ENGINE.STATE` when the record is damaged."""
    try:
        with given.opened(names.record) as file:
            record = Record.model_validate_json(given.limited(file))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SparkserveError(
            "ENGINE.STATE",
            expected="a record of schema sparkserve.nodes/1",
            found=given.fault(error),
            where=str(names.record),
            do=f"Damaged, or of another version of sparkserve: {command('down', names.fleet)}, which needs "
            f"no record, then {command('up', names.fleet)}. The nodes keep their disks and generations.",
        ) from None
    return Fleet(names, record.plans, record.root, Tools(record.tools), record.sizes, detect())
