"""`sparkserve smoke`: does it say Paris?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from pathlib import Path


@click.command(
    epilog="""Examples:

    ./sparkserve smoke

    ./sparkserve smoke --json | jq .tokens_per_s

Exit code: 0 for the right answer, 52 when nothing is ready to answer, 53 for a wrong one, 100 for a file
without a key, 101 when the endpoint does not take it."""
)
@options.fleet
@options.api_key_file
@options.as_json
def command(fleet: str, api_key_file: Path | None, as_json: bool) -> None:
    """Ask one question at temperature 0, streaming and not; the answers must be right and equal."""
    from sparkserve.engine import smoke
    from sparkserve.local import fleets
    from sparkserve.output import print_json
    from sparkserve.terminal import console, phase

    _, serving = fleets.ready(fleet)
    with phase(f"Ask {serving.model}: {smoke.QUESTION}"):
        result = smoke.check(serving.endpoint, serving.model, api_key_file or serving.key_file)
    try:
        serving.answered(float(result["seconds"]))
    except OSError as error:  # a full disk does not make the answer wrong
        console.print(f"Its time is not written down: {error.strerror} ({error.filename or fleet}).")
    if as_json:
        print_json(result)
        return
    console.print(str(result["answer"]))
    console.print(
        f"first token after {result['ttft_s']} s, then {result['tokens_per_s']} tokens/s; "
        f"the whole answer of {result['completion_tokens']} tokens in {result['seconds']} s"
    )
