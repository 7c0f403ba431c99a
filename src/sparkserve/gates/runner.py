"""Runs gates in order against one endpoint; each leaves an evidence file, also when it could not run."""

from __future__ import annotations

import asyncio
import time
import traceback
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.text import Text

from sparkserve.client.client import Client
from sparkserve.gates import compare, files, registry
from sparkserve.gates.contract import LOOK_S, CannotRunError, Context, Outcome
from sparkserve.gates.evidence import Evidence
from sparkserve.metrics import scrape
from sparkserve.terminal import console

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rich.status import Status

    from sparkserve.gates.contract import Gate
    from sparkserve.gates.evidence import Subject
    from sparkserve.plan import Plan

# Of one gate. A million-token needle takes 327 s on four Sparks, and a whole qeval 75 answers.
QUICK_S, WHOLE_S = 600.0, 7200.0


@dataclass(frozen=True)
class Order:
    """What to run: `plan` is that of what runs, None for a foreign endpoint; `against` is by gate.

    `key_file` has the key that requests show.
    """

    subject: Subject
    quick: bool
    seed: int
    plan: Plan | None = None
    against: Mapping[str, Evidence] = field(default_factory=dict)
    key_file: Path | None = None


async def run(names: Sequence[str], order: Order, folder: Path) -> list[tuple[Evidence, Path]]:
    """Run the gates `names`, each to its evidence in `folder`. Raises only what writing raises."""
    found = []
    async with Client(order.subject.endpoint, key_file=order.key_file) as client:
        for name in names:
            with console.status(Text(name)) as status:

                def detail(text: str, name: str = name, status: Status = status) -> None:
                    status.update(Text(f"{name} · {text}"))

                evidence = await _one(name, order, client, detail)
            console.print(Text("\n".join(words(evidence))))  # first: a full disk keeps no evidence
            found.append((evidence, files.save(evidence, folder)))
    return found


def words(evidence: Evidence) -> list[str]:
    """The verdict in a line, and a line for each thing that is wrong."""
    mark = "✓" if evidence.passed else "✗"
    how = "" if evidence.ran else "could not run: "
    return [
        f"{mark} {evidence.gate}: {how}{evidence.summary} ({evidence.seconds:.1f} s)",
        *(f"  {finding}" for finding in evidence.findings),
    ]


async def _one(name: str, order: Order, client: Client, detail: Callable[[str], None]) -> Evidence:
    """The evidence of a gate; `ran` is False whatever kept it from a verdict."""
    started, begin = datetime.now(UTC), time.monotonic()
    old = order.against.get(name)

    def evidence(outcome: Outcome, grown: dict[str, float], *, ran: bool) -> Evidence:
        return Evidence(
            gate=name, passed=outcome.passed, ran=ran, summary=outcome.summary, subject=order.subject,
            started=started.isoformat(timespec="milliseconds"), seconds=round(time.monotonic() - begin, 3),
            quick=order.quick, seed=order.seed, measured=outcome.measured, limits=outcome.limits,
            findings=outcome.findings, prompts=outcome.prompts, counters=grown,
            against=files.digest(old) if old else None, details=outcome.details,
        )  # fmt: skip

    def none(summary: str, details: str | None = None) -> Evidence:
        return evidence(Outcome(False, summary, {}, {}, details=details), {}, ran=False)

    limit = QUICK_S if order.quick else WHOLE_S
    try:
        gate = _gate(name)
        before = await _look(client)
        context = Context(
            client, order.subject.model, order.quick, order.seed, order.plan, old,
            lambda done, total: detail(f"request {done} of {total}"),
        )  # fmt: skip
        async with asyncio.timeout(limit):
            outcome = await gate.run(context)
        # An engine that died of the last request has answered all the same.
        grown = scrape.growth(before, await _look(client))
        return compare.judged(gate, old, evidence(outcome, grown, ran=True))
    except CannotRunError as error:
        return none(str(error))
    except TimeoutError:
        return none(f"no verdict within {limit:.0f} s")
    except Exception as error:  # of a gate, of the engine's counters, of the client: none is a verdict
        return none(f"{type(error).__name__}: {error}", traceback.format_exc())


def _gate(name: str) -> Gate:
    if name not in registry.names():
        raise CannotRunError(f"the plan names it, and this version of sparkserve has no gate {name}")
    return registry.load(name)


async def _look(client: Client) -> dict[str, float]:
    """The engine's counters; none of an endpoint without /metrics. Raises `CannotRunError` for a sick one."""
    try:
        status, body = await client.get("/health", timeout_s=LOOK_S)
        if status != 200:
            said = body[:200].decode(errors="replace")
            raise CannotRunError(f"{client.endpoint}/health says {status}: {said}")
        status, body = await client.get("/metrics", timeout_s=LOOK_S)
    except ConnectionError as error:
        raise CannotRunError(f"nobody answers at {client.endpoint}: {error}") from None
    try:
        found = scrape.read(body.decode()) if status == 200 else {}
    except ValueError:
        raise CannotRunError(f"{client.endpoint}/metrics is not in Prometheus' form: {body[:80]!r}") from None
    return {name: value for name, value in found.items() if "_bucket" not in name}
