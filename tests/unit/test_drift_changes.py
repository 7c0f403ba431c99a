"""Changes between plans: what was mutated is named, and nothing else is."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from sparkserve.drift import compare, told
from sparkserve.drift.changes import ABSENT, ORDER, Change, changes
from sparkserve.drift.sides import Side

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*/*.json"))
TIMES = 60
Where = tuple[Any, ...]


def plan(file: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(file.read_text())
    return value


def leaves(value: Any, where: Where = ()) -> list[Where]:
    """The places of all scalars."""
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, each in items for leaf in leaves(each, (*where, key))]
    return [where]


def at(value: Any, where: Where) -> Any:
    for key in where:
        value = value[key]
    return value


def named(plan: Any, where: Where) -> tuple[tuple[str, ...], bool]:
    """How a place is to be called, and whether what is there is itself a name, said here once more."""
    path: tuple[str, ...] = ()
    for i, key in enumerate(where):
        around = at(plan, where[:i])
        if isinstance(around, dict):
            path = (*path, key)
        elif where[:2] == ("engine", "args"):
            flags = [word for word in around[: key + 1] if word.startswith("--")]
            return (*path, flags[-1]), around[key].startswith("--")
        elif isinstance(around[0], dict):
            name = next(name for name in ("name", "interface", "rank") if name in around[0])
            path = (*path, str(around[key][name]))
            if where[i + 1 :] == (name,):
                return path, True
        elif isinstance(around[0], str):
            return (*path, around[key]), True
        else:
            return path, False
    return path, False


def other(value: Any, rng: random.Random) -> Any:
    """Another value: of the same kind, or of none."""
    fresh = f"mutant-{rng.randrange(10**9)}"
    match value:
        case bool():
            return not value
        case int():
            return value + rng.randrange(1, 1000)
        case str():
            return rng.choice([fresh, f"{value}{fresh}"])
        case _:
            return fresh


def test_nothing_differs_in_the_same_plan() -> None:
    for file in GOLDEN:
        assert list(changes(plan(file), plan(file))) == []


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_what_is_mutated_is_named_and_nothing_else(file: Path) -> None:
    seed = random.randrange(2**31)  # noqa: S311
    rng = random.Random(seed)  # noqa: S311
    before = plan(file)
    for where in rng.sample(found := leaves(before), min(TIMES, len(found))):
        after = copy.deepcopy(before)
        was = at(before, where)
        new = other(was, rng)
        path, is_name = named(before, where)
        if is_name and path[:2] == ("engine", "args"):
            new = f"--{new}"
        at(after, where[:-1])[where[-1]] = new
        expected = {path, (*path[:-1], str(new))} if is_name else {path}
        assert {each.path for each in changes(before, after)} == expected, (seed, where, was, new)


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_what_comes_goes_or_moves_is_named_below_its_place(file: Path) -> None:
    seed = random.randrange(2**31)  # noqa: S311
    rng = random.Random(seed)  # noqa: S311
    before = plan(file)
    places = sorted({leaf[:i] for leaf in leaves(before) for i in range(len(leaf))}, key=str)
    for where in rng.sample(places, min(TIMES, len(places))):
        after = copy.deepcopy(before)
        around = at(after, where)
        if not around:
            continue
        match rng.choice(["gone", "new", "moved"]):
            case "gone" if isinstance(around, dict):
                del around[rng.choice(sorted(around))]
            case "gone":
                del around[rng.randrange(len(around))]
            case "new" if isinstance(around, dict):
                around["something"] = rng.choice([None, 7, {}, {"a": [1]}])
            case "new":
                around.insert(rng.randrange(len(around) + 1), rng.choice([around[0], "--x", 7]))
            case "moved" if isinstance(around, list):
                rng.shuffle(around)
        found = list(changes(before, after))
        # Names of elements come instead of their numbers, which is what is tested above.
        top = tuple(key for key in where if isinstance(key, str))
        assert bool(found) == (json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True)), seed
        assert all(tuple(key for key in top if key in each.path) == top for each in found), (seed, where)


def test_an_element_more_is_one_change_and_not_one_of_all_that_follow() -> None:
    before = {"nodes": [{"name": "b", "rank": 0}], "engine": {"args": ["--tp-size", "3", "--x"]}}
    after = {
        "nodes": [{"name": "a", "rank": 0}, {"name": "b", "rank": 0}],
        "engine": {"args": ["--tp-size", "4"]},
    }
    assert list(changes(before, after)) == [
        Change(("nodes", "a"), ABSENT, {"rank": 0}),
        Change(("engine", "args", "--tp-size"), "3", "4"),
        Change(("engine", "args", "--x"), "", ABSENT),
    ]


def test_an_order_alone_is_told() -> None:
    assert list(changes({"gates": ["a", "b"]}, {"gates": ["b", "a"]})) == [
        Change(("gates", ORDER), ["a", "b"], ["b", "a"])
    ]
    # A flag that comes twice has one name: no place in the list is right, so all of it is.
    twice = {"engine": {"args": ["--a", "--b", "--a"]}}, {"engine": {"args": ["--a", "--a", "--b"]}}
    assert [each.path for each in changes(*twice)] == [("engine", "args")]


@pytest.mark.parametrize(
    ("before", "after"), [(1, True), (1, 1.0), (None, {}), ([], {}), ("", None), (0, "0")]
)
def test_what_python_or_a_table_may_hold_for_the_same(before: Any, after: Any) -> None:
    assert list(changes({"x": before}, {"x": after})) == [Change(("x",), before, after)]


def side(**nodes: Any) -> Side:
    return Side("s", {name: {"plan": value, "pins": {}} for name, value in nodes.items()})


def test_a_change_of_all_nodes_is_said_once_and_one_of_some_with_their_names() -> None:
    one = side(a={"x": 1, "y": 1}, b={"x": 1, "y": 1}, c={"x": 1, "y": 1})
    two = side(a={"x": 2, "y": 1}, b={"x": 2, "y": 3}, c={"x": 2, "y": 1})
    found = compare.compare(one, two)
    assert [told.sentence(each) for each in found] == ["x: 1 → 2", "y: 1 → 3 (b)"]
    fewer = compare.compare(one, side(a={"x": 1, "y": 1}, b={"x": 2, "y": 1}))
    assert [told.sentence(each) for each in fewer] == ["c: gone", "x: 1 → 2 (b)"]


def test_two_closures_are_compared_whoever_they_are_of() -> None:
    found = compare.compare(side(a={"x": 1}), side(b={"x": 2}))
    assert [told.sentence(each) for each in found] == ["x: 1 → 2"]


def test_what_one_side_does_not_have_is_not_compared_and_said() -> None:
    bare = Side("s", {"a": {"plan": {"x": 1}}})
    assert compare.compare(bare, side(a={"x": 1})) == []
    assert compare.unknown(bare, side(a={"x": 1})) == ["closure", "pins"]


def words(before: Any, after: Any, *path: str) -> list[str]:
    """How a change of a plan at `path` is told."""
    for key in reversed(path):
        before, after = {key: before}, {key: after}
    found = compare.compare(side(a=before), side(a=after))
    return [line.strip() for line in told.lines(found)]


def test_words_of_each_kind_of_change() -> None:
    settings = {"settings": {"max_kib": 64, "timeout_s": 30}}
    adapter = {"name": "oneshot", **settings}
    assert words(None, {"floor_mib": 1}, "guard") == ["guard", "guard: none → floor_mib 1"]
    assert words([], [adapter], "adapters") == [
        "adapters",
        "oneshot: new, settings max_kib 64, settings timeout_s 30",
    ]
    more = {"name": "oneshot", "settings": {"max_kib": 128, "timeout_s": 30}}
    assert words([adapter], [more], "adapters") == ["adapters", "oneshot settings max_kib: 64 → 128"]
    assert words({}, {"vm.swappiness": "1"}, "host", "sysctls") == ["sysctls", "vm.swappiness: new, 1"]
    assert words(["a"], ["b"], "gates") == ["gates", "a: gone", "b: new"]
    assert words("[U]\nA=1\n", "[U]\nA=2\nB=3\n", "host", "units", "x.service") == [
        *("units", "x.service: 1 line gone, 2 lines new", "- A=1", "+ A=2", "+ B=3")
    ]
    # A last line without an end is another text.
    assert (
        words("A=1\nB\n", "A=1\nB", "host", "units", "x.service")[1] == "x.service: 1 line gone, 1 line new"
    )
    digests = words(f"sha256:{'a' * 64}", f"sha256:{'b' * 64}", "x")
    assert digests[1] == f"x: sha256:{'a' * 12}… → sha256:{'b' * 12}…"


def test_a_summary_counts_and_names() -> None:
    found = compare.compare(side(a={"gates": list("abcdef")}), side(a={"gates": []}))
    assert told.summary(found) == [("gates", "6", "a, b, c, d and 2 more")]
