"""The doctor where nothing else works: plain lines. The harness's command calls the same functions."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from sparkserve.doctor import inputs, report, selftest
from sparkserve.doctor.check import NotApplicable, Unknown, all_checks
from sparkserve.doctor.facts import Live, Recorded, bundle
from sparkserve.doctor.inputs import Usage
from sparkserve.doctor.judge import judge
from sparkserve.doctor.node import PLAN, Node
from sparkserve.doctor.redact import redact_value
from sparkserve.doctor.words import planned
from sparkserve.errors import EXIT_CODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sparkserve.doctor.check import Check

FAILED = EXIT_CODES["DOCTOR.FAILED"]
USAGE = EXIT_CODES["CLI.USAGE"]


def examine(*, live: bool, as_json: bool, only: str | None, facts: str | None, plan: str | None) -> int:
    """Ask all checks and print what they found. The exit code: 0, or 62 when an error was found."""
    checks = _chosen(only)
    recorded = inputs.bundle(Path(facts)) if facts else None
    node = _node(recorded, plan, live)
    shown = sys.stderr.isatty()

    def progress(id: str) -> None:
        if shown:
            sys.stderr.write(f"\r\x1b[K{id}")
            sys.stderr.flush()

    answers = judge(node, checks, live=live, progress=progress)
    if shown:
        sys.stderr.write("\r\x1b[K")
    host = _host(node)
    if as_json:
        print(json.dumps(report.as_dict(answers, host), indent=2, sort_keys=True))
    else:
        print("\n".join(report.lines(answers, host)))
    return FAILED if report.failed(answers) else 0


def list_checks(*, as_json: bool, only: str | None = None) -> int:
    """Print every check, or those of `only`. Raises `Usage`."""
    checks = {check.id: check for check in _chosen(only)}
    if as_json:
        print(json.dumps(report.table(checks), indent=2, sort_keys=True))
    else:
        print("\n".join(f"{check.severity:7} {check.id:26} {check.asks}" for check in checks.values()))
    return 0


def explain(id: str) -> int:
    """Print one check in words. Raises `Usage`."""
    for check in _chosen(id):
        print(report.about(check), end="\n\n" if "." not in id else "\n")
    return 0


def run_selftest(*, as_json: bool) -> int:
    """Flip every id on its own fixture. The exit code: 0, or 62."""
    wrong, flipped, still = selftest.problems()
    if as_json:
        value = {"schema": "sparkserve.doctor-selftest/1", "flipped": flipped, "quiet": still, "wrong": wrong}
        print(json.dumps(value, indent=2, sort_keys=True))
    else:
        print(
            "\n".join(
                [*wrong, f"{flipped} ids flipped, {still} quiet changes stayed quiet, {len(wrong)} wrong"]
            )
        )
    return FAILED if wrong else 0


def collect(out: str, *, live: bool) -> int:
    """Write what all checks read of this host to a file, without secrets, for `--facts` elsewhere."""
    node = _node(None, None, live)
    if out == "-":
        print(_bundled(node, live))
        return 0
    file = _new(out)
    try:
        text = _bundled(node, live)
        with file:
            file.write(text + "\n")
    except BaseException as error:
        Path(out).unlink()  # half a bundle is none, and the next try needs the name
        if isinstance(error, OSError):
            raise Usage(f"{out}: {error.strerror}") from None
        raise
    print(f"{out} has {len(text) >> 10} KiB: sparkserve doctor --facts {out}")
    return 0


def _bundled(node: Node, live: bool) -> str:
    judge(node, all_checks().values(), live=live)
    found = bundle(node.facts) | {"plan": redact_value(node.planned), "checkout": node.checkout}
    return json.dumps(found, indent=1, sort_keys=True)


def _new(out: str) -> TextIO:
    """A file that was not there before, for its owner only. Raises `Usage`."""
    try:
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Usage(f"{out} is there already: name a new file, or - for stdout") from None
    except (OSError, ValueError) as error:
        raise Usage(f"{out}: {getattr(error, 'strerror', None) or error}") from None
    return os.fdopen(file, "w", encoding="utf-8")


def refuse(action: str, given: Mapping[str, object]) -> None:
    """Raise `Usage` when options of the questions stand before an action, which would not look at them."""
    if named := [f"--{name}" for name, value in given.items() if value]:
        raise Usage(f"{' '.join(named)}: {action} does not take it; leave it out, or leave out {action}")


def _chosen(only: str | None) -> list[Check]:
    checks = all_checks()
    word = (only or "").upper()
    chosen = [check for check in checks.values() if not word or word in (check.id, check.area)]
    if not chosen:
        areas = sorted({check.area for check in checks.values()})
        raise Usage(f"no check or area {only!r}: the areas are {', '.join(areas)}; --list shows the ids")
    return chosen


def _node(recorded: Mapping[str, Any] | None, plan: str | None, live: bool) -> Node:
    if recorded is not None:
        found = inputs.plan(Path(plan)) if plan else recorded.get("plan")
        return Node(Recorded(recorded, live=live), found, recorded.get("checkout"))
    try:
        found = inputs.plan(Path(plan)) if plan else inputs.read(Path(PLAN))
    except Usage:
        if plan:
            raise
        found = None  # no closure yet, or a damaged one, which NIX.PROFILE tells
    return Node(Live(Path("/"), live=live, planned=planned(found)), found, _checkout())


def _checkout() -> str | None:
    named = os.environ.get("SPARKSERVE_CHECKOUT")
    folder = Path(named) if named else Path(__file__).resolve().parents[3]
    return str(folder) if (folder / "flake.nix").exists() else None


def _host(node: Node) -> str:
    try:
        spark, told = node.spark()
        machine = (
            f"a Spark ({told})" if spark else f"not a Spark ({told}): checks of its hardware do not apply"
        )
    except Unknown as error:
        machine = f"a machine that cannot be told: {error}"
    try:
        closure = f"plan of {node.plan('fleet', 'name')}, {node.plan('node', 'name')}"
    except NotApplicable as error:
        closure = str(error)
    return f"This is {machine}; {closure}."


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Usage(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="sparkserve doctor",
        description="Ask what is wrong with this host. It changes nothing; every fix is printed, never run.",
        epilog="Examples: doctor; doctor --live --only FABRIC; doctor --json; doctor explain KERNEL.KHO",
    )
    parser.add_argument("--live", action="store_true", help="also ask the network and the other nodes")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.add_argument("--list", action="store_true", help="show all checks")
    parser.add_argument("--only", metavar="AREA|ID", help="ask these checks only")
    parser.add_argument("--facts", metavar="PATH", help="ask a bundle that doctor collect wrote")
    parser.add_argument("--plan", metavar="FILE", help="the plan to compare with, not the host's own")
    actions = parser.add_subparsers(dest="action", metavar="selftest|explain|collect", parser_class=_Parser)
    tested = actions.add_parser("selftest", help="flip every id on its own fixture")
    tested.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
    actions.add_parser("explain", help="one check in words").add_argument("id")
    collected = actions.add_parser("collect", help="write what is read, for --facts elsewhere")
    collected.add_argument("out")
    collected.add_argument("--live", action="store_true", default=argparse.SUPPRESS)
    return parser


def main(argv: list[str]) -> int:
    """Run a command line; the exit code."""
    # A descriptor that is closed would be the next file's, and print would write into that.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    try:
        words = _parser().parse_args(argv)
        code = _run(words)
        sys.stdout.flush()
    except Usage as error:
        sys.stderr.write(f"CLI.USAGE {report.printable(str(error))}\n")
        return USAGE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:  # all that checks meet is caught: this is stdout, on a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        id = "HOST.DISK" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "HOST.SYSTEM"
        sys.stderr.write(f"{id} stdout takes no more: {error.strerror}\n")
        return EXIT_CODES[id]
    return code


def _run(words: argparse.Namespace) -> int:
    if words.action:
        refuse(words.action, {name: getattr(words, name) for name in ("list", "only", "facts", "plan")})
    if words.action == "selftest":
        return run_selftest(as_json=words.json)
    if words.action == "explain":
        return explain(words.id)
    if words.action == "collect":
        return collect(words.out, live=words.live)
    if words.list:
        return list_checks(as_json=words.json, only=words.only)
    return examine(live=words.live, as_json=words.json, only=words.only, facts=words.facts, plan=words.plan)
