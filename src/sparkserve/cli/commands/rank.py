"""`sparkserve rank`: what systemd runs on every node, and what the fleet's commands run on the head."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

_CLOSURE = click.argument("closure", type=click.Path(exists=True, file_okay=False, path_type=Path))


def _plan(closure: Path) -> Any:
    """The plan of a host closure, as JSON: commands that others wait for do without its models."""
    from sparkserve import given, plan

    try:
        return given.read_json(closure / "plan.json")
    except (OSError, ValueError):
        return plan.load(closure / "plan.json")  # which says what is wrong with it


@click.group(hidden=True)
def command() -> None:
    """The supervisor of this node's rank."""


@command.command(epilog="Example: sparkserve rank run /nix/var/nix/profiles/sparkserve")
@_CLOSURE
def run(closure: Path) -> None:
    """Supervise the engine of the host CLOSURE until SIGTERM; on the head, the group too."""
    from sparkserve.group import service

    service.run(closure.resolve())


@command.command(epilog="Example: sparkserve rank gone")
def gone() -> None:
    """Correct what `run` said last, after its end."""
    from sparkserve.group.gone import gone

    gone()


@command.command(epilog="Example: sparkserve rank ask /nix/var/nix/profiles/sparkserve status")
@_CLOSURE
@click.argument("what", type=click.Choice(["status", "start", "stop"]))
def ask(closure: Path, what: Literal["status", "start", "stop"]) -> None:
    """Tell the group's controller, on the head; print its status as JSON. It does not wait."""
    from sparkserve.group import client
    from sparkserve.output import print_json

    print_json(client.ask(client.controller(_plan(closure)), what))


@command.command(epilog="Example: sparkserve rank wait /nix/var/nix/profiles/sparkserve --seconds 20 ''")
@_CLOSURE
@click.argument("seen")
@click.option("--seconds", type=float, default=10.0, show_default=True, help="Answer then in any case.")
def wait(closure: Path, seen: str, seconds: float) -> None:
    """Print the group's status as soon as its key is not SEEN."""
    from sparkserve.group import client
    from sparkserve.output import print_json

    print_json(client.wait(client.controller(_plan(closure)), seen, seconds))


@command.command(epilog="Example: sparkserve rank look /nix/var/nix/profiles/sparkserve")
@_CLOSURE
def look(closure: Path) -> None:
    """Print as JSON what this node can say about itself, the head also about the group."""
    from sparkserve import plan
    from sparkserve.group import look as looks
    from sparkserve.output import print_json

    print_json(looks.look(plan.load(closure / "plan.json")).model_dump(mode="json"))


@command.command(epilog="Example: sparkserve rank drift /nix/var/nix/profiles/sparkserve --live")
@_CLOSURE
@click.option("--live", is_flag=True, help="Also the engine that runs.")
@click.option("--deep", is_flag=True, help="Read every file of the closure.")
def drift(closure: Path, live: bool, deep: bool) -> None:
    """Print as JSON how this node is beside its host CLOSURE."""
    from sparkserve.drift import node
    from sparkserve.host.system import System
    from sparkserve.output import print_json

    found = node.of_group(System(), closure.resolve(), live=live, deep=deep)
    print_json(found.model_dump(mode="json", by_alias=True))


@command.command(epilog="Example: sparkserve rank log --lines 50 --follow")
@click.option("-n", "--lines", default=50, type=click.IntRange(0), help="Lines to show first.")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines and boots until stdin ends.")
@click.option("--after", default="", help="In place of --lines: go on after this place.")
def log(lines: int, follow: bool, after: str) -> None:
    """Print the newest boot's log in journalctl's form of JSON: MESSAGE, and its place as __CURSOR."""
    import json
    import select
    import sys

    from sparkserve.group import log_lines, run_files

    def ended() -> bool:
        return not follow or bool(select.select([sys.stdin], [], [], log_lines.LOOK_S)[0])

    for place, text in log_lines.read(run_files.LOGS, lines, after, ended=ended):
        sys.stdout.write(json.dumps({"__CURSOR": place, "MESSAGE": text}) + "\n")
        if follow:
            sys.stdout.flush()


@command.command(epilog="Example: sparkserve rank watch")
def watch() -> None:
    """Print as JSON lines what this node's memory and clocks are, each second until stdin ends."""
    import select
    import sys

    from sparkserve.bench import node

    for facts in node.follow(lambda seconds: bool(select.select([sys.stdin], [], [], seconds)[0])):
        sys.stdout.write(facts.model_dump_json() + "\n")
        sys.stdout.flush()
