"""`sparkserve check`: everything that must hold, with one closing line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sparkserve.cli import options
from sparkserve.errors import EXIT_CODES, SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sparkserve.checks import Outcome, Suite


def _suites() -> list[str]:
    from sparkserve import checks

    return checks.names()


@click.command(
    epilog="""Examples:

    ./sparkserve check

    ./sparkserve check --only pins --only flake

    NIXPKGS_LIB=~/nixpkgs/lib ./sparkserve check --only parity

The last line is always `N passed, N failed`. Logs are in .sparkserve/check/."""
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=options.complete(_suites),
    help="Run only this suite, slow or not. Repeatable.",
)
@click.option("--slow", is_flag=True, help="Run the slow suites too.")
@click.option("--list", "listing", is_flag=True, help="Show the suites and run nothing.")
@options.as_json
def command(only: Sequence[str], slow: bool, listing: bool, as_json: bool) -> int:
    """Prove that this checkout works on this machine; exit 60 when something does not."""
    from sparkserve import checks
    from sparkserve.output import print_json

    suites = checks.load()
    if listing:
        _list(suites, as_json)
        return 0
    chosen = _choose(suites, only, slow)
    results: list[dict[str, Any]] = []
    for name, suite in chosen.items():
        results.append(_result(name, suite, quiet=as_json))
    passed = sum(each["passed"] for each in results)
    failures = [(each["suite"], text) for each in results for text in each["failures"]]
    if as_json:
        document = {"schema": "sparkserve.check/1", "passed": passed, "failed": len(failures)}
        print_json({**document, "suites": results})
    else:
        for name, text in failures:
            click.echo(f"\nFAILED {name}: {text}")
        click.echo(f"{passed} passed, {len(failures)} failed")
    return EXIT_CODES["CHECK.FAILED"] if failures else 0


def _list(suites: dict[str, Suite], as_json: bool) -> None:
    from sparkserve.output import print_json
    from sparkserve.terminal import print_table

    if as_json:
        rows = [
            {"suite": name, "title": suite.title, "cost_s": suite.cost_s, "slow": suite.slow}
            for name, suite in suites.items()
        ]
        print_json(rows)
        return
    print_table(
        ("Suite", "Cost", "Proves"),
        [(name, f"{s.cost_s} s{' (slow)' if s.slow else ''}", s.title) for name, s in suites.items()],
    )


def _choose(suites: dict[str, Suite], only: Sequence[str], slow: bool) -> dict[str, Suite]:
    import difflib

    for name in only:
        if name not in suites:
            near = difflib.get_close_matches(name, suites)
            raise SparkserveError(
                "CHECK.NAME",
                expected=f"one of the suites {', '.join(suites)}",
                found=name,
                where="--only",
                do=f"Did you mean {' or '.join(near)}?" if near else "./sparkserve check --list shows them.",
            )
    return {n: s for n, s in suites.items() if (n in only if only else slow or not s.slow)}


def _result(name: str, suite: Suite, *, quiet: bool) -> dict[str, Any]:
    import time

    from rich.text import Text

    from sparkserve.terminal import console

    start = time.monotonic()
    if not console.is_terminal:
        console.print(f"{name}: {suite.title} (about {suite.cost_s} s)")
    with console.status(name) as status:
        # Text: rich reads the brackets in a test's name as markup.
        outcome = _guarded(suite, lambda text: status.update(Text(f"{name} · {text}")))
    seconds = time.monotonic() - start
    if not quiet:
        mark = "✗" if outcome.failures else "✓"
        click.echo(f"{mark} {name}: {outcome.passed} passed, {len(outcome.failures)} failed, {seconds:.1f} s")
    return {"suite": name, "seconds": round(seconds, 2), **outcome._asdict()}


def _guarded(suite: Suite, detail: Callable[[str], None]) -> Outcome:
    """Run a suite; whatever it raises is one failure, so that the other suites still run."""
    import traceback

    from sparkserve.checks import Outcome

    try:
        return suite.run(detail)
    except SparkserveError as error:
        return Outcome(0, [str(error)])
    except Exception:
        return Outcome(0, [traceback.format_exc()])
