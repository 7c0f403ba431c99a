"""The logs of a group: read where they are, on the nodes, and their ends kept here when the nodes go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve import commands
from sparkserve.engine import log
from sparkserve.engine.record import NodeFiles
from sparkserve.errors import SparkserveError
from sparkserve.reach import follow as following
from sparkserve.runner import check, garbled
from sparkserve.transport.deliver import parallel
from sparkserve.transport.rollout import FRONT, RANK

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from sparkserve.commands import Command
    from sparkserve.reach.there import Part
    from sparkserve.runner import Runner

KEPT = 2000  # lines of an engine
KEPT_OF_SUPERVISOR = 20  # after them, so that the end of a kept log says why


def read(
    runner: Runner, nodes: Sequence[str], part: Part, lines: int, *, follow: bool
) -> Generator[tuple[str, str], None, None]:
    """Node and text of the last lines that `part` of each node said; with `follow` of new ones too.

    Raises the first node's error, after the lines of the others.
    """

    def command(place: str) -> Command:
        if part == "engine":
            return commands.boot_log(lines, follow=follow, after=place)
        return commands.journal(FRONT if part == "front" else RANK, lines, follow=follow, after=place)

    if follow:
        yield from following.follow(runner, nodes, command, log.unread)
        return
    found: dict[str, list[str]] = {}

    def work(node: str) -> None:
        found[node] = _lines(runner, node, command(""))

    missing = None
    try:
        parallel(runner, dict.fromkeys(nodes), work)
    except SparkserveError as error:
        missing = error
    for node in nodes:
        yield from ((node, line) for line in found.get(node, ()))
    if missing is not None:
        raise missing


def keep(runner: Runner, fleet: str, nodes: Sequence[str], state: Path) -> None:
    """Write the end of each node's logs into the state folder, where those of a single node are."""

    def work(node: str) -> None:
        files = NodeFiles(state, fleet, node)
        try:
            said = _lines(runner, node, commands.journal(RANK, KEPT_OF_SUPERVISOR))
            text = [*_lines(runner, node, commands.boot_log(KEPT)), *(f"supervisor: {line}" for line in said)]
        except SparkserveError as error:
            text = [f"The log could not be fetched: {error}"]
        files.prepare()
        files.log.write_text("".join(f"{line}\n" for line in text))

    parallel(runner, dict.fromkeys(nodes), work)


def _lines(runner: Runner, node: str, command: Command) -> list[str]:
    said = check(runner, node, command)
    try:
        return [following.entry(line)[1] for line in said.splitlines()]
    except (ValueError, KeyError, TypeError):
        raise garbled(node, command, said) from None
