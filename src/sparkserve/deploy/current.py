"""What is current on the node, and whether a plan fits it. It runs on the node and changes nothing."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.deploy.plan import Base
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.host import identity, record

if TYPE_CHECKING:
    from sparkserve.deploy.plan import DeployPlan, Member
    from sparkserve.deploy.state import Outcome
    from sparkserve.host.system import System

_FOREIGN = "It is not of sparkserve, and is left alone: move it away when nobody needs it."


def planned(system: System, plan: DeployPlan) -> Member:
    """This node's part of a plan. Raises `NODE.CLOSURE` when it has none."""
    name = system.name.partition(".")[0]
    if (found := plan.member(name)) is not None:
        return found
    raise _not_ours(
        f"one of {', '.join(member.name for member in plan.members)} of {plan.fleet}",
        f"the host name {name}",
        system.name,
        "The address of a node leads to another one: look at the fleet's addresses.",
    )


def current(system: System) -> Base | None:
    """The current generation of the node's profile; None without one. Raises `NODE.CLOSURE`."""
    profile = system.at(commands.PROFILE)
    try:
        link = profile.parent / os.readlink(profile)  # noqa: PTH115 - as it is
        if number := re.fullmatch(rf"{profile.name}-([0-9]+)-link", link.name):
            return Base(generation=int(number[1]), path=os.readlink(link))  # noqa: PTH115
        found = f"a link to {link}"
    except FileNotFoundError:
        if not profile.is_symlink():
            return None
        found = "a link to nothing"
    except (OSError, ValueError):
        found = "no link, or none to a store path"
    raise _not_ours("a profile that Nix made", found, commands.PROFILE, _FOREIGN)


def check(system: System, plan: DeployPlan) -> None:
    """Whether the node can begin the plan.

    Raises `NODE.CLOSURE` when what is current, or the target, is not this node's, and `DEPLOY.BASE` when what
    is current is not what the plan starts from, or not what is in effect.
    """
    part, now, known = planned(system, plan), current(system), record.load(system)
    if now is not None:
        ours(system, now.path, known)
    if now != part.base:
        do = f"Something else changed it since the plan was made. A new one: {command('deploy', plan.fleet)}."
        raise _other(system, _words(part.base), now, do)
    if known.closure not in (None, now and now.path):
        up = command("up", plan.fleet)
        do = f"An `up` was interrupted, or somebody activated by hand: {up} makes them one again."
        raise _other(system, f"{known.closure}, which is in effect", now, do)
    ours(system, part.target, known)


def after(system: System, plan: DeployPlan, outcome: Outcome) -> Base | None:
    """What is current at the end of the plan. Raises `DEPLOY.BASE` when that is not what `outcome` means."""
    part, now = planned(system, plan), current(system)
    wanted = part.target if outcome == "keep" else part.base and part.base.path
    if (now and now.path) != wanted:
        do = f"{command('deploy --resume', plan.fleet)} does what is missing."
        raise _other(system, f"{wanted or 'no generation'}, after {outcome}", now, do)
    return now


def ours(system: System, closure: str, known: record.Record) -> None:
    """Raise `NODE.CLOSURE` unless `closure` is there and this node's."""
    path = system.at(closure)
    try:
        node = json.loads((path / "plan.json").read_bytes())["node"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        there = path.is_dir()
        raise _not_ours(
            f"a host closure of {system.name}",
            "no plan of a node in it" if there else "nothing there",
            closure,
            _FOREIGN if there else "Copy it again: ./sparkserve deploy.",
        ) from None
    identity.check(system, path, node, known)


def _words(base: Base | None) -> str:
    return "no generation" if base is None else f"generation {base.generation}, {base.path}"


def _not_ours(expected: str, found: str, where: str, do: str) -> SparkserveError:
    return SparkserveError("NODE.CLOSURE", expected=expected, found=found, where=where, do=do)


def _other(system: System, expected: str, now: Base | None, do: str) -> SparkserveError:
    where = f"{commands.PROFILE} of {system.name}"
    return SparkserveError("DEPLOY.BASE", expected=expected, found=_words(now), where=where, do=do)
