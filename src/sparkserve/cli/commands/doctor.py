"""`sparkserve doctor`: what is wrong with this host.

The checks and all that is printed are in `sparkserve.doctor`, which needs no more than the standard library.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator


def _words() -> list[str]:
    from sparkserve.doctor.check import all_checks

    checks = all_checks()
    return sorted({check.area for check in checks.values()}) + list(checks)


@contextmanager
def _usage() -> Iterator[None]:
    from sparkserve.doctor.inputs import Usage

    try:
        yield
    except Usage as error:
        raise click.UsageError(str(error)) from None


@click.group(
    invoke_without_command=True,
    epilog="""Examples:

    ./sparkserve doctor

    ./sparkserve doctor --live --only FABRIC

    ./sparkserve doctor collect spark-1.json, then elsewhere: ./sparkserve doctor --facts spark-1.json

    ./sparkserve doctor explain KERNEL.KHO

Exit code 0 when no check with severity error failed, else 62. What cannot be read is shown as unknown.
Where the harness does not start: python3 -I -S src/sparkserve/doctor, with the same options.""",
)
@click.option("--live", is_flag=True, help="Also ask the network and the other nodes; still only reads.")
@options.as_json
@click.option("--list", "list_", is_flag=True, help="Show all checks.")
@click.option(
    "--only", metavar="AREA|ID", shell_complete=options.complete(_words), help="Ask these checks only."
)
@click.option("--facts", metavar="PATH", type=click.Path(exists=True), help="Ask a bundle of doctor collect.")
@click.option("--plan", metavar="FILE", type=click.Path(exists=True), help="Compare with this plan.")
@click.pass_context
def command(
    context: click.Context,
    live: bool,
    as_json: bool,
    list_: bool,
    only: str | None,
    facts: str | None,
    plan: str | None,
) -> None:
    """Ask what is wrong with this host. It changes nothing; every fix is printed, never run."""
    from sparkserve.doctor import command_line

    context.obj = live, as_json
    if context.invoked_subcommand is not None:
        with _usage():
            command_line.refuse(
                context.invoked_subcommand, {"list": list_, "only": only, "facts": facts, "plan": plan}
            )
        return
    with _usage():
        if list_:
            code = command_line.list_checks(as_json=as_json, only=only)
        else:
            code = command_line.examine(live=live, as_json=as_json, only=only, facts=facts, plan=plan)
    context.exit(code)


@command.command("selftest", epilog="Example: ./sparkserve doctor selftest")
@options.as_json
@click.pass_context
def selftest(context: click.Context, as_json: bool) -> None:
    """Flip every id from pass to fail on its own fixture, and see that no other moves."""
    from sparkserve.doctor import command_line

    context.exit(command_line.run_selftest(as_json=as_json or context.obj[1]))


@command.command("explain", epilog="Example: ./sparkserve doctor explain FABRIC.MTU")
@click.argument("id", shell_complete=options.complete(_words))
@click.pass_context
def explain(context: click.Context, id: str) -> None:
    """Show what a check asks, its source and its fix; an AREA shows all of its checks."""
    from sparkserve.doctor import command_line

    with _usage():
        code = command_line.explain(id)
    context.exit(code)


@command.command("collect", epilog="Example: ./sparkserve doctor collect spark-1.json")
@click.argument("out", type=click.Path(dir_okay=False))
@click.option("--live", is_flag=True, help="Also ask the network and the other nodes.")
@click.pass_context
def collect(context: click.Context, out: str, live: bool) -> None:
    """Write what all checks read of this host to OUT, without secrets, so that others can look at it."""
    from sparkserve.doctor import command_line

    with _usage():
        code = command_line.collect(out, live=live or context.obj[0])
    context.exit(code)
