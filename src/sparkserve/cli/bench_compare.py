"""`sparkserve bench compare`: two arms of boots, and whether one is slower."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from sparkserve.bench.compare import GATING, TOLERANCE
from sparkserve.bench.results import METRICS
from sparkserve.cli import options
from sparkserve.errors import EXIT_CODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.bench.compare import Comparison, Row

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Against(click.Command):
    """Takes all files after --against, as a shell's `b*.json` gives them: click's options take one each."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given: list[str] = []
        against = False
        for word in args:
            if word.startswith("-"):
                against = word == "--against" or word.startswith("--against=")
            if word != "--against":
                given += ["--against", word] if against and not word.startswith("-") else [word]
        return super().parse_args(ctx, given)


@click.command(
    cls=_Against,
    epilog="""Examples:

    ./sparkserve bench compare new-*.json --against old-*.json

    ./sparkserve bench compare new.json --against old.json --metric ttft_s --tolerance 5 --json

A file has one or more boots, and the boot is what counts: one in an arm gives no verdict, two a
blunt one. Exit code: 83 for a regression, 80 for files that make no comparison.
docs/bench-statistics.md has tests and error rates.""",
)
@click.argument("files", nargs=-1, required=True, metavar="A.json...", type=_FILE)
@click.option(
    "--against",
    multiple=True,
    required=True,
    metavar="B.json...",
    type=_FILE,
    help="The results to compare with: all files up to the next option.",
)
@click.option(
    "--metric",
    type=click.Choice(list(METRICS)),
    metavar="NAME",
    help=f"What decides. Default: {', else '.join(GATING)}.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 100, max_open=True),
    default=TOLERANCE,
    show_default=True,
    metavar="PERCENT",
    callback=options.number,
    help="A smaller change is no regression.",
)
@options.as_json
def command(
    files: Sequence[Path], against: Sequence[Path], metric: str | None, tolerance: float, as_json: bool
) -> int:
    """Compare boots of A with those of B, which is what there was before."""
    from sparkserve.bench import compare, results
    from sparkserve.output import print_json

    a, b = ([results.read(path) for path in paths] for paths in (files, against))
    found = compare.compare(a, b, metric=metric, tolerance=tolerance)
    if as_json:
        print_json(found.model_dump(mode="json", by_alias=True))
    else:
        _show(found)
    return EXIT_CODES["BENCH.REGRESSION"] if found.regression else 0


def _show(found: Comparison) -> None:
    from sparkserve.bench import compare
    from sparkserve.terminal import console, print_table

    told = [row for row in found.rows if row.gates or row.verdict in ("better", "worse")]
    print_table(
        ("point", "metric", "A", "B", "change", "95 % interval", "p", "would find", "verdict"),
        [_cells(row) for row in told],
    )
    for note in found.notes:
        console.print(f"- {note}")
    verdicts = [row.verdict for row in found.rows if row.gates]
    counts = [f"{verdicts.count(each)} {each}" for each in get_args(compare.Verdict)]
    console.print(
        f"{'Regression' if found.regression else 'No regression found'}: of {len(verdicts)} points "
        f"{', '.join(counts)}; boots: {len(found.boots_a)} against {len(found.boots_b)}."
    )


def _cells(row: Row) -> tuple[str, ...]:
    measured = (
        row.point,
        row.metric if row.gates else f"{row.metric} (does not gate)",
        f"{row.a:.4g}",
        f"{row.b:.4g}",
        f"{row.change:+.1f} %",
    )
    if row.low is None or row.high is None or row.p is None or row.detectable is None:
        return (*measured, "-", "-", "-", row.verdict)
    p = f"{row.p:.3f}" if row.p > 0.001 else "< 0.001"
    return (*measured, f"{row.low:+.1f} to {row.high:+.1f} %", p, f"{row.detectable:.1f} %", row.verdict)
