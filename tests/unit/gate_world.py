"""A gate against the scripted engine, for the gates of quality."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import scripted

from sparkserve.client.client import Client
from sparkserve.gates import registry
from sparkserve.gates.contract import Context
from sparkserve.gates.evidence import Evidence, Subject

if TYPE_CHECKING:
    from sparkserve.gates.contract import Outcome

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
    return Evidence(
        gate=name,
        passed=outcome.passed,
        ran=True,
        summary=outcome.summary,
        subject=Subject(endpoint="http://127.0.0.1:1", model="scripted"),
        started="2026-11-30T22:00:00+00:00",
        seconds=1.0,
        quick=quick,
        seed=SEED,
        measured=outcome.measured,
        limits=outcome.limits,
        findings=outcome.findings,
        prompts=outcome.prompts,
        details=outcome.details,
    )
