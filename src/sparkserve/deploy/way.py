"""How a deployer reaches a fleet and proves it: the way to its nodes, wherever they are, and its gates."""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkserve.commands import PROFILE, Safety
from sparkserve.deploy import survey
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command, plans
from sparkserve.local import several, triangle
from sparkserve.local.several import Here
from sparkserve.plan import Serving
from sparkserve.reach import afar, health
from sparkserve.reach.afar import Afar

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.local.record import Fleet
    from sparkserve.plan import Plan
    from sparkserve.runner import Runner


@dataclass(frozen=True)
class Way:
    """By `reached` to a fleet, for a deployment of the plan `head` of its head.

    `key_file` has a key of the endpoint, for its gates.
    """

    head: Plan
    reached: Here | Afar
    key_file: Path | None = None

    @property
    def here(self) -> Fleet | None:
        """Its nodes when they are on this machine."""
        return self.reached.fleet if isinstance(self.reached, Here) else None

    @property
    def nodes(self) -> list[str]:
        """The nodes' names in rank order."""
        return [node.name for node in self.head.fleet.nodes]

    def connect(self, allow: Safety = Safety.STOPS_SERVING) -> Runner:
        """A new runner, which the caller closes."""
        return self.reached.connect(allow)

    def healthy(self) -> None:
        """Wait until the endpoint answers with a token. Raises `ENGINE.READY`."""
        with self.reached.endpoint(self._serving()) as endpoint:
            health.wait(endpoint, self.head.fleet.name)

    def _serving(self) -> Serving:
        """Where the head serves now. After an undo that is not what was to be, but what was before: also of
        another version, or of another fleet that these nodes were."""
        if isinstance(self.reached, Here):
            return self.reached.head.serving
        with closing(self.connect(Safety.READS_HOSTS)) as runner:
            there = survey.descriptions(runner, self.nodes[0], [PROFILE])[PROFILE]
        try:
            return Serving.model_validate(json.loads(there.plan)["serving"]) if there else self.head.serving
        except (ValueError, KeyError):
            return self.head.serving

    def prove(self, plan: DeployPlan) -> None:
        """Run the plan's gates, quick. Raises `GATE.FAILED`."""
        from sparkserve.gates import files, runner, subject
        from sparkserve.gates.evidence import Subject

        with self.reached.endpoint(self.head.serving) as endpoint:
            about = Subject(
                endpoint=endpoint,
                model=self.head.serving.model,
                fleet=plan.fleet,
                fleet_id=plan.target_fleet_id,
                plan_sha256=subject.digest(self.head),
            )
            seed = secrets.randbelow(2**31)
            order = runner.Order(about, quick=True, seed=seed, plan=self.head, key_file=self.key_file)
            found = asyncio.run(runner.run(plan.gates, order, files.folder()))
        if failed := [evidence for evidence, _ in found if not evidence.passed]:
            raise SparkserveError(
                "GATE.FAILED",
                expected=f"the gates {', '.join(plan.gates)} to pass",
                found="; ".join(f"{evidence.gate}: {evidence.summary}" for evidence in failed),
                where=plan.fleet,
                do=f"The evidence is in {files.folder()}.",
            )


def from_node() -> Way:
    """The way from this node to its fleet. Raises as `afar.from_node`."""
    found = afar.from_node()
    return Way(found.head, found)


def to(fleet: str, head: Plan | None = None, key_file: Path | None = None) -> Way:
    """The way to a fleet, for a deployment of the plan `head` of its head.

    Raises `ENGINE.STATE` for nodes of this machine that are off, and `FLEET.OPTION` for a fleet without any.
    """
    here = Here(triangle.load(fleet)) if several.exists(fleet) else None
    found = head or (here.head if here else plans.load(fleet)[0])
    if found.fleet.topology == "single":
        raise SparkserveError(
            "FLEET.OPTION",
            expected="a fleet of several nodes",
            found="fleet.topology single, which has no nodes to deploy to",
            where=f"hosts/{fleet}/fleet.nix",
            do=f"{command('up', fleet)} runs what its files say.",
        )
    reached = here or (Afar(found) if afar.needed(found) else Here(triangle.load(fleet)))
    return Way(found, reached, key_file or found.serving.key_file)
