"""Fleets with the real Nix and git: what an owner can do wrong, and what comes out when it is right.

Each test edits a copy of the checkout's tracked files; a command takes half a second.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sparkserve.cli.commands import fabric, fleet, guard, memory

ROOT = Path(__file__).parents[2]
TEMPLATE = (ROOT / "src/sparkserve/fleet/template.nix").read_text()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("flake.nix", "flake.lock", "nix", "modules", "hosts", "checks", "pkgs", "src"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    git(copy, "init", "--quiet")
    git(copy, "add", "--all")
    return copy


@pytest.fixture
def desk(checkout: Path) -> Path:
    """The fleet.nix of a new, tracked fleet `desk`."""
    shutil.rmtree(checkout / "hosts/desk", ignore_errors=True)
    git(checkout, "rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "hosts/desk")
    done = sparkserve(checkout, "fleet", "new", "desk")
    assert done.returncode == 0, done.stderr
    return checkout / "hosts/desk/fleet.nix"


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def sparkserve(checkout: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "SPARKSERVE_CHECKOUT": str(checkout)}
    argv = [sys.executable, "-m", "sparkserve.cli.main", *arguments]
    return subprocess.run(argv, env=env, cwd=cwd, capture_output=True, text=True)


def error(file: Path, old: str, new: str) -> dict[str, Any]:
    """What `fleet show` says when `old` is `new` in a fleet's file."""
    assert old in TEMPLATE
    file.write_text(TEMPLATE.replace(old, new))
    done = sparkserve(file.parents[2], "fleet", "show", "desk", "--json")
    said: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == said["exit_code"]
    return said


def test_new_then_show_then_plan(desk: Path) -> None:
    checkout = desk.parents[2]
    shown = json.loads(sparkserve(checkout, "fleet", "show", "desk", "--json").stdout)
    assert shown["endpoint"] == "http://127.0.0.1:8888"
    plans = json.loads(sparkserve(checkout, "fleet", "plan", "desk").stdout)
    golden = json.loads((ROOT / "tests/golden/local-single/spark-0.json").read_text())
    assert plans == {"spark-0": {**golden, "fleet": {**golden["fleet"], "name": "desk"}}}
    table = sparkserve(checkout, "fleet", "show", "desk")
    assert "127.0.0.1" in table.stdout
    assert "desk" in sparkserve(checkout, "fleet", "list").stdout


def test_an_owner_adds_arguments_after_the_profile_and_replaces_variables(desk: Path) -> None:
    desk.write_text(
        TEMPLATE.replace(
            "  serving.port = 8888;",
            '  imports = [ { engine.args = [ "--log-level" "debug" ]; } ];\n'
            '  engine.env.OMP_NUM_THREADS = "4";',
        )
    )
    plan = json.loads(sparkserve(desk.parents[2], "fleet", "plan", "desk", "--node", "spark-0").stdout)
    args = plan["engine"]["args"]
    assert args[-6:] == ["--log-level", "debug", "--host", "127.0.0.1", "--port", "8888"]
    assert plan["engine"]["env"]["OMP_NUM_THREADS"] == "4"
    assert plan["engine"]["env"]["OMP_WAIT_POLICY"] == "PASSIVE"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "serving.port",
            "serving.prot",
            (
                "an option of this fleet",
                "serving.prot",
                "hosts/desk/fleet.nix:9",
                "Did you mean serving.port?",
            ),
        ),
        (
            "serving.port",
            "readyTimeoutS",
            (
                "an option of this fleet",
                "readyTimeoutS",
                "hosts/desk/fleet.nix:9",
                "Did you mean serving.readyTimeoutS?",
            ),
        ),
        (
            '"smollm2-135m"',
            '"a | b\\nc"',
            (
                'serving.model as one of "deepseek-v41-flash", "smollm2-135m"',
                '"a / b\\nc"',
                "hosts/desk/fleet.nix:8",
                "Change the value of serving.model.",
            ),
        ),
        (
            "address =",
            "adress =",
            (
                "an option of this fleet",
                "fleet.nodes.(entry 1).adress",
                "hosts/desk/fleet.nix:5",
                "Did you mean fleet.nodes.(entry 1).address?",
            ),
        ),
        (
            "8888",
            "80",
            (
                "serving.port as integer from 1024 to 65535",
                "80",
                "hosts/desk/fleet.nix:9",
                "Change the value of serving.port.",
            ),
        ),
        (
            "serving.port = 8888;",
            'fleet.topology = "triangle"; group.startLimit = 11; imports = [ ({ lib, ... }: {'
            'fleet.nodes = lib.mkForce (map (n: { name = "n${n}"; address = "10.0.0.${n}"; })'
            '[ "1" "2" "3" ]); }) ];',
            (
                "group.startLimit as integer from 1 to 10",
                "11",
                "hosts/desk/fleet.nix:9",
                "Change the value of group.startLimit.",
            ),
        ),
        (
            "127.0.0.1",
            "127.0.0.256",
            (
                "fleet.nodes.(entry 1).address as IPv4 address such as 192.168.1.10",
                '"127.0.0.256"',
                "hosts/desk/fleet.nix:5",
                "Change the value of fleet.nodes.(entry 1).address.",
            ),
        ),
        (
            "serving.port = 8888;",
            "imports = [ { serving.port = 8000; } { serving.port = 9000; } ];",
            (
                "one value for serving.port",
                "9000 and 8000",
                "hosts/desk/fleet.nix:9 and hosts/desk/fleet.nix:9",
                "Keep one of them, or mark the one that counts with lib.mkForce.",
            ),
        ),
        (
            'serving.model = "smollm2-135m";',
            "",
            (
                "a value for serving.model",
                "none",
                "hosts/desk/fleet.nix",
                'Set serving.model to a value: one of "deepseek-v41-flash", "smollm2-135m".',
            ),
        ),
    ],
)
def test_a_wrong_option(desk: Path, old: str, new: str, expected: tuple[str, ...]) -> None:
    said = error(desk, old, new)
    assert said["error"] == "FLEET.OPTION"
    assert (said["expected"], said["found"], said["where"], said["do"]) == expected


