"""What a command line names: a bundle and a plan. Others wrote them, so nothing is taken for granted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkserve import given
from sparkserve.doctor.facts import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

_PARTS = {"why": str, "link": str, "text": str, "mode": str, "size": int}
_PLAN = "sparkserve.plan/"


class Usage(Exception):  # noqa: N818 - click has an exception of that name too
    """The command line asks for something that is not there."""


def read(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises `Usage`."""
    try:
        value = given.read_json(path)
    except OSError as error:
        raise Usage(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise Usage(f"{path} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Usage(f"{path} holds no JSON object")
    return value


def plan(path: Path) -> dict[str, Any]:
    """The plan of one node. Raises `Usage`: with another object no question would arise."""
    value = read(path)
    if not str(value.get("schema")).startswith(_PLAN):
        raise Usage(f"{path} is no plan of one node: ./sparkserve fleet plan FLEET --node NAME prints one")
    return value


def bundle(path: Path) -> dict[str, Any]:
    """What `doctor collect` wrote, or the folder with it as facts.json. Raises `Usage`."""
    file = path / "facts.json" if path.is_dir() else path
    value = read(file)
    if value.get("schema") != SCHEMA:
        raise Usage(f"{file}: schema {str(value.get('schema'))[:60]!r} and not {SCHEMA}")
    wrong = [
        name for name, good in (("files", _file), ("commands", _command)) if not _all(value.get(name), good)
    ]
    wrong += [name for name, kind in (("plan", dict), ("checkout", str)) if not _is(value.get(name), kind)]
    if wrong:
        raise Usage(f"{file}: {wrong[0]} is not what doctor collect writes")
    return value


def _is(value: Any, kind: type) -> bool:
    return value is None or isinstance(value, kind)


def _all(value: Any, good: Any) -> bool:
    # No path is longer than 4096: taking one of a million slashes apart would have no end.
    return isinstance(value, dict) and all(len(key) <= 4096 and good(each) for key, each in value.items())


def _file(entry: Any) -> bool:
    if entry is None or isinstance(entry, str):
        return True
    return isinstance(entry, dict) and all(
        name in _PARTS and isinstance(each, _PARTS[name]) for name, each in entry.items()
    )


def _command(entry: Any) -> bool:
    if isinstance(entry, str):
        return True
    if not isinstance(entry, dict):
        return False
    return isinstance(entry.get("why"), str) or (
        isinstance(entry.get("code"), int) and isinstance(entry.get("out"), str)
    )
