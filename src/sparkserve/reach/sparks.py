"""A fleet of Sparks: machines of their own, which are asked, drained and stopped, and never powered off."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.commands import Safety
from sparkserve.deploy import survey
from sparkserve.errors import SparkserveError
from sparkserve.fleet import about, command
from sparkserve.reach import health
from sparkserve.reach.nodes import Nodes
from sparkserve.runner import check
from sparkserve.terminal import phase
from sparkserve.transport import rollout
from sparkserve.transport.deliver import parallel

if TYPE_CHECKING:
    from sparkserve.reach.afar import Afar
    from sparkserve.runner import Runner

# What to do about a state. `deploy` also brings what has changed in the files; without --apply it says what.
_ADVICE = {
    "stopped": "Its supervisor was stopped, as by down. ./sparkserve deploy --apply starts the group.",
    "starting": "A boot goes on: ./sparkserve logs.",
    "proving": "It is up and its first token is awaited: seconds.",
    "draining": "It lets requests end and stops.",
    "down": "Its group does not run: see ./sparkserve logs. ./sparkserve deploy --apply starts it.",
    "silent": "It was ready and answers no more: see ./sparkserve logs.",
    "lost": "It is not part of the group: see ./sparkserve logs. When the cause is gone, "
    "./sparkserve deploy --apply starts the group.",
    "unreachable": "It is off, not on its network, or ssh needs what neither the fleet's file nor your "
    "~/.ssh/config says: a key, a user, a host key.",
}


class Sparks(Nodes):
    """The fleet that `way` leads to."""

    def __init__(self, way: Afar) -> None:
        super().__init__(way.head.fleet.name)
        self._way = way

    def way(self) -> Afar:
        """See `Nodes.way`."""
        return self._way

    def connect(self, allow: Safety = Safety.READS_HOSTS) -> Runner:
        """See `Nodes.connect`. Raises `ENGINE.STATE` when the head is of another fleet."""
        runner = self._way.connect(allow)
        try:
            self._way.claimed(runner, self.nodes[0])
        except BaseException as error:
            # A node that is away is said by whoever asks it.
            if not isinstance(error, SparkserveError) or error.id == "ENGINE.STATE":
                runner.close()
                raise
        return runner

    def advice(self, state: str) -> str:
        """See `There.advice`."""
        return about(_ADVICE.get(state, ""), self.name)

    def take_down(self) -> bool:
        """Drain the group and stop what serves on all nodes that answer; they stay on.

        Raises, before anything is stopped, `DEPLOY.LEASE` while a deployment is open and `ENGINE.STATE` for a
        node of another fleet; and `NODE.UNREACHABLE` for a node that is away, when the others are stopped.
        """
        head, units = self.nodes[0], rollout.units(self.nodes)
        away: dict[str, str] = {}
        ran: list[str] = []
        with closing(self._way.connect(Safety.STOPS_SERVING)) as runner:

            def ask(node: str) -> None:
                try:
                    self._way.claimed(runner, node)
                    survey.refuse_open(runner, [node])
                except SparkserveError as error:
                    # The second is a node that takes the connection and no more: it may be out of memory.
                    if error.id not in ("NODE.UNREACHABLE", "NODE.COMMAND"):
                        raise
                    away[node] = error.found

            def stop(node: str) -> None:
                shown = check(runner, node, commands.shown_units(*units[node]))
                if "ActiveState=active" in shown or "ActiveState=activating" in shown:
                    ran.append(node)
                check(runner, node, commands.stop_units(*units[node]))

            parallel(runner, units, ask)
            if head not in away:
                with phase(f"Drain {self.name}"):
                    rollout.drain(runner, head)
            with phase(f"Stop what serves on the nodes of {self.name}, which stay on"):
                parallel(runner, {node: None for node in units if node not in away}, stop)
        if away:
            raise SparkserveError(
                "NODE.UNREACHABLE",
                expected="all nodes to answer over ssh; what serves on those that do is stopped",
                found="; ".join(f"{node}: {why}" for node, why in sorted(away.items())),
                where=", ".join(sorted(away)),
                do=f"When they answer: {command('down', self.name)}. {self.advice('unreachable')}",
            )
        return bool(ran)

    def restart(self) -> None:
        """Stop the group and start it again, with what is current.

        Raises `DEPLOY.LEASE` while a deployment is open, `NODE.*`, `GROUP.BOOT`, `ENGINE.READY`.
        """
        with closing(self.connect(Safety.STOPS_SERVING)) as runner:
            survey.refuse_open(runner, self.nodes)
            with phase(f"Stop the group of {self.name}"):
                rollout.stop(runner, dict.fromkeys(self.nodes))
            rollout.start_units(runner, rollout.units(self.nodes))
            rollout.start_group(runner, self.nodes[0])
            with self._way.endpoint(self._way.current(runner).serving) as endpoint:
                health.wait(endpoint, self.name)
