"""`sparkserve bench report`: what a bench found, for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.bench.report.model import Report


def _references() -> list[str]:
    from sparkserve.bench import references

    return references.known()


def _writer(output: Path) -> Callable[[Report], str]:
    """What makes the text of a file of this name. Raises click.BadParameter for a name of no kind."""
    from sparkserve.bench.report import markdown, page

    kinds: dict[str, Callable[[Report], str]] = {
        ".html": page.html,
        ".md": markdown.markdown,
        ".json": lambda report: report.model_dump_json(by_alias=True, indent=2) + "\n",
    }
    if output.suffix not in kinds:
        raise click.BadParameter(
            f"{str(output)!r} does not end in {', '.join(kinds)}", param_hint=["--output"]
        )
    return kinds[output.suffix]


@click.command(
    epilog="""Examples:

    ./sparkserve bench report before.json

    ./sparkserve bench report before.json after.json --reference knapcio-v2.4 --output report.html

    ./sparkserve bench report run.json --output report.md

Without --output it prints Markdown. A file is an arm, and its name is the arm's. References are tables that
other owners of Sparks published: drawn beside the run, and never in its statistics. docs/bench-report.md
says how to read it."""
)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="RESULT.json...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--reference",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=options.complete(_references),
    help="A published table to show beside the run, such as owen-r6-tp4; can be repeated. all: every one.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it into this file, as its name ends: .html, .md or .json.",
)
@options.as_json
def command(files: tuple[Path, ...], names: tuple[str, ...], output: Path | None, as_json: bool) -> None:
    """Make a report of results: tables with intervals, plots, and published tables beside them."""
    from sparkserve.bench import references, results
    from sparkserve.bench.report import build, markdown
    from sparkserve.output import print_json, write_file
    from sparkserve.terminal import console

    if output is not None and output.exists() and any(output.samefile(file) for file in files):
        raise click.BadParameter(f"{output} is a result that it would replace", param_hint=["--output"])
    if len({file.resolve() for file in files}) < len(files):
        raise click.BadParameter("one file twice would be two arms", param_hint=["RESULT.json..."])
    write = _writer(output) if output else None
    if "all" in names:
        names = tuple(references.known())
    chosen = {name: references.load(name) for name in names}
    report = build.build([(file.stem, results.read(file)) for file in files], chosen)
    if output and write:
        write_file(output, write(report))
        console.print(f"wrote {output}")
    if as_json:
        print_json(report.model_dump(mode="json", by_alias=True))
    elif not output:
        click.echo(markdown.markdown(report), nl=False)
