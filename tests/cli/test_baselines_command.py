"""`promote`, `baselines` and `generations gc`, as people and scripts call them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.shell_completion import BashComplete

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from baseline_world import FLEET, ID, NODES, OTHER, World, boot, path

from sparkserve.cli import deployed
from sparkserve.cli.commands import baselines
from sparkserve.cli.main import main
from sparkserve.commands import Safety
from sparkserve.deploy import deployer, garbage, survey, way
from sparkserve.deploy.garbage import Garbage
from sparkserve.transport.deliver import Generation

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def called(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(list(arguments))
        assert isinstance(caught.value.code, int)
        return (caught.value.code, *capsys.readouterr())

    return called


class Way:
    nodes = NODES

    def __init__(self, world: World) -> None:
        self.world = world

    def connect(self, allow: Safety) -> Any:
        runner = self.world.runner()
        runner.allow = allow
        return runner


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    found = World(tmp_path)
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr(way, "to", lambda fleet: Way(found))
    monkeypatch.setattr(deployer, "generations", lambda fleet: survey.survey(found.runner(), NODES))
    return found


def promotes(run: Run, world: World, name: str, *more: str) -> tuple[int, str, str]:
    words = ["promote", name, "--fleet", FLEET, "--why", "it is faster", "--evidence", str(world.evidence)]
    return run(*words, *more)


def test_promotes_lists_and_shows(world: World, tmp_path: Path, run: Run) -> None:
    files = [str(world.bench(boot(1))), str(world.bench(boot(2), name="b.json"))]
    code, out, err = promotes(run, world, "r7", "--bench", files[0], "--bench", files[1])
    assert (code, out) == (0, "")
    (file,) = (tmp_path / "manifests/baselines").iterdir()
    assert f"{FLEET} is to run the fleet id {ID[:12]}. Commit {file}." in err
    assert "! Quick evidence" in err
    code, out, _ = promotes(run, world, "r8", "--json")
    assert (code, json.loads(out)["previous"]) == (0, "r7")
    assert "No bench result: nothing says how fast it was." in json.loads(out)["warnings"]

    assert [line.split()[0] for line in run("baselines", "list")[1].splitlines()] == ["name", "r7", "r8"]
    assert [each["name"] for each in json.loads(run("baselines", "list", "--json")[1])] == ["r7", "r8"]
    code, out, err = run("baselines", "show", "r7")
    assert (code, "it is faster" in err, ID in err) == (0, True, True)
    for said in (path("spark-2"), "580.95.05", "smoke", "prose-c1", "step_ms"):
        assert said in out
    assert json.loads(run("baselines", "show", "r7", "--json")[1]) == json.loads(file.read_text())


def test_a_taken_name_and_an_unknown_one(world: World, run: Run) -> None:
    assert "there are: none" in run("baselines", "show", "r9")[2]
    assert promotes(run, world, "r7")[0] == 0
    code, out, _ = promotes(run, world, "r7", "--json")
    assert (code, json.loads(out)["error"]) == (102, "BASELINE.NAME")
    code, _, err = run("baselines", "show", "r9")
    assert (code, "there are: r7" in err) == (2, True)


def test_what_is_refused_says_why(world: World, tmp_path: Path, run: Run) -> None:
    world.nodes["spark-1"].ids["b"] = OTHER
    code, out, err = promotes(run, world, "r7")
    assert (code, out) == (97, "")
    assert f"spark-1: {OTHER[:12]}, kept" in err
    assert not (tmp_path / "manifests").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["promote", "r7"], "--why"),
        (["promote", "r7", "--why", " "], "a reason in words"),
        (["promote", "--why", "x"], "NAME"),
        (["promote", "r7", "--why", "x", "--bench", "none.json"], "none.json"),
        (["promote", "r7", "--why", "x", "--evidence", "none"], "none"),
    ],
)
def test_wrong_usage(world: World, run: Run, words: list[str], said: str) -> None:
    code, _, err = run(*words)
    assert (code, said in err) == (2, True)


def test_a_broken_file_is_named(world: World, tmp_path: Path, run: Run) -> None:
    assert promotes(run, world, "r7")[0] == 0
    file = tmp_path / "manifests/baselines/2026-01-01-x.json"
    file.write_text("{}")
    for words in (["baselines", "list"], ["generations"], ["promote", "r8", "--why", "x", "--fleet", FLEET]):
        code, _, err = run(*words)
        assert (code, str(file) in err) == (103, True)


def test_generations_say_what_is_desired(world: World, run: Run) -> None:
    assert "nothing is desired" in run("generations", "--fleet", FLEET)[2]
    promotes(run, world, "r7")
    code, out, err = run("generations", "--fleet", FLEET)
    assert (code, "all nodes have it" in err) == (0, True)
    assert sum("2 current" in line and "r7 desired" in line for line in out.splitlines()) == len(NODES)
    rows = json.loads(run("generations", "--fleet", FLEET, "--json")[1])
    assert [(row["generation"], row["baseline"], row["desired"]) for row in rows[:2]] == [
        (1, None, False),
        (2, "r7", True),
    ]


def test_rolls_back_to_a_name(world: World, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    asked: list[str | None] = []

    def roll_back(fleet: str, target: str | None, **_: Any) -> None:
        asked.append(target)

    monkeypatch.setattr(deployer, "roll_back", roll_back)
    monkeypatch.setattr(deployed, "done", lambda *_, **__: None)
    promotes(run, world, "r7")
    for more in (["--to", "r7"], ["--to", "2"], []):
        assert run("rollback", "--fleet", FLEET, *more)[0] == 0
    assert asked == [path("spark-0"), "2", None]


def test_garbage_is_told_before_it_goes(world: World, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    there = Garbage((Generation(1, path("spark-0", "a"), False),), {"/nix/store/x": 2_500_000})
    deleted: list[Any] = []
    monkeypatch.setattr(garbage, "find", lambda *_: {"spark-0": there})

    def delete(runner: Any, found: Any) -> Any:
        deleted.append(runner.allow)
        return found

    monkeypatch.setattr(garbage, "delete", delete)
    code, out, err = run("generations", "gc")
    assert (code, deleted) == (0, [])
    assert out.splitlines()[1].split() == ["spark-0", "1", "1", "2.5", "MB"]
    assert "--apply" in err
    code, _, err = run("generations", "gc", "--apply")
    assert (code, deleted) == (0, [Safety.CHANGES_HOSTS])
    assert "spark-0: 1 paths are gone, 2.5 MB." in err
    (row,) = json.loads(run("generations", "gc", "--json")[1])
    assert (row["generations"], row["bytes"], row["applied"]) == ([1], 2_500_000, False)
    assert len(deleted) == 1


def test_tab_offers_names(world: World, tmp_path: Path, run: Run) -> None:
    promotes(run, world, "r7")
    complete = BashComplete(baselines.command, {}, "baselines", "_X")
    assert [item.value for item in complete.get_completions(["show"], "r")] == ["r7"]
    (tmp_path / "manifests/baselines/2026-01-01-x.json").write_text("{}")
    assert complete.get_completions(["show"], "r") == []
