"""A generation with a fault is deployed, caught and undone, while clients ask."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from sparkserve import api_key
from sparkserve.demo import clients, faults
from sparkserve.demo.planted import planted
from sparkserve.deploy import deployer, history
from sparkserve.engine import chat
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command, plans
from sparkserve.local import fleets
from sparkserve.terminal import console, phase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.plan import Plan

QUESTIONS = ("What is the capital of France?", "Count to ten.", "Why is the sky blue?")
TOKENS = 24
ANSWER_S = 120.0


class Shown(NamedTuple):
    """What became of one fault. `wrong` has what was not as it must be, in words."""

    fault: str
    what: str
    caught: str  # the id of the error that ended the deployment; "" when it was kept
    reason: str
    seconds: float
    requests: dict[str, int]
    wrong: tuple[str, ...]

    def value(self) -> dict[str, Any]:
        """For --json."""
        return {**self._asdict(), "wrong": list(self.wrong)}


class Stage:
    """The fleet of `plan`, the head's, with generation 1 kept on all nodes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.fleet = plan.fleet.name
        self.generations = self._current()

    def show(self, name: str) -> Shown:
        """Deploy generation 2 with the fault `name`. Raises what a deployment raises but `DEPLOY.UNDONE`."""
        fault, serving, wrong = faults.FAULTS[name], self.plan.serving, []
        console.print(f"Fault {name}: {fault.what}.")
        texts, begin = self._texts(), time.monotonic()
        with clients.asking(serving.endpoint, serving.model, serving.key_file) as tally:
            with planted(self.fleet, fault):
                caught, reason = self._deploy()
            if not caught:
                wrong.append("generation 2 was kept")
                deployer.roll_back(self.fleet, self.generations[self.plan.node.name], apply=True, show=_quiet)
        seconds = time.monotonic() - begin
        if (now := self._current()) != self.generations:
            wrong.append(f"the nodes have {now}, and had {self.generations}")
        try:
            if (after := self._texts()) != texts:
                wrong.append(f"it answers {after}, and answered {texts}")
        except SparkserveError as error:
            wrong.append(str(error))
        wrong += [f"a request was lost: {why}" for why in tally.lost]
        said = f"Caught after {seconds:.0f} s: {reason}" if caught else "Not caught."
        console.print(said)
        console.print(f"Requests meanwhile: {tally.words}. {'; '.join(wrong) or 'All is as before.'}")
        requests: dict[str, int] = {end: tally.ends[end] for end in clients.ENDS}
        return Shown(name, fault.what, caught, reason, round(seconds, 1), requests, tuple(wrong))

    def _deploy(self) -> tuple[str, str]:
        """Why the deployment was undone: an error's id, and in words; both empty when it was kept."""
        try:
            deployer.deploy(self.fleet, apply=True, show=_quiet)
        except SparkserveError as error:
            if error.id != "DEPLOY.UNDONE":
                raise
            cause = error.__cause__
            if isinstance(cause, KeyboardInterrupt):
                raise cause from None
            if isinstance(cause, SparkserveError):
                return cause.id, cause.found.partition("\n")[0]
            return error.id, error.found
        return "", ""

    def _current(self) -> dict[str, str | None]:
        """The current closure of each node, none of which has an open deployment."""
        found = deployer.generations(self.fleet)
        return {
            node: there.base.path if there.base and not there.state.open else None
            for node, there in found.items()
        }

    def _texts(self) -> list[str]:
        """Greedy answers, from an empty prefix cache and in no company: else sums have another order."""
        serving = self.plan.serving
        url, key_file = serving.endpoint, serving.key_file
        try:
            with phase("Ask for greedy answers"):
                headers = api_key.headers(key_file)
                asked = httpx.post(f"{url}/flush_cache", headers=headers, timeout=ANSWER_S, trust_env=False)
                asked.raise_for_status()
                return [
                    chat.complete(
                        url, serving.model, question, max_tokens=TOKENS, timeout_s=ANSWER_S, key_file=key_file
                    ).text
                    for question in QUESTIONS
                ]
        except (chat.ChatError, httpx.HTTPError) as error:
            raise SparkserveError(
                "ENGINE.READY",
                expected="answers",
                found=str(error),
                where=url,
                do=f"To see what does not run: {command('status', self.fleet)}.",
            ) from None


def run(fleet: str, chosen: Iterable[str]) -> list[Shown]:
    """Bring generation 1 up and keep it; then each of the faults `chosen` in turn."""
    plan = plans.load(fleet)[0]
    names = [adapter.name for adapter in plan.adapters]
    if faults.ADAPTER not in names:
        raise SparkserveError(
            "FLEET.OPTION",
            expected=f"a fleet of this machine with the adapter {faults.ADAPTER}: faults are planted in it",
            found=f"the adapters {', '.join(names) or 'none'}",
            where=f"hosts/{fleet}/fleet.nix",
            do="./sparkserve demo rollback --fleet local-triangle",
        )
    console.print("Generation 1: what the files say.")
    fleets.bring_up(fleet)
    for what in ("deploy", "rollback"):  # a plan printed before this is of other generations
        history.forget(history.of(fleet), what)
    try:
        deployer.deploy(fleet, apply=True, show=_quiet)
    except SparkserveError as error:
        if error.id != "DEPLOY.NOTHING":  # it is kept already
            raise
    stage = Stage(plan)
    return [stage.show(name) for name in chosen]


def _quiet(plan: DeployPlan) -> None:
    console.print(
        f"Plan {plan.id}: fleet id {(plan.base_fleet_id or 'nothing')[:12]} to {plan.target_fleet_id[:12]}"
    )
