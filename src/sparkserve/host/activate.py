"""Puts a host closure into effect on the node it runs on, and takes it away: bin/activate, bin/deactivate.

Files, units, masks, sysctls: brought there, told to those who read them, and then verified. The engine's
group is neither started nor stopped: a model load must not sit inside an activation, and it refuses while an
engine runs.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkserve import api_key, plan
from sparkserve.errors import SparkserveError
from sparkserve.group import run_files
from sparkserve.host import identity, preview, record, verify
from sparkserve.host.change import carry_out, plan_change
from sparkserve.host.system import System, wrong
from sparkserve.output import print_error, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkserve.host.change import Change
    from sparkserve.plan import Plan

CREDENTIALS = "/run/credentials/"
_USAGE = """Usage: {name} [--dry-run] [--json]{more}

{what}

  --dry-run  Say what would change, and change nothing.
  --json     Say it as JSON.
"""
_REPLACE = """  --replace  Also replace files that were edited by hand; copies are kept in
             /var/lib/sparkserve/activation/kept.
"""


def main(closure: str, what: str = "activate", argv: list[str] | None = None) -> None:
    """Do `what`, which is activate or deactivate, and exit: 0, or the code of the error.

    Without click: this is the part that must work when a machine is in a bad state.
    """
    words = sys.argv[1:] if argv is None else argv
    activates = what == "activate"
    known = ["--dry-run", "--json", *(["--replace"] if activates else [])]
    if unknown := [word for word in words if word not in known]:
        says = "Puts this host closure into effect." if activates else "Restores what was there before."
        more = " [--replace]" if activates else ""
        usage = _USAGE.format(name=what, more=more, what=says) + (_REPLACE if activates else "")
        (sys.stdout if unknown[0] in ("-h", "--help") else sys.stderr).write(usage)
        sys.exit(0 if unknown[0] in ("-h", "--help") else 2)
    try:
        bring(
            System(),
            Path(closure) if activates else None,
            replace="--replace" in words,
            dry="--dry-run" in words,
            as_json="--json" in words,
        )
    except SparkserveError as error:
        print_error(error, as_json="--json" in words)
        sys.exit(error.exit_code)


def bring(system: System, closure: Path | None, *, replace: bool, dry: bool, as_json: bool) -> None:
    """`activate`, or `deactivate` for None, or say with `dry` what they would do; prints the outcome."""
    if dry:
        with _in_words(system):
            found = dry_run(system, closure)
        if as_json:
            print_json(found)
        else:
            sys.stdout.write("".join(f"{line}\n" for line in preview.lines(found)) or "unchanged\n")
        return
    changed = deactivate(system) if closure is None else activate(system, closure, replace=replace)
    if as_json:
        print_json({"closure": str(closure) if closure else None, "changed": changed})
    else:
        sys.stdout.write("changed\n" if changed else "unchanged\n")


def activate(system: System, closure: Path, *, replace: bool = False) -> bool:
    """Bring the node to what `closure` wants, and verify it; whether anything changed.

    Raises `NODE.CLOSURE` for the closure of another node, `KEY.FILE` on a head without the keys of its
    endpoint, `NODE.FOREIGN` for files edited by hand unless `replace`, `NODE.ACTIVATE` when an engine runs
    and something would change, or when the node is not as planned afterwards, and `NODE.REBOOT` when only a
    reboot is missing.
    """
    wants = plan.load(closure / "plan.json")
    with _in_words(system), record.locked(system):
        change = plan_change(system, closure, wants)
        _check(system, closure, wants, change)
        if change.foreign and not replace:
            raise _foreign(system, change)
        _go(system, change)
    differences = verify.settled(system, closure, wants)
    if now := [str(each) for each in differences if not each.reboot]:
        raise wrong(
            f"{wants.node.name} as planned",
            "; ".join(now),
            system.name,
            "See journalctl -b -p warning and sparkserve doctor; then activate again.",
        )
    if differences:
        raise SparkserveError(
            "NODE.REBOOT",
            expected=f"{wants.node.name} as planned",
            found="; ".join(map(str, differences)) + "; all else is",
            where=system.name,
            do="Run: systemctl reboot",
        )
    return not change.nothing


def deactivate(system: System) -> bool:
    """Restore what was there before all closures; whether there was anything to do.

    What was edited by hand since is kept aside. Raises `NODE.ACTIVATE` while an engine runs.
    """
    with _in_words(system), record.locked(system):
        change = plan_change(system, None, None)
        _go(system, change)
    return not change.nothing


def dry_run(system: System, closure: Path | None) -> dict[str, Any]:
    """What `activate` would do, or `deactivate` when `closure` is None. Changes nothing."""
    wants = plan.load(closure / "plan.json") if closure else None
    change = plan_change(system, closure, wants)
    if closure and wants:
        _check(system, closure, wants, change)
    return preview.preview(system, change)


def _check(system: System, closure: Path, wants: Plan, change: Change) -> None:
    """Raise `NODE.CLOSURE` or `KEY.FILE` before anything is changed."""
    identity.check(system, closure, wants.node.name, change.record)
    keys = wants.serving.api_key_file
    # Else the front would not start, with the group down. What systemd decrypts for it is there only then.
    if keys and wants.node.rank == 0 and not keys.startswith(CREDENTIALS):
        api_key.read(system.at(keys))


@contextmanager
def _in_words(system: System) -> Iterator[None]:
    """What the disk refuses becomes an error in words."""
    try:
        yield
    except OSError as error:
        raise system.refused(error) from None


def _go(system: System, change: Change) -> None:
    if change.nothing:
        return
    if (engine := run_files.engine(system.runs)) is not None:
        raise wrong(
            "no engine on this node",
            f"process {engine.pid} runs",
            system.name,
            "Run: systemctl stop sparkserve-rank, on every node of the group, then try again.",
        )
    carry_out(system, change)


def _foreign(system: System, change: Change) -> SparkserveError:
    return SparkserveError(
        "NODE.FOREIGN",
        expected="the files that the last activation wrote",
        found=f"edited by hand: {', '.join(change.foreign)}",
        where=system.name,
        do=f"Put what you need into fleet.nix; then run {change.closure}/bin/activate --replace, "
        "which keeps copies in /var/lib/sparkserve/activation/kept.",
    )