@pytest.mark.parametrize("option", ["engine.package", "engine.model"])
def test_a_package_that_is_not_there(desk: Path, option: str) -> None:
    said = error(desk, "serving.port = 8888;", f'{option} = "engine-cup";')
    assert (said["error"], said["found"]) == ("FLEET.OPTION", '"engine-cup"')
    assert '"engine-cpu"' in said["expected"]


def test_all_failed_assertions_at_once(desk: Path) -> None:
    said = error(
        desk,
        "serving.port = 8888;",
        'imports = [ { fleet.nodes = [ { name = "b"; address = "127.0.0.1"; } ]; } ];'
        'serving.host = "10.0.0.1"; engine.args = [ "--port=1" ];',
    )
    assert said["error"] == "FLEET.ASSERTION"
    assert said["where"] == "hosts/desk/fleet.nix"
    for part in (
        'fleet.nodes has 2 entries, but fleet.topology = "single" takes 1: list exactly 1',
        "fleet.nodes: address 127.0.0.1 is given to b, spark-0: give each node its own",
        "address 127.0.0.1 of b is none that other nodes can reach: give it one of its network",
        'serving.host = "10.0.0.1" opens the endpoint to a network, and it asks for no key: use 127.0.0.1',
        'engine.args has "--port=1", which is --port to SGLang: set serving.port instead',
    ):
        assert part in said["found"]


def test_arguments_that_sglang_takes_for_an_owned_one_and_names_that_are_none(desk: Path) -> None:
    refused = {
        "--served-model": "--served-model-name to SGLang: set serving.model instead",
        "--model=/nope": "--model to SGLang: set engine.model instead",
        "--hos": "--host to SGLang: set serving.host instead",
        "--tp": "--tp-size to SGLang: leave it out: fleet.topology and fleet.nodes decide",
        "--api-key": "--api-key to SGLang: give serving.apiKeyFile instead",
        "--ep=2": "--ep to SGLang: leave it out",
    }
    listed = " ".join(f'"{arg}" "x"' for arg in [*refused, "--log-level", "--model-impl", "--hostile"])
    said = error(
        desk,
        "serving.port = 8888;",
        f'engine.args = [ {listed} ]; engine.env = {{ "A=B" = "1"; _a1 = "2"; }};',
    )
    assert said["error"] == "FLEET.ASSERTION"
    for arg, way in refused.items():
        assert f'engine.args has "{arg}", which is {way}' in said["found"]
    assert said["found"].count("engine.args has") == len(refused)
    assert said["found"].count("engine.env has") == 1
    assert 'engine.env has "A=B": a name is letters, digits and _' in said["found"]


