"""The options of the bench's modes, and what becomes of them."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from sparkserve.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sparkserve.bench.capacity import Capacity
    from sparkserve.bench.session import Place
    from sparkserve.bench.settings import Settings


class Listed(click.ParamType[tuple[str, ...]]):
    """Names with commas between, all of `known`."""

    name = "name,..."

    def __init__(self, what: str, known: Callable[[], Sequence[str]]) -> None:
        self._what = what
        self._known = known

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The names, each once."""
        if isinstance(value, tuple):
            return value
        found = tuple(dict.fromkeys(part.strip() for part in str(value).split(",") if part.strip()))
        known = self._known()
        for name in found:
            if name not in known:
                close = difflib.get_close_matches(name, known)
                hint = f"; did you mean {close[0]}?" if close else f": there are {', '.join(known)}"
                self.fail(f"there is no {self._what} {name!r}{hint}", param, ctx)
        if not found:
            self.fail(f"no {self._what} is named", param, ctx)
        return found

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that may come after the last comma."""
        begun, comma, last = incomplete.rpartition(",")
        left = [name for name in self._known() if name.startswith(last) and name not in begun.split(",")]
        return [CompletionItem(f"{begun}{comma}{name}") for name in left]


class Numbers(click.ParamType[tuple[int, ...]]):
    """Positive numbers with commas between, up to `most`."""

    name = "n,..."

    def __init__(self, most: int) -> None:
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The numbers in rising order, each once."""
        if isinstance(value, tuple):
            return value
        try:
            found = {int(part) for part in str(value).split(",")}
        except ValueError:
            self.fail(f"{value!r} is not numbers with commas between, such as 1,2,4", param, ctx)
        for number in sorted(found):
            if not 1 <= number <= self._most:
                self.fail(f"{number} is not between 1 and {self._most}", param, ctx)
        return tuple(sorted(found))


def _cases() -> list[str]:
    from sparkserve.bench.workloads.cases import CASES

    return list(CASES)


def _kinds() -> list[str]:
    from sparkserve.bench.workloads.texts import KINDS

    return list(KINDS)


# LARGEST_WAVE of workloads/cases.py, whose import every --help would pay for.
STREAMS = Numbers(32)
SIZES = Numbers(4_000_000)

cases = click.option("--cases", type=Listed("case", _cases), help="Kinds of text, such as prose,code.")
streams = click.option("--streams", type=STREAMS, help="Requests at once, such as 1,2,4.")
tokens = click.option("--tokens", type=click.IntRange(2, 65536), help="Length of each answer.")
sizes = click.option("--sizes", type=SIZES, help="Tokens of the long prompts, such as 2048,32768.")
texts = click.option(
    "--texts",
    type=Listed("kind of text", _kinds),
    help="real, novel (drawn words), filler (a pattern, which overstates).",
)

_COMMON = (
    options.fleet,
    options.endpoint,
    options.model,
    options.api_key_file,
    click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Draws prompts and their order. [0]"),
    click.option(
        "--boots",
        type=click.IntRange(1, 100),
        default=1,
        show_default=True,
        help="Starts of the engine to measure. Two differ by about 3 %: compare takes several.",
    ),
    click.option(
        "--precision",
        type=click.FloatRange(0.01, 100),
        callback=options.number,
        help="Percent, half of an interval. [2]",
    ),
    click.option("--min", "least", type=click.IntRange(1, 1000), help="Samples of a point at least. [5]"),
    click.option("--max", "most", type=click.IntRange(1, 1000), help="Samples of a point at most. [12]"),
    click.option(
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The result's file. [.sparkserve/bench/TIME-MODE.json]",
    ),
    click.option(
        "--resume",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Go on with this result, with its settings.",
    ),
    click.option("--quick", is_flag=True, help="Few short samples: does it work, and about how fast."),
    options.as_json,
)


def common(function: Callable[..., object]) -> Callable[..., object]:
    """The options that all modes have."""
    for option in reversed(_COMMON):
        function = option(function)
    return function


def place(fleet: str, endpoint: str | None, model: str | None, key_file: Path | None, boots: int) -> Place:
    """Where to measure that many boots, asking with a key of `key_file`. Raises `click.UsageError`."""
    from sparkserve.bench import places

    named = options.foreign(endpoint, model)
    if named is None:
        return places.Fleet(fleet, key_file)
    if boots > 1:
        raise click.UsageError(places.ONE_BOOT)
    return places.Endpoint(*named, key_file)


def fitted(settings: Settings, given: set[str], takes: Capacity) -> Settings:
    """`settings` within what the engine takes: defaults are cut to it, what was `given` is refused.

    Raises `click.UsageError`.
    """
    from sparkserve.bench.capacity import ROOM

    if takes.running is not None:
        streams = _within(settings.streams, takes.running, "streams", given, "requests at once")
        settings = settings.model_copy(update={"streams": streams})
    if takes.tokens is None:
        return settings
    most = takes.tokens
    if "sizes" not in given and takes.pool is not None:
        # So many that all have room at once. Who names sizes may want to see what happens without.
        together = {"admission": takes.pool // settings.streams[-1], "mixed": takes.pool // 2}
        most = min(most, together.get(settings.mode, most))
    most = max(most - ROOM - settings.tokens, 1)
    sizes = _within(settings.sizes, most, "sizes", given, "tokens of a prompt")
    return settings.model_copy(update={"sizes": sizes})


def _within(values: tuple[int, ...], most: int, name: str, given: set[str], what: str) -> tuple[int, ...]:
    kept = tuple(value for value in values if value <= most)
    if name in given and kept != values:
        raise click.UsageError(f"--{name} {values[-1]}: the engine takes {most} {what}")
    return kept or (most,)
