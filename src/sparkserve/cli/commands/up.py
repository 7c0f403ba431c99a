"""`sparkserve up`: from files to a served model."""

from __future__ import annotations

import click

from sparkserve.cli import options


@click.command(
    epilog="""Examples:

    ./sparkserve up

    ./sparkserve up --json | jq -r .endpoint

    SPARKSERVE_FLEET=local-single ./sparkserve up

Run it again at any time: when the running engine is what the files say, it only checks that it answers.
Ctrl-C stops it in any phase and leaves no process behind. It makes nodes on this machine; Sparks get what the
files say by deploy."""
)
@options.fleet
@options.as_json
def command(fleet: str, as_json: bool) -> None:
    """Build the closure, start the engine and wait until it answers."""
    import json

    from sparkserve.local import fleets
    from sparkserve.output import print_json
    from sparkserve.terminal import console

    done = fleets.bring_up(fleet)
    if as_json:
        print_json(
            {
                "already_running": done.already,
                "endpoint": done.endpoint,
                "fleet": fleet,
                "fleet_id": done.fleet_id,
                "model": done.model,
                "pid": done.pid,
                "seconds": {name: round(value, 2) for name, value in done.seconds.items()},
            }
        )
        return
    body = {"model": done.model, "messages": [{"role": "user", "content": "What is the capital of France?"}]}
    state = "already serves" if done.already else "serves"
    console.print(f"{fleet} {state} {done.model} at {done.endpoint}/v1 (fleet id {done.fleet_id[:12]})")
    if done.keyed:
        console.print("It asks for a key: docs/secrets.md says how to show one. Try: ./sparkserve smoke.")
        return
    console.print("Try: ./sparkserve smoke, or:")
    url = f"{done.endpoint}/v1/chat/completions"
    console.print(f"  curl {url} -H 'Content-Type: application/json' -d '{json.dumps(body)}'")
