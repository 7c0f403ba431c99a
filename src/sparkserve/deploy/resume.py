"""Ends what is open: undoes a deployment that was not decided, or was decided so, and finishes one to keep.

Everything here may be done twice, and by anybody who reaches the nodes: what a deployer had done, or only
begun, is on the nodes. The head's decision counts. A head that is there and knows none has made none: it is
the last to end, so it forgets nothing that another node still asks for.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.deploy.lease import CHANGE, SERVED, SETTLED, Lease, looks
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.runner import check
from sparkserve.terminal import phase
from sparkserve.transport import deliver, rollout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from sparkserve.deploy.plan import DeployPlan, Member
    from sparkserve.deploy.state import Outcome, State
    from sparkserve.runner import Runner

    Said = Mapping[str, State | SparkserveError]


@dataclass(frozen=True)
class Ended:
    """How a deployment ended. `trouble` is why the group does not run as it should, if it does not."""

    plan: DeployPlan
    outcome: Outcome
    trouble: str = ""

    def as_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"id": self.plan.id, "outcome": self.outcome, "trouble": self.trouble}


def resume(
    runner: Runner,
    nodes: Iterable[str],
    deployer: str,
    healthy: Callable[[], None],
    note: Callable[[Ended], None] = lambda ended: None,
) -> list[Ended]:
    """End every open deployment on `nodes`, in place of whoever made it. `healthy` waits for an answer.

    `note` is told of each as soon as it has ended: a later one may fail.

    Raises `DEPLOY.NOTHING` when none is open, `DEPLOY.HEAD` when the head does not say what was decided, and
    `DEPLOY.OPEN` when a node could not be brought to its end: the same command goes on from there.
    """
    ended: list[Ended] = []
    while True:
        head, *workers = nodes
        # The head last: it is the first to begin and the last to end, so it knows all that they have open.
        said = {**looks(runner, workers), **looks(runner, [head])}
        errors = [each for each in said.values() if isinstance(each, SparkserveError)]
        states = [each for each in said.values() if not isinstance(each, SparkserveError)]
        now = next((state.open for state in states if state.open is not None), None)
        if now is None:
            break
        ended.append(settle(runner, now.plan, deployer, healthy, said))
        note(ended[-1])
    if errors:
        raise errors[0]
    if not ended:
        raise SparkserveError(
            "DEPLOY.NOTHING",
            expected="an open deployment",
            found="none",
            where=", ".join(said),
            do="To see what each node runs: ./sparkserve generations.",
        )
    return ended


def settle(runner: Runner, plan: DeployPlan, deployer: str, healthy: Callable[[], None], said: Said) -> Ended:
    """End the deployment `plan`; `said` is what the nodes have just said. Raises as `resume`."""
    lease = Lease(runner, plan, deployer)
    end = End(lease, healthy)
    head, *workers = [member.name for member in plan.members]
    end.take([head], said)
    if head in end.errors:
        raise _needs_head(plan, end.errors[head])
    if head in lease.held:
        # From here on nobody else decides. What the others have said may be of before it began there.
        said = {**said, **looks(runner, [node for node in workers if node in said])}
    end.take(workers, said)
    outcome = _decided(lease, said)
    if head in lease.held:
        lease.decide(head, outcome)
    trouble = end.undo() if outcome == "undo" else end.keep()
    end.end(outcome)
    return Ended(plan, outcome, trouble)


def _decided(lease: Lease, said: Said) -> Outcome:
    """What was decided of the deployment: by the head's word, else by that of any other who knows."""
    for member in lease.plan.members:
        now, state = lease.held.get(member.name), said.get(member.name)
        if now is not None and now.decided is not None:
            return now.decided
        if member.name not in lease.held and state is not None and not isinstance(state, SparkserveError):
            for past in reversed(state.past):
                if past.id == lease.plan.id:
                    return past.outcome
    return "undo"


