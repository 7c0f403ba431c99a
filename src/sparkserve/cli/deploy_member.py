"""`sparkserve deploy member`: what a deployer runs on the nodes. cli/commands/deploy.py attaches `group`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import click

from sparkserve.cli import options
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from sparkserve.deploy.state import Outcome, State

_id = click.argument("id")
_epoch = click.argument("epoch", type=click.IntRange(1))


@click.group("member", hidden=True)
def group() -> None:
    """This node's side of a deployment; JSON."""


@group.command(epilog="Example: echo '[\"sync\"]' | sparkserve deploy member serve")
def serve() -> None:
    """Run each command that stdin has as a line of JSON, its argv; a line of JSON answers."""
    from sparkserve import resident
    from sparkserve.deploy import member  # noqa: F401 - what the commands need, read once for all
    from sparkserve.host import activate  # noqa: F401

    resident.serve(_become)


@group.command(epilog="Example: sparkserve deploy member look")
@options.as_json
def look(as_json: bool) -> None:
    """Print the open deployment, and those that have ended."""
    from sparkserve.deploy.member import Member

    _print(Member().look())


@group.command(epilog='Example: sparkserve deploy member begin "$(cat plan.json)" me')
@click.argument("plan")
@click.argument("deployer")
@options.as_json
def begin(plan: str, deployer: str, as_json: bool) -> None:
    """Lease this node to DEPLOYER for PLAN (JSON), and hold its target."""
    from pydantic import ValidationError

    from sparkserve.deploy.member import Member
    from sparkserve.deploy.plan import DeployPlan

    try:
        parsed = DeployPlan.model_validate_json(plan)
    except ValidationError as error:
        raise click.UsageError(f"PLAN: {' '.join(str(error).split())[:300]}") from None
    _print(Member().begin(parsed, deployer))


@group.command(epilog="Example: sparkserve deploy member take 0123456789ab 1 me")
@_id
@_epoch
@click.argument("deployer")
@options.as_json
def take(id: str, epoch: int, deployer: str, as_json: bool) -> None:
    """Go on with the open deployment ID at EPOCH in place of whoever has it."""
    from sparkserve.deploy.member import Member

    _print(Member().take(id, epoch, deployer))


@group.command(epilog="Example: sparkserve deploy member note 0123456789ab 1 activated")
@_id
@_epoch
@click.argument("steps", nargs=-1, required=True)
@options.as_json
def note(id: str, epoch: int, steps: tuple[str, ...], as_json: bool) -> None:
    """Write down STEPS."""
    from sparkserve.deploy.member import Member

    _print(Member().note(id, epoch, *steps))


@group.command(
    "do",
    epilog="Example: sparkserve deploy member do 0123456789ab 1 start -- systemctl start sparkserve-rank",
)
@_id
@_epoch
@click.argument("step")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def do(id: str, epoch: int, step: str, argv: tuple[str, ...]) -> None:
    """Write STEP down and become the program ARGV, unless another deployer has taken over."""
    import os

    from sparkserve.deploy.member import Member
    from sparkserve.output import print_error

    try:
        os.set_inheritable(Member().effect(id, epoch, step), True)
    except SparkserveError as error:
        print_error(error, as_json=True)
        raise SystemExit(error.exit_code) from None
    _become(list(argv))


def _become(argv: list[str]) -> NoReturn:
    """Run `argv` in place of this process; what is of our own closure without starting Python again."""
    import os
    import signal
    import sys
    from pathlib import Path

    here = Path(sys.argv[0]).parent
    if argv[0] == str(here / "sparkserve"):
        from sparkserve.cli.main import main

        main(argv[1:])
    if argv[0] == str(here / "activate"):
        from sparkserve.host import activate

        activate.main(str(here.parent), argv=argv[1:])
        raise SystemExit(0)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a program would inherit that
    os.execvp(argv[0], argv)  # noqa: S606 - as every command that a runner sends


@group.command(epilog="Example: sparkserve deploy member decide 0123456789ab 1 keep")
@_id
@_epoch
@click.argument("outcome", type=click.Choice(["keep", "undo"]))
@options.as_json
def decide(id: str, epoch: int, outcome: Outcome, as_json: bool) -> None:
    """Write down how the deployment ends."""
    from sparkserve.deploy.member import Member

    _print(Member().decide(id, epoch, outcome))


@group.command(epilog="Example: sparkserve deploy member end 0123456789ab 1")
@_id
@_epoch
@options.as_json
def end(id: str, epoch: int, as_json: bool) -> None:
    """Give the lease back, as it was decided."""
    from sparkserve.deploy.member import Member

    _print(Member().end(id, epoch))


def _print(state: State) -> None:
    from sparkserve.output import print_json

    print_json(state.model_dump(mode="json", by_alias=True))
