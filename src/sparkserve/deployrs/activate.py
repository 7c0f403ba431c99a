"""`activate-rs` of a host closure, as deploy-rs calls it on a node: activate, wait, revoke.

Its command line, the name of the canary and what its end means are deploy-rs's. What it goes back to is ours:
what was recorded as running before, where deploy-rs takes the generation with the next lower number.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from sparkserve.deployrs import canary, words
from sparkserve.deployrs import session as sessions
from sparkserve.deployrs.log import Log
from sparkserve.deployrs.node import Node
from sparkserve.deployrs.script import no_boot
from sparkserve.deployrs.undo import command, in_words, interrupted, moved, undo
from sparkserve.errors import EXIT_CODES, SparkserveError
from sparkserve.host.system import wrong
from sparkserve.output import print_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.deployrs.session import Before
    from sparkserve.deployrs.words import Asked


def main(closure: str, argv: Sequence[str] | None = None, node: Node | None = None) -> None:
    """Do what deploy-rs asks for with `closure`, and exit: 0, or the code of the error."""
    # The connection may be lost with the network that an activation changes; the rollback must not be.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    node = node or Node()
    try:
        asked = words.parse(sys.argv[1:] if argv is None else argv, closure)
        _do(node, closure, asked, Log(asked.verb, asked.log_dir, asked.debug_logs))
    except SparkserveError as error:
        with suppress(OSError):
            print_error(error, as_json=False)
        sys.exit(error.exit_code)


def _do(node: Node, closure: str, asked: Asked, log: Log) -> None:
    try:
        match asked.verb:
            case "activate" if asked.boot:
                raise no_boot(closure)
            case "activate" if asked.dry_activate:
                dry(node, closure, log)
            case "activate":
                activate(node, closure, asked, log)
            case "wait":
                wait(closure, asked, log)
            case "revoke":
                revoke(node, closure, log)
    except OSError as error:
        raise in_words(error, node) from None


def activate(node: Node, closure: str, asked: Asked, log: Log) -> None:
    """Activate `closure`, make it current, and wait for the confirmation where asked to.

    Raises `DEPLOY.UNDONE` when it failed and the node is as before, `DEPLOY.OPEN` when it is not, and other
    errors when nothing was changed, or is not to be taken back.
    """
    with node.alone() as epoch:
        node.check(closure)
        before, last = node.before(), sessions.load(node.system)
        if last is not None and interrupted(last, before, epoch):
            # What nobody has confirmed is nothing to go back to.
            log.say(f"the activation of {last.closure} was interrupted")
            undo(node, last, log)
            before = node.before()
        if not before.in_effect == before.path == closure:
            node.stopped()
        _announce(node, before, log)
        session = sessions.Session(closure=closure, before=before, newest=node.newest(), epoch=epoch)
        sessions.save(node.system, session)
        try:
            node.hold(closure)
            _script(node, closure, log, dry=False)
            node.switch(closure)
            if asked.magic_rollback:
                _confirm(node, closure, asked, log)
        except (SparkserveError, OSError) as error:
            reason = in_words(error, node)
            if not asked.auto_rollback and not isinstance(error, UnconfirmedError):
                raise _left(reason, closure) from None
            log.say(str(reason))
            undo(node, session, log)
            raise SparkserveError(
                "DEPLOY.UNDONE",
                expected=reason.expected,
                found=reason.found,
                where=reason.where,
                do=f"{node.system.name} is as before: {before}. {reason.do}",
            ) from None
        sessions.save(node.system, session.model_copy(update={"state": "stands"}))
        node.hold(None)
        log.say(f"{closure} is in effect and current")


def dry(node: Node, closure: str, log: Log) -> None:
    """Say what an activation would change. When another node's dry run fails, deploy-rs revokes this one."""
    with node.alone() as epoch:
        node.check(closure)
        before, last = node.before(), sessions.load(node.system)
        if last is not None and interrupted(last, before, epoch):
            raise SparkserveError(
                "DEPLOY.OPEN",
                expected="no activation that has not ended",
                found=f"that of {last.closure}, which was interrupted",
                where=node.system.name,
                do=f"Deploy again, or go back: {command(last.closure)}",
            )
        if last is not None and last.closure == closure and last.state == "stands":
            sessions.save(node.system, last.model_copy(update={"state": "settled"}))
        _announce(node, before, log)
        _script(node, closure, log, dry=True)


