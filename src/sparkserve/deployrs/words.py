"""The command line of `activate-rs` as deploy-rs writes it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from sparkserve import commands
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_S = 65535  # deploy-rs has 16 bits for seconds


class Asked(NamedTuple):
    """What to do. `activation_timeout` has deploy-rs's default; the rest is said where it counts."""

    verb: str
    temp_path: Path = Path("/tmp")  # noqa: S108 - deploy-rs's own default
    confirm_timeout: int = 30
    activation_timeout: int = 240
    magic_rollback: bool = False
    auto_rollback: bool = False
    dry_activate: bool = False
    boot: bool = False
    debug_logs: bool = False
    log_dir: Path | None = None


def parse(argv: Sequence[str], closure: str) -> Asked:
    """What `argv` asks of the program of `closure`. Raises `CLI.USAGE`; exits with 0 after --help."""
    given = vars(_parser().parse_args(argv))
    profile = given.pop("profile_path", commands.PROFILE)
    if (user := given.pop("profile_user", None)) or given.pop("profile_name", None):
        raise _usage(f"--profile-path {commands.PROFILE}", f"a profile of the user {user or 'nobody'}")
    if profile != commands.PROFILE:
        # The group starts from there, and nowhere else.
        raise _usage(f"--profile-path {commands.PROFILE}", str(profile))
    if (named := given.pop("closure", closure)) != closure:
        raise _usage(f"the closure that this program is part of, {closure}", named)
    return Asked(**{name: value for name, value in given.items() if value is not None})


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _usage("the words of deploy-rs (--help)", message)


def _parser() -> _Parser:
    parser = _Parser(
        prog="activate-rs",
        description="Activate this host closure for deploy-rs, wait for that, or take it back.",
        allow_abbrev=False,
    )
    parser.add_argument("-d", "--debug-logs", action="store_true", help="say everything that is done")
    parser.add_argument("--log-dir", type=Path, metavar="DIR", help="write what is said to a file there too")
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=_Parser, metavar="VERB")
    activate = verbs.add_parser("activate", allow_abbrev=False, help="activate, and wait for a confirmation")
    wait = verbs.add_parser("wait", allow_abbrev=False, help="wait until an activation wants confirmation")
    revoke = verbs.add_parser("revoke", allow_abbrev=False, help="go back to what ran before")
    for verb in (activate, wait):
        verb.add_argument("closure", help="the host closure")
        verb.add_argument(
            "--temp-path", type=Path, required=True, metavar="DIR", help="where the file to delete is"
        )
    for verb in (activate, revoke):
        which = verb.add_mutually_exclusive_group(required=True)
        which.add_argument("--profile-path", metavar="PATH", default=argparse.SUPPRESS)
        which.add_argument("--profile-user", metavar="USER", help="refused: the path is always the same")
        verb.add_argument("--profile-name", metavar="NAME", help="refused, as the user is")
    activate.add_argument("--confirm-timeout", type=_seconds, required=True, metavar="S")
    activate.add_argument("--magic-rollback", action="store_true", help="go back unless it is confirmed")
    activate.add_argument("--auto-rollback", action="store_true", help="go back when it fails")
    activate.add_argument("--dry-activate", action="store_true", help="only say what would change")
    activate.add_argument("--boot", action="store_true", help="refused: nothing activates at a boot")
    wait.add_argument("--activation-timeout", type=_seconds, metavar="S")
    return parser


def _seconds(text: str) -> int:
    value = int(text) if text.isascii() and text.isdecimal() else MOST_S + 1
    if value > MOST_S:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to {MOST_S} seconds")
    return value


def _usage(expected: str, found: str) -> SparkserveError:
    return SparkserveError(
        "CLI.USAGE",
        expected=expected,
        found=found,
        where="activate-rs",
        do="deploy-rs sends the right words for `deploy` of this flake: docs/deploy-rs.md.",
    )