def test_nix_code_that_does_not_evaluate(desk: Path) -> None:
    said = error(desk, "8888;", "8888")
    assert (said["error"], said["where"]) == ("FLEET.EVAL", "hosts/desk/fleet.nix")
    assert "syntax error" in said["found"]
    assert "/nix/store" not in said["found"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"text"', '"text"'),
        ("[ 1 ]", "[ 1 ]"),
        ("{ imports = [ ./gone.nix ]; }", "gone.nix"),
        ("{ imports = [ ../../gone.nix ]; }", "gone.nix"),
        ('{ serving.model = builtins.readFile "/nowhere/file"; }', "/nowhere/file"),
        ("{ serving.model = builtins.readFile ./file; }", "hosts/desk/file"),
    ],
)
def test_a_file_that_is_no_module_or_reads_what_is_not_there(desk: Path, text: str, found: str) -> None:
    desk.write_text(text)
    said = json.loads(sparkserve(desk.parents[2], "fleet", "show", "desk", "--json").stdout)
    assert (said["error"], said["exit_code"], said["where"]) == ("FLEET.EVAL", 34, "hosts/desk/fleet.nix")
    assert found in said["found"]
    assert "nix log" not in said["do"]


def test_a_fleet_nix_that_is_a_folder(desk: Path) -> None:
    desk.unlink()
    desk.mkdir()
    (desk / "other.nix").write_text("{ }")
    git(desk.parents[2], "add", "hosts/desk")
    said = json.loads(sparkserve(desk.parents[2], "fleet", "show", "desk", "--json").stdout)
    assert (said["error"], said["where"]) == ("FLEET.EVAL", "hosts/desk/fleet.nix")


def test_an_empty_fleet_names_its_file(desk: Path) -> None:
    desk.write_text("{ }")
    said = json.loads(sparkserve(desk.parents[2], "fleet", "show", "desk", "--json").stdout)
    assert (said["error"], said["where"]) == ("FLEET.OPTION", "hosts/desk/fleet.nix")


def test_nix_writes_no_cache_of_evaluations(desk: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(tmp_path)}
    argv = [sys.executable, "-m", "sparkserve.cli.main", "fleet", "show", "desk"]
    env["SPARKSERVE_CHECKOUT"] = str(desk.parents[2])
    subprocess.run(argv, env=env, check=True, capture_output=True)
    assert not list(tmp_path.rglob("eval-cache*"))


def test_the_harness_evaluates_beside_a_damaged_pin_list_of_an_engine(desk: Path) -> None:
    pins = desk.parents[2] / "nix/pins/engine-cpu.json"
    good = pins.read_text()
    pins.write_text(good[:-20])
    code = "from sparkserve import nix; print(nix.eval_json('packages.x86_64-linux.sparkserve.outPath'))"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "SPARKSERVE_CHECKOUT": str(desk.parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    listed = json.loads(sparkserve(desk.parents[2], "pins", "list", "engine-cpu", "--json").stdout)
    pins.write_text(good)
    assert done.returncode == 0, done.stderr
    assert (listed["error"], listed["where"]) == ("PIN.PROFILE", str(pins))


BROKEN = ["{ nonsense = 1; }", "{ imports = [ ./gone.nix ]; }", "{"]


def evaluates(checkout: Path, attribute: str) -> subprocess.CompletedProcess[str]:
    """What Nix says to an attribute, spelled as for `nix build`."""
    return sparkserve(checkout, "nix", "eval", "--json", f"git+file://{checkout}#{attribute}.drvPath")


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_fleet_breaks_no_other(desk: Path, text: str) -> None:
    checkout = desk.parents[2]
    desk.write_text(text)
    assert sparkserve(checkout, "fleet", "plan", "local-single").returncode == 0
    # What `up` of other fleets builds, and the harness before any command.
    for name in ("hosts.local-single.spark-0", "hosts.local-triangle.spark-2", "sparkserve"):
        done = evaluates(checkout, name)
        assert done.returncode == 0, done.stderr
    assert evaluates(checkout, "hosts.desk.spark-0").returncode != 0


@pytest.mark.parametrize("text", BROKEN)
def test_flake_check_looks_at_every_fleet(desk: Path, text: str) -> None:
    check = "checks.x86_64-linux.plan"
    assert evaluates(desk.parents[2], check).returncode == 0
    desk.write_text(text)
    assert evaluates(desk.parents[2], check).returncode != 0


def test_an_untracked_fleet(desk: Path) -> None:
    checkout = desk.parents[2]
    git(checkout, "rm", "-r", "--cached", "--quiet", "hosts/desk")
    done = sparkserve(checkout, "fleet", "show", "desk", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["error"]) == (32, "FLEET.UNTRACKED")
    listed = json.loads(sparkserve(checkout, "fleet", "list", "--json").stdout)
    assert {"name": "desk", "tracked": False} in listed
    command = said["do"].removeprefix("Run: ").split()
    subprocess.run(command, cwd=checkout, check=True)
    assert sparkserve(checkout, "fleet", "show", "desk").returncode == 0


def test_root_leaves_nothing_of_its_own_in_a_users_clone() -> None:
    # Not tmp_path, which other users may not enter.
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name)
        (clone / "hosts").mkdir()
        git(clone, "init", "--quiet")
        for path in (clone, *clone.rglob("*")):
            os.chown(path, 65534, 65534)
        done = sparkserve(clone, "fleet", "new", "desk")
        assert done.returncode == 0, done.stderr
        assert (clone / ".git/index").exists()
        assert [path for path in clone.rglob("*") if path.stat().st_uid == 0] == []


