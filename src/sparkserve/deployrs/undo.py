"""Back to what ran before an activation by deploy-rs: by its recorded path, not by the number below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.deployrs import session as sessions
from sparkserve.errors import EXIT_CODES, SparkserveError
from sparkserve.host.system import wrong

if TYPE_CHECKING:
    from sparkserve.deployrs.log import Log
    from sparkserve.deployrs.node import Node
    from sparkserve.deployrs.session import Before, Session


def undo(node: Node, session: Session, log: Log) -> None:
    """Bring back what ran before `session`. Raises `DEPLOY.BASE` when somebody else has changed the node
    since, which is then left alone, and `DEPLOY.OPEN` when it does not work."""
    before, now = session.before, node.before()
    if now.path not in (session.closure, before.path):
        raise moved(node, str(now))
    log.say(f"going back to {before}")
    try:
        if before.in_effect != session.closure:
            node.stopped()
            _activate(node, session, log)
        node.switch_back(session)
    except (SparkserveError, OSError) as error:
        reason = in_words(error, node)
        raise SparkserveError(
            "DEPLOY.OPEN",
            expected=f"{before} again",
            found=reason.found,
            where=reason.where,
            do=f"{reason.do} Then, on {node.system.name}: {command(session.closure)}",
        ) from None
    sessions.save(node.system, session.model_copy(update={"state": "undone"}))
    node.hold(None)
    log.say(f"{node.system.name} is as before: {before}")


def interrupted(last: Session, now: Before, epoch: int) -> bool:
    """Whether `last` was ended by a power cut or a kill, and nothing else has changed the node since."""
    same = last.state == "open" and last.epoch == epoch
    return same and now.path in (last.closure, last.before.path)


def command(closure: str) -> str:
    """How to take the activation of `closure` back by hand."""
    return f"{closure}/activate-rs revoke --profile-path {commands.PROFILE}"


def moved(node: Node, found: str) -> SparkserveError:
    """The error for a node that is no longer as deploy-rs left it."""
    return SparkserveError(
        "DEPLOY.BASE",
        expected="the node as the activation left it",
        found=found,
        where=node.system.name,
        do="Somebody else has changed it, and it is left so. To a kept generation: ./sparkserve rollback.",
    )


def in_words(error: SparkserveError | OSError, node: Node) -> SparkserveError:
    """What a user can act on."""
    return error if isinstance(error, SparkserveError) else node.system.refused(error)


def _activate(node: Node, session: Session, log: Log) -> None:
    """By the program of what was in effect before: its plan may be of another version than ours."""
    old = session.before.in_effect
    program = f"{old}/bin/activate" if old else f"{session.closure}/bin/deactivate"
    node.system.step(program)
    code = node.told(program, {}, log)
    # What waited for a reboot before waits for it again.
    if code not in (0, EXIT_CODES["NODE.REBOOT"]):
        raise wrong(f"success of {program}", f"exit code {code}", node.system.name, "Its words say why.")
