"""What deploy and rollback print: the plan before, the outcome after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.fleet import command
from sparkserve.output import print_json
from sparkserve.terminal import console, print_table

if TYPE_CHECKING:
    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.deploy.resume import Ended


def show(plan: DeployPlan, *, as_json: bool) -> None:
    """Print the plan for people; with `as_json` it follows at the end."""
    if as_json:
        return
    change = f"fleet id {_id(plan.base_fleet_id)} to {_id(plan.target_fleet_id)}"
    console.print(f"Plan {plan.id} of {plan.fleet}: {change}")
    print_table(
        ("node", "now", "then", "to copy"),
        [
            (
                member.name,
                f"generation {member.base.generation}, {member.base.path}" if member.base else "nothing",
                member.target,
                _bytes(member.bytes),
            )
            for member in plan.members
        ],
    )
    if plan.downtime is None:
        console.print("For how long the endpoint is away is unknown: no boot of this group has been seen.")
    elif plan.downtime.seconds == 0:
        console.print(f"Nobody is interrupted: {plan.downtime.source}.")
    else:
        console.print(f"The endpoint is away for about {plan.downtime.seconds:g} s ({plan.downtime.source}).")
    gates = f"It is kept when these gates pass: {', '.join(plan.gates)}." if plan.gates else "No gates run."
    console.print(gates)
    if first := [member.name for member in plan.members if member.base is None]:
        console.print(
            f"First deployment on {', '.join(first)}: there is nothing to return to. If it fails, they get "
            "back what they had before sparkserve, and serve nothing."
        )


def done(plan: DeployPlan, what: str, *, apply: bool, as_json: bool) -> None:
    """Print what has become of the plan, or how to do it."""
    if as_json:
        print_json({"id": plan.id, "applied": apply, **plan.model_dump(mode="json")})
    elif apply:
        console.print(f"Kept: {plan.fleet} runs the fleet id {_id(plan.target_fleet_id)} on all nodes.")
    else:
        apply_it = command(f"{what} --apply", plan.fleet)
        console.print(f"Nothing is changed. To do exactly this: {apply_it}")


def ended(found: Ended) -> None:
    """Print what has become of a deployment that was open."""
    kept = found.outcome == "keep"
    id = found.plan.target_fleet_id if kept else found.plan.base_fleet_id
    console.print(f"Deployment {found.plan.id} is {'kept' if kept else 'undone'}: all nodes have {_id(id)}.")
    if found.trouble:
        console.print(f"The group does not run as it should: {found.trouble}")


def _id(fleet_id: str | None) -> str:
    return (fleet_id or "nothing")[:12]


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
