"""The memory of a fleet's nodes in tables. Nodes with equal terms are one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.plan import Memory, Plan

GIB = 1 << 30
WHEN = {"start": "from the start", "serve": "while it serves"}
Row = tuple[str, str, str, str, str, str]


class Shared(NamedTuple):
    """Nodes whose memory is planned alike."""

    nodes: tuple[str, ...]
    memory: Memory
    guarded: bool


def collect(plans: Sequence[Plan]) -> list[Shared]:
    """The memory of all nodes, equal ones together, in rank order. Raises `FLEET.OPTION` without any."""
    found: dict[str, Shared] = {}
    for plan in plans:
        if plan.memory is None:
            raise SparkserveError(
                "FLEET.OPTION",
                expected="a model whose shapes are known",
                found=plan.serving.model,
                where=f"serving.model of the fleet {plan.fleet.name}",
                do="Name a fleet of Sparks: ./sparkserve memory explain tp3-triangle.",
            )
        guarded = plan.guard is not None
        key = f"{guarded} {plan.memory.model_dump_json()}"
        nodes = found[key].nodes if key in found else ()
        found[key] = Shared((*nodes, plan.node.name), plan.memory, guarded)
    return list(found.values())


def gib(value: int) -> str:
    """Bytes in GiB with two decimals."""
    return f"{value / GIB:.2f}"


class Left(NamedTuple):
    """What a time leaves of the memory, in bytes."""

    time: str
    sum: int
    left: int
    line: int

    @property
    def above(self) -> int:
        """Bytes between what is left and the line at which the guard kills."""
        return self.left - self.line


def left(memory: Memory) -> tuple[Left, Left]:
    """Until it serves, and at the worst moment of serving."""
    start, serve = memory.start_bytes, memory.serve_bytes
    return (
        Left("until it serves", start, memory.pool_bytes - start, memory.start_line_bytes),
        Left("at its worst", serve, memory.pool_bytes - serve, memory.serve_line_bytes),
    )


def words(left: Left, *, guarded: bool) -> str:
    """What is left, and how far from the guard's line."""
    line = (
        "at which the guard kills"
        if guarded
        else "that a guard would want: guard.enable is false, none kills"
    )
    return f"{gib(left.left)} GiB left, {gib(left.above)} above the {gib(left.line)} {line}"


def rows(shared: Shared) -> list[Row]:
    """A row for each term and each sum: name, GiB, bytes, part of the memory, when, why."""
    memory = shared.memory

    def row(name: str, value: int, when: str, why: str) -> Row:
        return name, gib(value), f"{value:,}", f"{value / memory.pool_bytes:.1%}", when, why

    terms = [row(term.name, term.bytes, WHEN[term.phase], term.why) for term in memory.terms]
    return terms + [
        row("sum", each.sum, each.time, words(each, guarded=shared.guarded)) for each in left(memory)
    ]