def wait(closure: str, asked: Asked, log: Log) -> None:
    """Wait until the activation of `closure` wants its confirmation. Raises `NODE.ACTIVATE`."""
    path = canary.place(asked.temp_path, closure)
    log.detail(f"waiting for {path}")
    if not canary.appears(path, asked.activation_timeout):
        raise wrong(
            f"an activation within {asked.activation_timeout} s",
            f"no {path}",
            closure,
            "It goes on, and goes back at its end, as nobody confirms it. See on the node: journalctl -b.",
        )
    log.say("activated; to be confirmed")


def revoke(node: Node, closure: str, log: Log) -> None:
    """Take the activation of `closure` back. One that did not happen, as in a dry run, needs nothing."""
    with node.alone() as epoch:
        last = sessions.load(node.system)
        if last is None or last.closure != closure or last.state in ("settled", "undone"):
            log.say(f"nothing to take back: this run of deploy-rs has not activated {closure}")
            return
        if last.epoch != epoch:
            raise moved(node, "a deployment of sparkserve since")
        undo(node, last, log)


class UnconfirmedError(SparkserveError):
    """Nobody deleted the canary: the deployer may not reach the node any more, and cannot revoke."""


def _confirm(node: Node, closure: str, asked: Asked, log: Log) -> None:
    path = canary.place(asked.temp_path, closure)
    try:
        canary.lay(path)
        log.detail(f"waiting for somebody to delete {path}")
        if canary.taken(path, asked.confirm_timeout):
            log.say("confirmed")
            return
    except OSError as error:
        cannot = in_words(error, node)
        raise UnconfirmedError(
            cannot.id, expected=cannot.expected, found=cannot.found, where=cannot.where, do=cannot.do
        ) from None
    raise UnconfirmedError(
        "NODE.ACTIVATE",
        expected=f"a confirmation within {asked.confirm_timeout} s",
        found=f"nobody deleted {path}",
        where=node.system.name,
        do="The deployer could not log in after the change, or was gone.",
    )


def _script(node: Node, closure: str, log: Log, *, dry: bool) -> None:
    """Run `deploy-rs-activate`, with the environment in which deploy-rs runs it."""
    env = {"PROFILE": closure, "DRY_ACTIVATE": "1" if dry else "0", "BOOT": "0"}
    node.system.step("deploy-rs-activate")
    code = node.told(f"{closure}/deploy-rs-activate", env, log)
    if code == EXIT_CODES["NODE.REBOOT"]:
        raise SparkserveError(
            "NODE.REBOOT",
            expected="the node as planned",
            found="that only a reboot is missing",
            where=node.system.name,
            do="deploy-rs reboots nothing, unlike ./sparkserve deploy. Or deploy with --auto-rollback false, "
            "reboot the node, and deploy again.",
        )
    if code != 0:
        do = "Its words say why."
        raise wrong("success of deploy-rs-activate", f"exit code {code}", node.system.name, do)


def _announce(node: Node, before: Before, log: Log) -> None:
    """Say beforehand where a failure leads to."""
    if before.generation is None and before.in_effect is None:
        log.say(
            f"the first closure of {node.system.name}: there is none to go back to. When it fails it is "
            "deactivated, and the node is as it was before sparkserve"
        )
    else:
        log.say(f"{node.system.name} has {before}; a failure leads back to it")


def _left(reason: SparkserveError, closure: str) -> SparkserveError:
    return SparkserveError(
        reason.id,
        expected=reason.expected,
        found=reason.found,
        where=reason.where,
        do=f"{reason.do} Nothing was taken back; this does it: {command(closure)}",
    )
