"""What the plans of a fleet say about its cables, as tables. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve.adapters.plugin import VARIABLE
from sparkserve.group.launch import launch, parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.plan import Fabric, Link, Plan


class End(NamedTuple):
    """One interface of a node, and the plan of that node."""

    plan: Plan
    link: Link

    @property
    def peers(self) -> str:
        """The nodes that it reaches, by name."""
        return " ".join(self.plan.fleet.nodes[peer.rank].name for peer in self.link.peers)


def fabric(plan: Plan) -> Fabric:
    """The fabric of a plan. Raises `GROUP.STATE` for a single node, which has none."""
    return parts(plan)[0]


def ends(plans: Sequence[Plan]) -> list[End]:
    """All interfaces of a fleet, those of one network beside each other."""
    found = [End(plan, link) for plan in plans for link in fabric(plan).links]
    return sorted(found, key=lambda end: (end.link.rail, end.link.stripe, end.plan.node.rank))


def hcas(plan: Plan) -> dict[int, list[str]]:
    """The RDMA devices that lead to each peer rank, in the order of rails and stripes."""
    found: dict[int, list[str]] = {}
    for link in fabric(plan).links:
        for peer in link.peers:
            found.setdefault(peer.rank, []).append(link.hca)
    return dict(sorted(found.items()))


def environment(plan: Plan) -> dict[str, str]:
    """What collectives read: NCCL's of the plan, and what the launcher adds on every boot."""
    launched = {name: value for name, value in launch(plan, port=1).env.items() if name != VARIABLE}
    nccl = {name: value for name, value in plan.engine.env.items() if name.startswith("NCCL_")}
    return dict(sorted({**nccl, **launched}.items()))


def shared(plans: Sequence[Plan]) -> list[tuple[str, str, str]]:
    """Variable, value and who has it: `all`, or the nodes."""
    values: dict[tuple[str, str], list[str]] = {}
    for plan in plans:
        for pair in environment(plan).items():
            values.setdefault(pair, []).append(plan.node.name)
    return [
        (name, value, "all" if len(nodes) == len(plans) else " ".join(nodes))
        for (name, value), nodes in sorted(values.items())
    ]


def as_dict(plans: Sequence[Plan]) -> dict[str, Any]:
    """The form that `fabric plan --json` prints."""
    head = plans[0]
    names = [node.name for node in head.fleet.nodes]
    return {
        "fleet": head.fleet.name,
        "topology": head.fleet.topology,
        "mtu": fabric(head).mtu,
        "nccl": fabric(head).nccl,
        "rank_order": names,
        "links": [
            {"node": end.plan.node.name, **end.link.model_dump(mode="json", exclude={"peers"})}
            | {"peers": [{"node": names[peer.rank], "address": str(peer.address)} for peer in end.link.peers]}
            for end in ends(plans)
        ],
        "peer_hcas": {
            plan.node.name: {names[rank]: found for rank, found in hcas(plan).items()} for plan in plans
        },
        "environment": {plan.node.name: environment(plan) for plan in plans},
    }
