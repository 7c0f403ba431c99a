"""`sparkserve deploy`: moves a fleet to what its files say, as one transaction over its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sparkserve.cli import deploy_member, options

if TYPE_CHECKING:
    from pathlib import Path


@click.group(
    invoke_without_command=True,
    subcommand_metavar="",
    epilog="""Examples:

    ./sparkserve deploy

    ./sparkserve deploy --apply

    ./sparkserve deploy --json | jq '.members[] | {name, bytes}'

    ./sparkserve deploy --resume

Without --apply it prints the plan and changes nothing; --apply does exactly the plan that was printed, and
refuses when it would be another one now.

Exit code: 0 kept, 55 kept and the group does not run, 90 another plan, 91 one is open already, 94 the head
is needed, 95 undone on all nodes, 96 neither kept nor undone everywhere yet (--resume goes on), 99 nothing to
do. Of --resume: 0 ended, either way, 55 ended and the group does not run.""",
)
@options.fleet
@click.option("--apply", "apply_", is_flag=True, help="Do it. Without it nothing changes.")
@click.option("--resume", "resume_", is_flag=True, help="End a deployment that was interrupted.")
@options.api_key_file
@options.as_json
@click.pass_context
def command(
    context: click.Context,
    fleet: str,
    apply_: bool,
    resume_: bool,
    api_key_file: Path | None,
    as_json: bool,
) -> None:
    """Move all nodes to what the files say, prove it, and keep it; or undo it on all."""
    if context.invoked_subcommand is not None:
        return
    if resume_ and apply_:
        raise click.UsageError("either --apply or --resume")
    given = context.get_parameter_source("api_key_file")
    if resume_ and given is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--resume runs no gates, which are all that --api-key-file is for")
    from sparkserve.cli import deployed
    from sparkserve.deploy import deployer
    from sparkserve.errors import EXIT_CODES
    from sparkserve.output import print_json

    if resume_:
        ended = deployer.resume(fleet, deployed.ended)
        if as_json:
            print_json([each.as_dict() for each in ended])
        if any(each.trouble for each in ended):
            context.exit(EXIT_CODES["GROUP.BOOT"])
        return
    made = deployer.deploy(
        fleet,
        apply=apply_,
        show=lambda plan: deployed.show(plan, as_json=as_json),
        key_file=api_key_file,
    )
    deployed.done(made, "deploy", apply=apply_, as_json=as_json)


command.add_command(deploy_member.group)
