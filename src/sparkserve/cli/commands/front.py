"""`sparkserve front`: the process that owns the public port of the head. systemd starts it, not people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sparkserve.front.config import Address


class _AddressType(click.ParamType["Address"]):
    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        from sparkserve.front.config import Address

        try:
            return Address.parse(value)
        except ValueError:
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)


@click.group(hidden=True)
def command() -> None:
    """The front of a fleet: public port, health, 503 while the group is down."""


@command.command(
    epilog="""Examples:

    sparkserve front run --plan plan.json --listen 127.0.0.1:8888 --engine 127.0.0.1:30000 --run-dir /tmp/run

Stops on SIGTERM, after requests in flight had 10 s to end. Exit codes: 0 stopped, 13 the port is taken, 35
not a plan, or one without a group and no --engine."""
)
@click.option("--plan", required=True, type=click.Path(path_type=Path), help="A plan.json.")
@click.option(
    "--listen", multiple=True, type=_AddressType(), help="In place of the plan's serving.host and port."
)
@click.option("--engine", type=_AddressType(), help="In place of 127.0.0.1 and the plan's engine_port.")
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path),
    default=Path("/run/sparkserve"),
    show_default=True,
    help="Where group.json is read and front.json written.",
)
def run(plan: Path, listen: tuple[Address, ...], engine: Address | None, run_dir: Path) -> None:
    """Serve until stopped. One JSON object a request goes to stdout, changes of health to stderr."""
    from sparkserve.front import config, server
    from sparkserve.plan import load

    run_dir.mkdir(parents=True, exist_ok=True)
    server.run(config.from_plan(load(plan), listen=listen, engine=engine, run_dir=run_dir))