def test_an_unknown_node(desk: Path) -> None:
    done = sparkserve(desk.parents[2], "fleet", "plan", "desk", "--node", "spark-1", "--json")
    assert (done.returncode, json.loads(done.stdout)["expected"]) == (33, "one of the nodes spark-0")


@pytest.mark.parametrize(
    "expression",
    [
        "lib.mkOrder 1 2",
        "lib.types.package",
        "lib.types.ints.u8",
        "lib.mkOption { type = lib.types.int; readOnly = true; }",
        "lib.mkOption { }",
        "(lib.evalModules { modules = [ { disabledModules = [ ]; } ]; }).config",
        "(lib.evalModules { modules = [ { freeformType = 1; config = { }; } ]; }).config",
        "let o.options.x = lib.mkOption { type = lib.types.int; }; in"
        " (lib.evalModules { modules = [ o o ]; }).config.x",
    ],
)
def test_what_is_not_in_the_subset_says_so(expression: str) -> None:
    argv = ["nix-instantiate", "--eval", "-E", f"let lib = import {ROOT}/nix/lib; in {expression}"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 1
    assert "FLEET.EVAL | " in done.stderr
    assert "not in the subset" in done.stderr


def test_a_fleet_of_a_model_that_is_not_built_has_plans_and_says_so(checkout: Path) -> None:
    shown = sparkserve(checkout, "fleet", "plan", "tp3-triangle", "--node", "spark-2")
    assert json.loads(shown.stdout)["engine"]["package"] == "engine-gb10"
    for arguments in (["deploy", "--fleet", "tp3-triangle"], ["fleet", "draw", "tp3-triangle"]):
        done = sparkserve(checkout, *arguments, "--json" if arguments[0] == "deploy" else "--no-digests")
        assert done.returncode == 30, done.stderr
        assert "deepseek-v41-flash, which is not built yet" in done.stdout + done.stderr


def test_up_of_a_fleet_of_sparks_names_deploy(checkout: Path) -> None:
    done = sparkserve(checkout, "up", "--fleet", "tp3-triangle")
    assert done.returncode == 30, done.stderr
    assert "/dev/nvidia0" in done.stderr and "./sparkserve deploy --fleet tp3-triangle" in done.stderr


def test_other_values_of_options_are_told_by_the_option_that_has_them(checkout: Path) -> None:
    told = ["--set", "engine.maxRunning=many"]
    done = sparkserve(checkout, "memory", "explain", "tp3-triangle", *told)
    assert done.returncode == 30
    assert 'found "many" (--set engine.maxRunning)' in done.stderr
    less = sparkserve(checkout, "memory", "explain", "tp3-triangle", "--json", "--set", "engine.maxRunning=1")
    more = sparkserve(checkout, "memory", "explain", "tp3-triangle", "--json")
    assert (
        json.loads(less.stdout)["spark-0"]["serve_bytes"] < json.loads(more.stdout)["spark-0"]["serve_bytes"]
    )


def examples() -> list[str]:
    """The command lines of --help and docs that change nothing and ask no host."""
    texts = [(ROOT / f"docs/{name}.md").read_text() for name in ("memory", "guard")]
    for group in (fabric.command, fleet.command, guard.command, memory.command):
        texts += [str(each.epilog) for each in (group, *group.commands.values())]
    found = re.findall(r"\./sparkserve ((?:memory|fabric|fleet|guard) [^\n|>#]+)", "\n".join(texts))
    lines = {line.strip() for line in found}
    return sorted(line for line in lines if not line.startswith(("fleet new", "fabric check")))


@pytest.mark.parametrize("line", examples())
def test_an_example_runs(line: str, checkout: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if "my-desk" in line:
        request.getfixturevalue("desk")
    (tmp_path / "docs").mkdir()
    done = sparkserve(checkout, *shlex.split(line.replace("my-desk", "desk")), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout or done.stderr or [*tmp_path.rglob("*.svg")]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e400"])
def test_a_value_that_is_no_number_is_told_as_one_of_the_option(checkout: Path, value: str) -> None:
    done = sparkserve(checkout, "memory", "explain", "tp3-triangle", "--set", f"engine.kvTokens={value}")
    assert done.returncode == 30
    assert f'found "{value}" (--set engine.kvTokens)' in done.stderr
