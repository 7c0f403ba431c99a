"""`sparkserve bench`: how fast it is, in figures that decide."""

from __future__ import annotations

from typing import Any

import click

from sparkserve.cli import measuring as given
from sparkserve.cli.subcommands import Subcommands


@click.group(
    cls=Subcommands,
    prefix="bench",
    epilog="""Examples:

    ./sparkserve bench decode --quick

    ./sparkserve bench decode --boots 3 --output before.json

    ./sparkserve bench prefill --sizes 32768 --texts real,novel,filler

    ./sparkserve bench decode --endpoint http://127.0.0.1:30000 --model my-model --streams 1,4

docs/bench.md has each figure's formula, the protocol, and what makes two runs comparable.""",
)
def command() -> None:
    """Measure speed: in boots, with distinct prompts, on a quiet machine."""


_ENDS = """

It stops with what it has, saved, when a node has almost as little memory as makes the guard kill.

Exit code: 0 when all points were measured, 52 when nothing is ready to answer, 71 when a node is no longer
seen, 81 when others keep the engine busy, 82 when memory runs short, 84 when requests fail. 130 for Ctrl-C:
--resume FILE goes on."""


@command.command(
    epilog="Example: ./sparkserve bench decode --cases prose,code --streams 1,4 --boots 3" + _ENDS
)
@given.cases
@given.streams
@given.tokens
@given.common
def decode(**values: Any) -> None:
    """Tokens per second, step time and latencies of streams of equal length.

    Defaults: prose, code, json, structured; 1, 2, 4, 8, 16 streams as far as the engine takes them; 256
    tokens: what the published tables have.
    """
    _run("decode", values)


@command.command(epilog="Example: ./sparkserve bench sampled --cases chat --streams 4" + _ENDS)
@given.cases
@given.streams
@given.tokens
@given.common
def sampled(**values: Any) -> None:
    """The same at temperature 1.0, top_p 0.95: what of the drafts is accepted then.

    Defaults: chat, code; 1 and 4 streams; 256 tokens; 32 requests a point at least.
    """
    _run("sampled", values, cases=("chat", "code"), streams=(1, 4))


@command.command(epilog="Example: ./sparkserve bench prefill --sizes 32768 --texts real,novel,filler" + _ENDS)
@given.sizes
@given.texts
@given.common
def prefill(**values: Any) -> None:
    """Prompt tokens per second of one cold prompt, for each size and kind of text.

    Defaults: 2048, 32768, 65536, 131072 tokens as far as the engine takes them; real text.
    """
    _run("prefill", values)


@command.command(epilog="Example: ./sparkserve bench prefix --sizes 32768" + _ENDS)
@given.sizes
@given.texts
@given.common
def prefix(**values: Any) -> None:
    """What the prefix cache saves: one cold prompt, then the same twice more.

    Defaults: 32768 tokens of real text, three samples.
    """
    _run("prefix", values, sizes=(32768,), min=3, max=3)


@command.command(epilog="Example: ./sparkserve bench admission --streams 4 --sizes 65536" + _ENDS)
@given.streams
@given.sizes
@given.texts
@given.tokens
@given.common
def admission(**values: Any) -> None:
    """Long documents all at once: all answered, all running together, none put back. Else exit 84.

    Defaults: 4 streams of 65536 tokens of real text, 256 tokens each, one sample.
    """
    _run("admission", values, streams=(4,), sizes=(65536,), min=1, max=1)


@command.command(epilog="Example: ./sparkserve bench mixed --streams 8 --sizes 32768 --tokens 1024" + _ENDS)
@given.streams
@given.sizes
@given.texts
@given.tokens
@given.common
def mixed(**values: Any) -> None:
    """What decoding streams wait while a long prompt is admitted: before, during, after.

    Defaults: 8 streams, 512 tokens each; a prompt of 8192 tokens of real text.
    """
    _run("mixed", values, streams=(8,), sizes=(8192,), tokens=512)


def _run(mode: Any, values: dict[str, Any], **defaults: Any) -> None:
    """Measure, and print what came. `values` are the options, `defaults` the mode's own settings."""
    from sparkserve.bench import results
    from sparkserve.bench.settings import Settings
    from sparkserve.cli import measured

    how = measured.How(*(values.pop(name) for name in ("boots", "output", "resume", "as_json")))
    fleet, endpoint, model, key_file = map(values.pop, ("fleet", "endpoint", "model", "api_key_file"))
    where = given.place(fleet, endpoint, model, key_file, how.boots)
    quick = measured.QUICK if values.pop("quick") else {}
    names = {"least": "min", "most": "max"}
    chosen = {names.get(name, name): value for name, value in values.items() if value is not None}
    if how.resume is not None:
        if chosen or quick:
            raise click.UsageError("--resume goes on with the settings of its file: name no others")
        begun = results.read(how.resume)
        if begun.mode != mode:
            raise click.UsageError(f"{how.resume} is of: sparkserve bench {begun.mode}")
        measured.run(where, measured.settings_of(begun, how.resume), set(), how, begun)
        return
    merged = {"mode": mode, **defaults, **quick, **chosen}
    if merged.get("max", merged.get("min", 0)) < merged.get("min", 0) and "max" in chosen:
        raise click.UsageError("--max is less than --min")
    if merged.get("min") == 1 != merged.get("max"):
        raise click.UsageError("--min 1 has no interval: name 2, or --max 1 too")
    merged["max"] = max(merged.get("max", Settings().max), merged.get("min", 0))
    measured.run(where, Settings(**merged), set(chosen), how, None)
