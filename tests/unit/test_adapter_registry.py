"""What adapters declare, and what the plugin makes of it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from adapter_ranks import Meet, run

from sparkserve.adapters import fingerprint, plugin, registry, report
from sparkserve.adapters.agree import agree, difference
from sparkserve.adapters.contract import Failure, Refused

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.adapters.contract import Event

DECLARATION = """
title = "t"
description = "d"
exactness = "bit-identical"
memory = "none"
effect = "none"
upstream = "none"
conflicts = {conflicts}
[hooks]
go = "{target}"
[settings.depth]
default = 2
min = 1
max = 4
description = "d"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package with the adapters `one-a` and `two`."""
    for name, conflicts, target in (("one_a", '["two"]', "json.dumps"), ("two", "[]", "json.loads")):
        folder = tmp_path / "fakes" / name
        folder.mkdir(parents=True)
        (folder / "adapter.toml").write_text(DECLARATION.format(conflicts=conflicts, target=target))
    (tmp_path / "fakes/__init__.py").touch()
    (tmp_path / "fakes/one_a/__init__.py").write_text("class Adapter: ...")
    (tmp_path / "fakes/two/__init__.py").write_text("raise RuntimeError('broken')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "fakes", raising=False)
    return __import__("fakes")


def test_ours_are_in_form_and_have_their_methods() -> None:
    known = registry.declarations()
    assert known
    for name, each in known.items():
        adapter = registry.code(name)(each.complete({}))
        assert each.hooks
        assert all(callable(getattr(adapter, method)) for method in each.hooks)


def test_ours_are_recorded_and_nothing_else_is() -> None:
    assert set(fingerprint.recorded()) == set(fingerprint.targets(registry.declarations()))


def test_a_folder_is_an_adapter(package: Any) -> None:
    known = registry.declarations(package)
    assert list(known) == ["one-a", "two"]
    assert registry.code("one-a", package).__name__ == "Adapter"
    with pytest.raises(RuntimeError, match="broken"):
        registry.code("two", package)


def test_conflicts_are_declared_by_one_of_two_or_follow_from_a_target(package: Any) -> None:
    known = registry.declarations(package)
    assert registry.conflicts(["one-a", "two"], known) == [("one-a", "two")]
    assert registry.conflicts(["two", "one-a"], known) == [("two", "one-a")]
    assert registry.conflicts(["two"], known) == []
    same = dict.fromkeys(("a", "b"), known["two"])
    assert registry.conflicts(["a", "b"], same) == [("a", "b")]


def test_unknown_exactness_is_no_declaration(package: Any, tmp_path: Path) -> None:
    file = tmp_path / "fakes/two/adapter.toml"
    file.write_text(file.read_text().replace("bit-identical", "close enough"))
    with pytest.raises(ValueError, match="exactness"):
        registry.declarations(package)


def test_settings_are_completed_and_checked(package: Any) -> None:
    one = registry.declarations(package)["one-a"]
    assert one.complete({}) == {"depth": 2}
    assert one.complete({"depth": 4}) == {"depth": 4}
    for wrong in ({"depth": 5}, {"depth": 0}, {"depth": "2"}, {"depth": True}, {"dept": 2}):
        with pytest.raises(Refused) as caught:
            one.complete(wrong)
        assert caught.value.adapter == "one-a"


def test_fingerprint_is_of_the_source_and_needs_a_target() -> None:
    assert fingerprint.of("json.dumps") != fingerprint.of("json.loads")
    for wrong in ("json.nothing", "no_such_module.x", "json.scanner.c_make_scanner"):
        with pytest.raises((ImportError, AttributeError, ValueError, TypeError, OSError)):
            fingerprint.of(wrong)


def test_difference_is_named_with_its_ranks() -> None:
    same = {"a": {"settings": {"x": 1}, "fingerprint": "f"}}
    assert difference({0: same, 1: same}) is None
    other = {"a": {"settings": {"x": 2}, "fingerprint": "f"}}
    assert difference({0: same, 1: other, 2: same}) == "a.settings.x is 1 on ranks 0, 2, 2 on rank 1"
    assert difference({0: same, 1: {}}) == 'a.fingerprint is "f" on rank 0, nothing on rank 1'


def test_ranks_agree_or_all_refuse() -> None:
    meet = Meet()
    for each in run(lambda rank: agree(rank, 3, {"a": {}}, meet, timeout_s=5)):
        each.result()
    other = Meet()
    ran = run(lambda rank: agree(rank, 3, {"a": {"settings": {"x": rank == 2}}}, other, timeout_s=5))
    assert all("a.settings.x" in str(each.exception()) for each in ran)


def test_absent_rank_is_named() -> None:
    with pytest.raises(Refused, match="no adapters from ranks 1, 2 in"):
        agree(0, 3, {}, Meet(), timeout_s=0.1)


class _Ended(BaseException):
    pass


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `report.end` was called with, in place of the end of this process."""
    said: list[dict[str, Any]] = []

    def end(event: Event, **fields: Any) -> None:
        said.append({"event": event, **fields})
        raise _Ended

    monkeypatch.setattr(report, "end", end)
    return said


def test_plugin_does_nothing_without_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plugin.VARIABLE, raising=False)
    plugin.install()


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "{}",
        json.dumps({"schema": "sparkserve.adapters/2"}),
        json.dumps({"schema": plugin.SCHEMA, "rank": 0, "size": 3, "adapters": [{}], "links": []}),
        json.dumps({"schema": plugin.SCHEMA, "rank": 0, "size": 3, "adapters": [], "links": [{"peer": 1}]}),
    ],
)
def test_unreadable_adapters_refuse(
    text: str, ended: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(plugin.VARIABLE, text)
    with pytest.raises(_Ended):
        plugin.install()
    assert ended[0]["event"] == "refused"


def test_without_sglang_the_target_is_named(
    ended: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    value = {"schema": plugin.SCHEMA, "rank": 1, "size": 3, "adapters": [], "links": []}
    monkeypatch.setenv(plugin.VARIABLE, json.dumps(value))
    with pytest.raises(_Ended):
        plugin.install()
    assert ended[0]["rank"] == 1
    assert fingerprint.PLUGIN[0] in ended[0]["reason"]


def test_names_are_checked(package: Any) -> None:
    known = registry.declarations(package)
    plugin._check_names(["two"], known)
    with pytest.raises(Refused, match="no such adapter"):
        plugin._check_names(["three"], known)
    with pytest.raises(Refused, match="it excludes two"):
        plugin._check_names(["one-a", "two"], known)


def test_a_hook_that_raises_ends_the_process(ended: list[dict[str, Any]]) -> None:
    def fails(original: Any) -> None:
        raise Failure("rank 2: gone", peers=[2])

    with pytest.raises(_Ended):
        plugin._guarded(0, "a", fails)(None)
    expected = {"event": "failed", "rank": 0, "adapter": "a", "reason": "rank 2: gone", "peers": [2]}
    assert ended == [expected]
    with pytest.raises(_Ended):
        plugin._guarded(0, "a", lambda original: 1 / 0)(None)
    assert "ZeroDivisionError" in ended[1]["reason"]
    assert plugin._guarded(0, "a", lambda original, x: x + 1)(None, 1) == 2
