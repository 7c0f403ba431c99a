"""`sparkserve rank`: what systemd runs on every node, and what the fleet's commands run on the head."""

from __future__ import annotations

from pathlib import Path

import click

_CLOSURE = click.argument("closure", type=click.Path(exists=True, file_okay=False, path_type=Path))


@click.group(hidden=True)
def command() -> None:
    """The supervisor of this node's rank."""


@command.command(epilog="Example: sparkserve rank run /nix/var/nix/profiles/sparkserve")
@_CLOSURE
def run(closure: Path) -> None:
    """Supervise the engine of the host CLOSURE until SIGTERM; on the head, the group too."""
    from sparkserve.group import service

    service.run(closure.resolve())


@command.command(epilog="Example: sparkserve rank gone /nix/var/nix/profiles/sparkserve")
@_CLOSURE
def gone(closure: Path) -> None:
    """Correct what `run` said last, after its end."""
    from sparkserve.group import service

    service.gone(closure.resolve())


@command.command(epilog="Example: sparkserve rank ask /nix/var/nix/profiles/sparkserve status")
@_CLOSURE
@click.argument("what", type=click.Choice(["status", "start", "stop"]))
def ask(closure: Path, what: str) -> None:
    """Tell the group's controller, on the head; print its status as JSON. It does not wait."""
    from sparkserve import plan
    from sparkserve.group import client
    from sparkserve.output import print_json

    answer = client.ask(plan.load(closure / "plan.json"), what)  # type: ignore[arg-type]
    print_json(answer.model_dump(mode="json"))
