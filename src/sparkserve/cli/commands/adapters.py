"""`sparkserve adapters`: what changes SGLang, and whether it still fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sparkserve.cli import options
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from sparkserve.adapters.contract import Declaration


@click.group(
    epilog="""Examples:

    ./sparkserve adapters list

    ./sparkserve adapters explain oneshot-collectives

    ./sparkserve adapters verify

A fleet switches one on with `adapters.NAME.enable` in its fleet.nix."""
)
def command() -> None:
    """Changes to SGLang: what they are, and whether the pinned SGLang is the one they were made for."""


@command.command("list", epilog="Example: ./sparkserve adapters list --json | jq -r '.[].name'")
@options.as_json
def list_(as_json: bool) -> None:
    """List the adapters."""
    from sparkserve.adapters import registry
    from sparkserve.output import print_json
    from sparkserve.terminal import print_table

    known = registry.declarations()
    if as_json:
        print_json([_document(each) for each in known.values()])
    else:
        rows = [(each.name, each.exactness, each.title) for each in known.values()]
        print_table(("adapter", "exactness", "what"), rows)


@command.command("explain", epilog="Example: ./sparkserve adapters explain oneshot-collectives")
@click.argument("name")
@options.as_json
def explain(name: str, as_json: bool) -> None:
    """Say what an adapter does, where, at what price, and what it is set by."""
    from sparkserve.adapters import registry
    from sparkserve.output import print_json

    known = registry.declarations()
    if name not in known:
        raise SparkserveError(
            "ADAPTER.NAME",
            expected=f"one of {', '.join(known)}",
            found=name,
            where="adapters explain",
            do="./sparkserve adapters list shows them.",
        )
    if as_json:
        print_json(_document(known[name]))
    else:
        click.echo(_prose(known[name]))


@command.command(
    "verify",
    epilog="""Examples:

    ./sparkserve adapters verify

    ./sparkserve adapters verify --json | jq -r '.targets[] | select(.state != "same").target'

Exit code: 0 when every target is the source that the adapters were qualified on, 57 otherwise. Takes 5 s once
the engine is built.""",
)
@options.fleet
@click.option("--update", is_flag=True, help="Record the targets as they are now; commit the file it writes.")
@options.as_json
@click.pass_context
def verify(context: click.Context, fleet: str, update: bool, as_json: bool) -> None:
    """Resolve every target in the pinned SGLang and compare its source."""
    from sparkserve import checkout
    from sparkserve.engine import qualify
    from sparkserve.output import print_error, print_json
    from sparkserve.terminal import console, phase, print_table

    closure = _closure(fleet)
    with phase("Look at SGLang in the engine's root"):
        found = qualify.qualify(closure)
    if update:
        file = checkout.root() / "src/sparkserve/adapters/fingerprints.json"
        qualify.record(found, file)
        console.print(f"{len(found.targets)} targets of SGLang {found.sglang} recorded in {file}.")
        return
    wrong = found.wrong()
    if as_json:
        rows = [each._asdict() for each in found.targets]
        print_json({"schema": "sparkserve.targets/1", "sglang": found.sglang, "targets": rows})
    else:
        print_table(
            ("target", "used by", "source"), [(t.target, ", ".join(t.users), t.state) for t in found.targets]
        )
    if wrong:
        error = qualify.drifted(wrong)
        if not as_json:
            print_error(error, as_json=False)
        context.exit(error.exit_code)


def _closure(fleet: str) -> Any:
    from sparkserve import checkout, nix
    from sparkserve.engine import closure
    from sparkserve.fleet import plans
    from sparkserve.pins import fetch
    from sparkserve.terminal import phase

    with phase("Evaluate the plan"):
        plan = plans.load(fleet)[0]
    fetch.fetch(["stage0", "base", "tools", "harness", plan.engine.package, plan.engine.model], [], None)
    with phase(f"Build the closure of {plan.node.name}") as detail:
        link = checkout.state() / "roots" / "adapters"
        link.parent.mkdir(exist_ok=True)
        return closure.load(
            nix.build([plans.host(plan)], out_link=link, on_line=lambda line: detail(line[:100]))[0]
        )


def _document(declaration: Declaration) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(declaration)


def _prose(each: Declaration) -> str:
    hooks = "\n".join(f"  {target}" for target in each.hooks.values())
    settings = "\n".join(
        f"  {name} = {s.default}   ({s.min} to {s.max})\n    {' '.join(s.description.split())}"
        for name, s in each.settings.items()
    )
    return f"""{each.name}: {each.title}

{each.description.strip()}

Exactness: {each.exactness}
Memory:    {each.memory}
Effect:    {" ".join(each.effect.split())}
Upstream:  {each.upstream}
Conflicts: {", ".join(each.conflicts) or "none"}
Put around:
{hooks}
Settings (adapters.{each.name}.settings in fleet.nix):
{settings}"""
