"""The commands of `sparkserve.deploy.member` on nodes, over a runner.

`program` is the bin/sparkserve that runs there: the target's, which a node holds while a deployment is open.
Each raises what the node says, by its id, and as `run` of the runner. When an answer is lost
(`NODE.UNREACHABLE`, `NODE.COMMAND`) the command may or may not have been done, or be done later: look, or
take, which makes a late one refused.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sparkserve import commands
from sparkserve.deploy.state import State
from sparkserve.errors import EXIT_CODES, SparkserveError
from sparkserve.runner import failed

if TYPE_CHECKING:
    from sparkserve.deploy.plan import DeployPlan
    from sparkserve.deploy.state import Deployment, Outcome
    from sparkserve.runner import Result, Runner


def deployer() -> str:
    """Who this process is for the nodes: no two have the same."""
    user = os.environ.get("SUDO_USER") or os.environ.get("USER") or f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()} (process {os.getpid()}, {secrets.token_hex(4)})"


def look(runner: Runner, node: str, program: str) -> State:
    """What the node knows."""
    return _call(runner, node, program, "look")


def begin(runner: Runner, node: str, program: str, plan: DeployPlan, deployer: str) -> State:
    """Lease the node for `plan`; `open` of the result has the epoch for what follows."""
    return _call(runner, node, program, "begin", plan.model_dump_json(), deployer)


def take(runner: Runner, node: str, program: str, now: Deployment, deployer: str) -> State:
    """Go on with the open deployment `now` as `look` has shown it; the result has the new epoch."""
    return _call(runner, node, program, "take", now.id, str(now.epoch), deployer)


def note(runner: Runner, node: str, program: str, now: Deployment, *steps: str) -> State:
    """Write steps down on the node."""
    return _call(runner, node, program, "note", now.id, str(now.epoch), *steps)


def decide(runner: Runner, node: str, program: str, now: Deployment, outcome: Outcome) -> State:
    """Write down how the deployment ends. When its answer is lost, `take` before the other outcome."""
    return _call(runner, node, program, "decide", now.id, str(now.epoch), outcome)


def end(runner: Runner, node: str, program: str, now: Deployment) -> State:
    """Give the lease back, as it was decided."""
    return _call(runner, node, program, "end", now.id, str(now.epoch))


def _call(runner: Runner, node: str, program: str, verb: str, *words: str) -> State:
    command = commands.deploy_member(program, verb, *words)
    result = runner.run(node, command)
    if result.code == 0:
        with suppress(ValidationError):
            return State.model_validate_json(result.out)
        raise failed(node, command, f"an answer that is none: {result.out[-300:]}")
    if (error := told(result)) is not None:
        raise error
    raise failed(node, command, f"exit code {result.code}: {(result.err or result.out).strip()[-300:]}")


def told(result: Result) -> SparkserveError | None:
    """The error that a command printed as JSON and ended with; None when it did not."""
    with suppress(ValueError, KeyError, TypeError):
        said = json.loads(result.out)
        if EXIT_CODES[said["error"]] == result.code:
            texts = {name: said[name] for name in ("expected", "found", "where", "do")}
            return SparkserveError(said["error"], **texts)
    return None
