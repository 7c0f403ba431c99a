"""`verify` and `diff`: what they print, and with which exit code they end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.shell_completion import BashComplete

from sparkserve import commands, nix
from sparkserve.cli.commands import diff
from sparkserve.cli.main import main
from sparkserve.drift import fleet, node
from sparkserve.drift.report import Report, difference
from sparkserve.fleet import plans
from sparkserve.plan import load

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.append(str(Path(__file__).parents[1] / "unit"))
import engine_values

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/tp3-triangle"
SINGLE = load(ROOT / "tests/golden/local-single/spark-0.json")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return (caught.value.code, *capsys.readouterr())


def drift(*differences: Any, **facts: str) -> fleet.Drift:
    reports = [
        Report(
            schema="sparkserve.drift/1",
            node=name,
            closure="/nix/store/host",
            generation=3,
            fleet_id="f" * 64,
            engine=1,
            checked={"sysctls": 2, "links": 0},
            compiled=("/root/x.so",),
            differences=differences if name == "spark-1" else (),
            facts={"kernel": "6.1", **(facts if name == "spark-1" else {})},
        )
        for name in ("spark-0", "spark-1")
    ]
    return fleet.judge(reports)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[[fleet.Drift], list[Any]]:
    """Makes the nodes say this; what was asked of them."""

    def say(what: fleet.Drift) -> list[Any]:
        asked: list[Any] = []

        def of_fleet(name: str, **given: bool) -> fleet.Drift:
            asked.append((name, given))
            return what

        monkeypatch.setattr(fleet, "of_fleet", of_fleet)
        monkeypatch.setattr(fleet, "here", lambda **given: of_fleet("here", **given))
        return asked

    return say


def test_nothing_differs(
    capsys: pytest.CaptureFixture[str], found: Callable[[fleet.Drift], list[Any]]
) -> None:
    asked = found(drift())
    code, out, err = run(capsys, "verify", "--live", "--deep", "--fleet", "home")
    assert (code, out) == (0, "")
    assert asked == [("home", {"live": True, "deep": True})]
    assert "spark-0: generation 3, fleet id ffffffffffff; looked at: sysctls 2\n" in err
    assert "spark-0: 1 files that run were compiled there" in err
    assert err.endswith("Nothing differs.\n")


def test_differences_are_a_table_and_exit_98(
    capsys: pytest.CaptureFixture[str], found: Callable[[fleet.Drift], list[Any]]
) -> None:
    found(drift(difference("sysctls", "vm.swappiness", "1", "60"), kernel="6.2"))
    code, out, err = run(capsys, "verify", "--live")
    assert code == 98 and "Nothing differs" not in err
    lines = [line.split() for line in out.splitlines()]
    assert lines[1] == ["spark-1", "sysctls", "vm.swappiness", "1", "60"]
    assert lines[-1] == ["kernel", "6.1", "6.2"] and lines[-2][-2:] == ["spark-0", "spark-1"]
    code, out, _ = run(capsys, "verify", "--live", "--json")
    value = json.loads(out)
    assert (code, value["differs"]) == (98, True)
    assert value["nodes"]["spark-1"]["differences"][0]["found"] == "60"
    assert value["between"] == [{"what": "kernel", "values": {"spark-0": "6.1", "spark-1": "6.2"}}]


def test_this_machine_alone(
    capsys: pytest.CaptureFixture[str], found: Callable[[fleet.Drift], list[Any]]
) -> None:
    asked = found(drift())
    assert run(capsys, "verify", "--here")[0] == 0
    assert asked == [("here", {"live": False, "deep": False})]
    assert run(capsys, "verify", "--here", "--fleet", "home")[0] == 2


def test_nobody_to_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr(commands, "PROFILE", str(tmp_path / "profile"))
    (tmp_path / "hosts/home").mkdir(parents=True)
    (tmp_path / "hosts/home/fleet.nix").touch()
    monkeypatch.setattr(plans, "load", lambda name: [SINGLE])
    assert run(capsys, "verify", "--here")[0] == 52
    code, _, err = run(capsys, "verify", "--live", "--fleet", "home")
    assert code == 52 and "Run ./sparkserve up --fleet home." in err
    assert run(capsys, "verify", "--fleet", "nobody")[0] == 33


def test_a_node_answers_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def of_group(system: object, folder: Path, *, live: bool, deep: bool) -> Report:
        asked.append((folder, live, deep))
        return drift().reports["spark-0"]

    monkeypatch.setattr(node, "of_group", of_group)
    (tmp_path / "host").mkdir()
    (tmp_path / "profile").symlink_to("host")
    code, out, _ = run(capsys, "rank", "drift", str(tmp_path / "profile"), "--deep")
    assert (code, asked) == (0, [(tmp_path / "host", False, True)])
    assert Report.model_validate_json(out) == drift().reports["spark-0"]


def closure(folder: Path, change: Callable[[dict[str, Any]], object] = lambda plan: None) -> Path:
    """A host closure of a golden plan, changed."""
    folder.mkdir()
    plan = json.loads((GOLDEN / "spark-0.json").read_text())
    change(plan)
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "closure.json").write_text(engine_values.closure().model_dump_json(by_alias=True))
    return folder


def change(plan: dict[str, Any]) -> None:
    plan["engine"]["args"] += ["--tp-size", "3"]
    plan["host"]["sysctls"]["vm.panic_on_oom"] = "1"
    plan["host"]["units"]["sparkserve-rank.service"] += "Nice=5\n"


def test_diff_of_closures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    one, two = str(closure(tmp_path / "a")), str(closure(tmp_path / "b", change))
    code, out, err = run(capsys, "diff", one, two)
    assert code == 0
    assert out.splitlines() == [
        *("engine arguments", "  --tp-size: new, 3"),
        *("sysctls", "  vm.panic_on_oom: 0 → 1"),
        *("units", "  sparkserve-rank.service: 0 lines gone, 1 line new", "    + Nice=5"),
    ]
    assert err.splitlines()[0] == f"A  {one}, fleet id 000000000000"
    assert "does not have it: pins." in err
    code, out, _ = run(capsys, "diff", one, two, "--stat")
    assert [line.split()[:2] for line in out.splitlines()] == [
        *(["section", "changes"], ["engine", "arguments"], ["sysctls", "1"], ["units", "1"])
    ]
    code, out, _ = run(capsys, "diff", one, two, "--tree")
    assert "├── sysctls (1)\n│   └── vm.panic_on_oom: 0 → 1\n" in out
    code, out, _ = run(capsys, "diff", one, two, "--json")
    value = json.loads(out)
    assert value["schema"] == "sparkserve.diff/1" and value["not_compared"] == ["pins"]
    assert value["changes"][0] == {
        **{"section": "engine arguments", "name": "--tp-size", "nodes": [], "after": "3"},
        "path": ["plan", "engine", "args", "--tp-size"],
    }
    assert value["changes"][1]["before"] == "0"
    code, out, err = run(capsys, "diff", one, one)
    assert (code, out) == (0, "") and err.endswith("Nothing differs.\n")


def test_diff_refuses_what_names_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    one = str(closure(tmp_path / "a"))
    (tmp_path / "b").mkdir()
    (tmp_path / "b/plan.json").write_text("{}")
    code, _, err = run(capsys, "diff", one, str(tmp_path / "b"))
    assert code == 35 and "only plan.json" in err
    (tmp_path / "b/closure.json").write_text("[")
    assert run(capsys, "diff", one, str(tmp_path / "b"))[0] == 35
    (tmp_path / "b/closure.json").write_text("[]")
    assert run(capsys, "diff", one, str(tmp_path / "b"))[0] == 35
    two = closure(tmp_path / "c")
    for pins in (b"[]", b"\xff"):
        (two / "pins.json").write_bytes(pins)
        assert run(capsys, "diff", one, str(two))[0] == 35
    assert run(capsys, "diff", one, one, "--stat", "--tree")[0] == 2
    # No fleet is up, and this machine is no node.
    monkeypatch.setattr(commands, "PROFILE", str(tmp_path / "profile"))
    (tmp_path / "hosts/local-triangle").mkdir(parents=True)
    (tmp_path / "hosts/local-triangle/fleet.nix").touch()
    monkeypatch.setattr(plans, "load", lambda name: [SINGLE])
    assert run(capsys, "diff", "3", "4", "--json")[0] == 52
    assert run(capsys, "diff", "3", "4", "--fleet", "local-trinagle")[0] == 33


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two commits, of which Nix gives the plans that lie in it."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    git(tmp_path, "init", "-q", "-b", "main")
    plans = {file.stem: json.loads(file.read_text()) for file in GOLDEN.glob("*.json")}
    write(tmp_path, plans, "5.2", "{ }")
    commit(tmp_path)
    for plan in plans.values():
        plan["gates"] = ["smoke"]
    plans["spark-2"]["host"]["sysctls"]["vm.swappiness"] = "1"
    write(tmp_path, plans, "5.3", "{ more }")
    commit(tmp_path)

    def eval_json(attribute: str, apply: str | None = None, commit: str = "") -> Any:
        assert attribute == "lib.fleets.home.plans"
        file = tmp_path / "plans.json"
        return json.loads(git(tmp_path, "show", f"{commit}:plans.json") if commit else file.read_text())

    monkeypatch.setattr(nix, "eval_json", eval_json)
    return tmp_path


def git(folder: Path, *argv: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    return subprocess.run(
        ["git", "-C", str(folder), *who, *argv], check=True, capture_output=True, text=True
    ).stdout


def write(folder: Path, plans: dict[str, Any], version: str, module: str) -> None:
    (folder / "plans.json").write_text(json.dumps(plans))
    pin = {"kind": "deb", "name": "bash", "version": version, "sha256": "0" * 64}
    for path, text in (
        ("nix/pins/base.json", json.dumps({"pins": [pin, {**pin, "kind": "tree"}]})),
        ("modules/engine.nix", module),
        ("hosts/home/fleet.nix", "{ }"),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "x")


def test_diff_of_commits(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "diff", "HEAD~", "HEAD", "--fleet", "home")
    lines = out.splitlines()
    assert code == 0 and lines[:4] == [
        *("modules", "  modules/engine.nix: { } → { more }"),
        *("sysctls", "  vm.swappiness: new, 1 (spark-2)"),
    ]
    at = lines.index("pins")
    assert lines[at + 1] == "  bash (base): 5.2 (00000000) → 5.3 (00000000)"
    assert "gates" in lines and "  kld: gone" in lines
    assert "does not have it: closure." in err
    # What is not committed; and the other way round.
    (checkout / "modules/engine.nix").write_text("{ }")
    assert run(capsys, "diff", "HEAD", ".", "--fleet", "home")[1].splitlines() == [
        *("modules", "  modules/engine.nix: { more } → { }")
    ]
    assert run(capsys, "diff", ".", "HEAD", "--fleet", "home")[1].splitlines() == [
        *("modules", "  modules/engine.nix: { } → { more }")
    ]
    # A picture is compared like any file.
    (checkout / "modules/engine.nix").write_text("{ more }")
    for number, picture in enumerate((b"\xff\n", b"\xfe\n")):
        (checkout / "hosts/home/rack.png").write_bytes(picture)
        commit(checkout)
        code, out, _ = run(capsys, "diff", "HEAD~", "HEAD", "--fleet", "home")
        assert code == 0 and ("hosts/home/rack.png: new" in out) == (number == 0)
    (checkout / "hosts/home/rack.png").write_bytes(b"\xff\n")
    assert run(capsys, "diff", "HEAD", ".", "--fleet", "home")[0] == 0
    for nothing in ("nobody", "HEAD^{tree}", "HEAD:plans.json"):
        assert run(capsys, "diff", "HEAD", nothing, "--fleet", "home")[0] == 2
    assert run(capsys, "diff", "HEAD", "HEAD", "--fleet", 'x" y')[0] == 33


def test_tab_offers_branches(checkout: Path) -> None:
    git(checkout, "branch", "mine")
    shell = BashComplete(diff.command, {}, "sparkserve", "_SPARKSERVE_COMPLETE")
    assert [item.value for item in shell.get_completions([], "m")] == ["main", "mine"]
    assert [item.type for item in shell.get_completions([], "./x")] == ["dir"]
