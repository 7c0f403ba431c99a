"""Copies a host closure to every node at once and makes it each node's current generation.

A power cut after a copy leaves paths that Nix calls valid and whose files are empty, and copying again then
copies nothing (tried on ext4). Hence the order here: held as a GC root, copied, brought onto the disk, every
file read and compared, and only then made the current generation, which is again brought onto the disk.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.errors import SparkserveError
from sparkserve.runner import check, failed, garbled
from sparkserve.terminal import console, phase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from sparkserve.runner import Runner

HOLD = "incoming"
_STORE_PATH = re.compile(r"/nix/store/[0-9a-z]{32}-[0-9A-Za-z+._?=-]+")


@dataclass(frozen=True)
class Generation:
    """One generation of a node's profile: its number, its host closure, and whether it is the current one."""

    number: int
    path: str
    current: bool


def deliver(runner: Runner, closures: Mapping[str, Path], *, there: Sequence[str] = ()) -> None:
    """Bring each node's closure (by node name) into its store, whole and on its disk; nodes in parallel.

    To the nodes `there` nothing is sent: they have it, and perhaps we have not.
    Nothing on the nodes changes but their stores. Raises the first node's error, in the order of `closures`:
    `NODE.UNREACHABLE`, `NODE.COMMAND`, or `NODE.STORE` when a closure stays damaged.
    """
    said: dict[str, str] = {}
    with phase(f"Copy the closure to {', '.join(closures)}") as detail:

        def work(node: str) -> None:
            def say(text: str) -> None:
                said[node] = text
                detail(", ".join(f"{name}: {said[name]}" for name in closures if name in said))

            _deliver(runner, node, closures[node], say, send=node not in there)
            say("verified")

        parallel(runner, closures, work)


def parallel(runner: Runner, nodes: Mapping[str, object], work: Callable[[str], object]) -> None:
    """Call `work` with every node at once; raise the first error in order, after printing the others."""
    with ThreadPoolExecutor(max(1, len(nodes))) as pool:
        jobs = {node: pool.submit(work, node) for node in nodes}
        try:
            errors = [error for job in jobs.values() if (error := job.exception()) is not None]
        except BaseException:
            runner.close()  # Ctrl-C: end the commands, else leaving the pool waits for them
            raise
    for error in errors[1:]:
        console.print(str(error), markup=False)
    if errors:
        raise errors[0]


def switch(runner: Runner, node: str, path: Path) -> None:
    """Make `path` the current generation of `node`'s profile. Raises as `run` of the runner."""
    check(runner, node, commands.make_current(str(path), HOLD))


def generations(runner: Runner, node: str) -> list[Generation]:
    """The generations of `node`'s profile by number; empty when it has never had one."""
    said = check(runner, node, commands.generations())
    try:
        lines = [line.split(" ", 1) for line in said.splitlines()]
        current = {number for word, number in lines if word == "current"}
        found = [Generation(int(word), path, word in current) for word, path in lines if word != "current"]
    except ValueError:
        raise garbled(node, commands.generations(), said) from None
    return sorted(found, key=lambda generation: generation.number)


def _deliver(runner: Runner, node: str, path: Path, say: Callable[[str], None], *, send: bool) -> None:
    check(runner, node, commands.hold(HOLD, str(path)))
    say("copying")
    copied = 0

    def line(text: str) -> None:
        nonlocal copied
        if text.startswith("copying path"):
            copied += 1
            say(f"copying path {copied}")

    if send:
        runner.send(node, path, line)
    check(runner, node, commands.sync("/nix/store"))
    # What an earlier closure had too is read once for each time that the power comes on.
    if paths := check(runner, node, commands.unverified(str(path))).split():
        say("verifying")
        _verify(runner, node, paths, say)
        check(runner, node, commands.note_verified(*paths))


def _verify(runner: Runner, node: str, paths: Sequence[str], say: Callable[[str], None]) -> None:
    """Read all contents of `paths` on the node, send again what is damaged, read again."""
    damaged = _damaged(runner, node, paths)
    for number, each in enumerate(damaged, 1):
        say(f"repairing path {number} of {len(damaged)}")
        check(runner, node, commands.restore(each), feed=["nix-store", "--dump", each])
    if damaged and (still := _damaged(runner, node, paths)):
        raise SparkserveError(
            "NODE.STORE",
            expected="the copied closure, byte for byte",
            found=f"{len(still)} damaged paths after a repair, the first: {still[0]}",
            where=node,
            do="Its disk is failing, or the copy here is damaged: run nix store verify on that path here.",
        )


def _damaged(runner: Runner, node: str, paths: Sequence[str]) -> list[str]:
    """Those of `paths` whose contents are not what the node's database says."""
    command = commands.verify(*paths)
    result = runner.run(node, command)
    if result.code == 0:
        return []
    # Also an error about a file: what is missing altogether is found by reading it.
    told = [line for line in result.err.splitlines() if "was modified" in line or "error:" in line]
    found = sorted({match[0] for line in told for match in _STORE_PATH.finditer(line)})
    if not found:
        raise failed(node, command, f"exit code {result.code}: {result.err.strip()[-300:] or 'no output'}")
    return found
