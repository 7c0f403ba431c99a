"""A gate against the scripted engine, for the gates of quality."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import gate_values
import scripted

from sparkserve.client.client import Client
from sparkserve.gates import registry
from sparkserve.gates.contract import Context

if TYPE_CHECKING:
    from sparkserve.gates.contract import Outcome
    from sparkserve.gates.evidence import Evidence

SEED = 11


def run(name: str, script: scripted.Script, *, quick: bool = True, seed: int = SEED, **given: Any) -> Outcome:
    """The outcome of a gate against one engine."""

    async def ask(endpoint: str) -> Outcome:
        async with Client(endpoint) as client:
            return await registry.load(name).run(Context(client, script.model, quick, seed, **given))

    with scripted.serve(script) as endpoint:
        return asyncio.run(ask(endpoint))


def evidence(name: str, outcome: Outcome, *, quick: bool = True) -> Evidence:
    """What the runner would write down."""
    return gate_values.evidence(
        gate=name,
        summary=outcome.summary,
        quick=quick,
        seed=SEED,
        passed=outcome.passed,
        measured=outcome.measured,
        limits=outcome.limits,
        findings=outcome.findings,
        prompts=outcome.prompts,
        details=outcome.details,
    )
