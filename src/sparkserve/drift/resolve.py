"""What the words A and B of `sparkserve diff` name."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from sparkserve import commands
from sparkserve.drift import revisions, sides
from sparkserve.errors import SparkserveError
from sparkserve.fleet import command
from sparkserve.local import fleets, several
from sparkserve.reach.nodes import Nodes

_NUMBER = 6  # digits of a generation's number at most: seven may be a commit


def resolve(word: str, fleet: str, node: str | None = None) -> sides.Side:
    """The side that `word` names: a host closure's folder, a generation of a node, a commit, or `.`.

    Generations are those of `node` of the fleet `fleet`, its head unless named; on a node, its own.
    Raises `CLI.USAGE` for a word that names nothing, else what reading or evaluating it raises.
    """
    folder = Path(word)
    if _is_file(folder / "plan.json"):
        return sides.of_folder(folder.resolve())
    if word == revisions.HERE:
        return revisions.of_here(fleet)
    if word.isdecimal() and len(word) <= _NUMBER:
        return _generation(int(word), fleet, node)
    if (found := revisions.of_commit(word, fleet)) is not None:
        return found
    raise SparkserveError(
        "CLI.USAGE",
        expected="a host closure's folder, the number of a generation, a commit, or . for this checkout",
        found=word[:200],
        where="sparkserve diff",
        do=f"For those there are: {command('generations', fleet)}, git log. "
        "A host closure has a plan.json in it.",
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a word that is too long for a name
        return False


def _generation(number: int, fleet: str, node: str | None) -> sides.Side:
    here = Path(f"{commands.PROFILE}-{number}-link")
    if node is None and here.is_dir():
        return sides.of_folder(here.resolve())
    found = fleets.find(fleet)
    there = found if isinstance(found, Nodes) else several.Nodes(fleet)  # which says that it is down
    with closing(there.connect()) as runner:
        return sides.of_generation(runner, there.named(node), number)
