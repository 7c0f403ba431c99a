"""Frees the nodes' disks of generations that nobody goes back to, and of what nothing refers to then.

Which generations go is decided here; which store paths, by Nix on the node, from its GC roots. So a mistake
here cannot delete what runs: the current generation, the last kept one and every baseline are roots there.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from sparkserve import commands, nix
from sparkserve.commands import Safety
from sparkserve.deploy import baseline, effect, history, survey, way
from sparkserve.runner import check
from sparkserve.terminal import phase
from sparkserve.transport.deliver import parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sparkserve.deploy.baseline import Baseline
    from sparkserve.deploy.survey import Found
    from sparkserve.nix import Registered
    from sparkserve.runner import Runner
    from sparkserve.transport.deliver import Generation


class Garbage(NamedTuple):
    """Of one node: `generations` to go, and the store paths that nothing refers to then, with their bytes."""

    generations: tuple[Generation, ...]
    paths: dict[str, int]

    @property
    def bytes(self) -> int:
        """Of all paths, as Nix counts them: the files' contents."""
        return sum(self.paths.values())


def collect(fleet: str, *, apply: bool, show: Callable[[Mapping[str, Garbage]], None]) -> dict[str, Garbage]:
    """Find what is garbage on the nodes of `fleet`, `show` it, and delete it with `apply`; what is gone then.

    Raises as `find` and, in the middle of it, as `run` of the runner: the same command goes on.
    """
    with history.changing(fleet):
        to = way.to(fleet)
        with closing(to.connect(Safety.CHANGES_HOSTS if apply else Safety.READS_HOSTS)) as runner:
            with phase("Ask the nodes"):
                found = find(runner, fleet, to.nodes, baseline.known())
            show(found)
            if not apply:
                return found
            with phase(f"Collect garbage on {', '.join(found)}"):
                return delete(runner, found)


def find(
    runner: Runner, fleet: str, nodes: Sequence[str], baselines: Iterable[Baseline]
) -> dict[str, Garbage]:
    """What is garbage on each of `nodes`, the head first. Changes nothing.

    Raises `DEPLOY.LEASE` while a deployment is open and `DEPLOY.BASE` where the units are not of what is
    current: what runs must be known.
    """
    found = survey.unleased(runner, nodes)
    effect.check(runner, fleet, found)
    wanted = _wanted(found) | {each.fleet_id for each in baselines if each.fleet == fleet}
    garbage: dict[str, Garbage] = {}

    def look(node: str) -> None:
        roots = _roots(check(runner, node, commands.gc_roots()))
        held = {path for link, path in roots if link.startswith(f"{commands.HOLDS}/")}
        gone = tuple(_gone(node, found[node], wanted, held))
        dropped = {f"{commands.PROFILE}-{each.number}-link" for each in gone}
        known = _registered(runner, node)
        alive = _reached(known, [path for link, path in roots if link not in dropped])
        garbage[node] = Garbage(gone, {path: each.size for path, each in known.items() if path not in alive})

    parallel(runner, found, look)
    return {node: garbage[node] for node in nodes}


def delete(runner: Runner, found: Mapping[str, Garbage]) -> dict[str, Garbage]:
    """Delete on all nodes at once what `find` has found; what is gone then."""
    gone: dict[str, Garbage] = {}

    def work(node: str) -> None:
        there = found[node]
        if there.generations:
            check(
                runner, node, commands.delete_generations(*(str(each.number) for each in there.generations))
            )
            # A link that a power cut brings back would lead to nothing.
            check(runner, node, commands.sync("/nix"))
        check(runner, node, commands.collect_garbage())
        left = _registered(runner, node)
        gone[node] = Garbage(
            there.generations, {path: size for path, size in there.paths.items() if path not in left}
        )

    parallel(runner, found, work)
    return {node: gone[node] for node in found}


def _wanted(found: Mapping[str, Found]) -> set[str]:
    """Fleet ids that some node runs, or would be rolled back to: all nodes keep them.

    What was kept last is the one or the other.
    """
    ids = set()
    for there in found.values():
        current = there.base.path if there.base else None
        kept = [each.path for each in there.state.past if each.outcome == "keep" and each.path]
        back = [path for path in kept if path in there.described and path != current]
        for path in (current, *back[-1:]):
            if path and (described := there.described[path]) is not None:
                ids.add(described.fleet_id)
    return ids


def _gone(node: str, there: Found, wanted: set[str], held: set[str]) -> Iterator[Generation]:
    """The generations of a node that nobody wants. What is not ours is left alone."""
    for each in there.generations:
        described = there.described[each.path]
        if described is None or described.node != node:
            continue
        if described.fleet_id not in wanted and each.path not in held:
            yield each


def _roots(text: str) -> list[tuple[str, str]]:
    """Links and the store paths that they keep."""
    return [(link, path) for line in text.splitlines() for link, _, path in [line.partition(" -> ")] if path]


def _registered(runner: Runner, node: str) -> dict[str, Registered]:
    """All paths of a node's store."""
    return nix.parse_db(check(runner, node, commands.registered()))


def _reached(known: Mapping[str, Registered], roots: Iterable[str]) -> set[str]:
    """`roots`, and all that they refer to."""
    found: set[str] = set()
    todo = [path for path in roots if path in known]
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += known[path].references
    return found