class End:
    """The way to the end of a decided deployment, in spite of nodes that do not answer: their `errors`.

    One node that does not go back, or does not end, keeps no other from it.
    """

    def __init__(self, lease: Lease, healthy: Callable[[], None]) -> None:
        self.lease, self.plan = lease, lease.plan
        self.head = lease.plan.head.name
        self.healthy = healthy
        self.errors: dict[str, SparkserveError] = {}

    def take(self, nodes: Iterable[str], said: Said) -> None:
        """Take over those of `nodes` that have said that they have it open."""
        for node in nodes:
            found = said.get(node) or _not_asked(self.plan, node, said)
            if isinstance(found, SparkserveError):
                self.errors[node] = found
            elif found.open is not None and found.open.id == self.plan.id:
                with self.noting(node):
                    self.lease.take(node, found.open)

    def undo(self) -> str:
        """Bring members back to their bases, and the group as it was; why it is not. Raises `DEPLOY.OPEN`."""
        now = self.lease.held.get(self.head)
        if now is not None and CHANGE not in now.steps:
            return ""
        held = [member for member in self.plan.members if member.name in self.lease.held]
        if now is None or SETTLED in now.steps:
            held = [member for member in held if not self._is_back(member)]
        with phase("Undo: all nodes back to what they had") as detail:
            if held:
                detail("stopping the group")
                self._stop([member.name for member in held])
            for member in sorted(held, key=lambda member: member.name == self.head):
                if member.name not in self.errors:
                    detail(member.name)
                    with self.noting(member.name):
                        _back(self.lease.doing("undo"), member)
            self.check()
        if now is None or SETTLED in now.steps:
            return ""
        served = [member.name for member in self.plan.members if member.base]
        trouble = self._start(served) if SERVED in now.steps else ""
        with self.noting(self.head):
            self.lease.note(self.head, SETTLED)
        self.check()
        return trouble

    def keep(self) -> str:
        """See that the group runs what is kept; why it does not."""
        return self._start(list(self.lease.held)) if self.head in self.lease.held else ""

    def end(self, outcome: Outcome) -> None:
        """Decide and end on all members, the head last. Raises `DEPLOY.OPEN`."""
        for node in rollout.workers_first(member.name for member in self.plan.members):
            if node == self.head:
                self.check()
            if node in self.lease.held:
                with self.noting(node):
                    self.lease.decide(node, outcome)
                    self.lease.end(node)
        self.check()

    @contextmanager
    def noting(self, node: str) -> Iterator[None]:
        """Keep an error of the body as the node's own."""
        try:
            yield
        except SparkserveError as error:
            if error.id == "DEPLOY.FENCED":
                raise
            self.errors.setdefault(node, error)

    def check(self) -> None:
        """Raise `DEPLOY.OPEN` when a node could not be brought further."""
        if self.errors:
            raise SparkserveError(
                "DEPLOY.OPEN",
                expected=f"the end of deployment {self.plan.id} on all nodes",
                found="; ".join(f"{node}: {error}" for node, error in self.errors.items()),
                where=self.plan.fleet,
                do="When that is mended, or the node is back: " + command("deploy --resume", self.plan.fleet),
            )

    def _is_back(self, member: Member) -> bool:
        current = self.lease.runner.run(member.name, commands.current()).out.strip()
        return current == (member.base.path if member.base else "")

    def _stop(self, nodes: list[str]) -> None:
        runner = self.lease.doing("stop")
        try:
            rollout.stop(runner, dict.fromkeys(nodes))
        except SparkserveError as error:
            if error.id == "DEPLOY.FENCED":
                raise
            for node in nodes:  # not drained, but ended where it can be
                with self.noting(node):
                    # What was not answered may still come, and would end the group that is started next.
                    self.lease.take(node, self.lease.held[node])
                    check(runner, node, commands.stop_units(rollout.RANK))

    def _start(self, nodes: list[str]) -> str:
        """Start the group; why it does not come up. Raises `DEPLOY.OPEN` when it could not be told to."""
        runner = self.lease.doing("start")
        units = rollout.units(member.name for member in self.plan.members)
        try:
            rollout.start_units(runner, {node: units[node] for node in nodes if node in self.lease.held})
            rollout.start_group(runner, self.head)
            self.healthy()
        except SparkserveError as error:
            if error.id == "DEPLOY.FENCED":
                raise
            if error.id not in ("GROUP.BOOT", "ENGINE.READY"):
                self.errors[error.where] = error
            self.check()
            return str(error)
        return ""


def _back(runner: Runner, member: Member) -> None:
    """Bring one node to what it had before, with the group stopped."""
    node = member.name
    if member.base is None:
        check(runner, node, commands.deactivate(member.target))
        check(runner, node, commands.drop_profile())
        check(runner, node, commands.sync("/nix"))
        return
    path = Path(member.base.path)
    rollout.activate_all(runner, {node: path}, lambda text: None)
    deliver.switch(runner, node, path)


def _not_asked(plan: DeployPlan, node: str, said: Said) -> SparkserveError:
    """The error for a node that was taken out of the fleet's files while its deployment was open."""
    return SparkserveError(
        "FLEET.NAME",
        expected=f"the node {node}, which is part of deployment {plan.id}",
        found=f"a fleet of {', '.join(said)}",
        where=plan.fleet,
        do="Name it in the fleet's files again, until its deployment has ended.",
    )


def _needs_head(plan: DeployPlan, error: SparkserveError) -> SparkserveError:
    return SparkserveError(
        "DEPLOY.HEAD",
        expected=f"the head {plan.head.name}, which knows how deployment {plan.id} was decided",
        found=str(error),
        where=plan.fleet,
        do=f"Bring the head back, then: {command('deploy --resume', plan.fleet)}. Nothing is changed.",
    )
