"""`deploy`, `rollback`, `promote` and `generations gc` on real nodes with real SGLang, as a fleet meets them.

What must be refused comes first with nothing to return to, then with a closure in the wrong place. Faults in
the middle of a deployment: tests/host/deploy_runs.py. 8 min on two cores.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_fleet import Commanded, commanded
from group_fleet import FLEET, HEAD, NODES
from nodes import attempt, until

from sparkserve.commands import PROFILE, Safety
from sparkserve.errors import EXIT_CODES
from sparkserve.local import several
from sparkserve.runner import SSH

if TYPE_CHECKING:
    from collections.abc import Iterator

CAPITAL = "What is the capital of France?"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commanded]:
    with commanded(tmp_path_factory.mktemp("deploy") / "checkout", "10.79.66") as fleet:
        text = (fleet.copy.path / f"hosts/{FLEET}/fleet.nix").read_text().rstrip().removesuffix("}")
        options = 'gates = [ "smoke" ];\n  group.startWindowS = 600;'
        fleet.write(f"hosts/{FLEET}/fleet.nix", f"{text}\n  {options}\n}}\n")
        yield fleet


def run(made: Commanded, *words: str) -> tuple[int, Any, str]:
    """Exit code, JSON and stderr of a command."""
    code, out, err = shown(made, *words, "--json")
    return code, json.loads(out) if out else None, err


def shown(made: Commanded, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, as people see it."""
    with made.copy.start(*words, "--fleet", FLEET) as child:
        out, err = child.communicate(timeout=900)
    return child.returncode, out, err


def current(made: Commanded) -> dict[str, str]:
    """What each node's profile is, as the node itself says."""
    return {node: made.sh(node, f"readlink -e {PROFILE} || true") for node in NODES}


def front(made: Commanded) -> str:
    """Whose code the front runs."""
    return made.sh(HEAD, "systemctl show --property=ExecStart --value sparkserve-front")


def put(made: Commanded, node: str, path: str) -> None:
    made.sh(node, f"nix-env --profile {PROFILE} --set {path}")


def refused(made: Commanded, node: str, path: str) -> str:
    """`deploy` with `path` as a node's profile: why it is refused, and that nothing has changed."""
    was = current(made)
    put(made, node, path)
    try:
        code, said, _ = run(made, "deploy")
        assert (code, said["error"]) == (EXIT_CODES["NODE.CLOSURE"], "NODE.CLOSURE")
        assert node in said["where"]
        assert current(made) == {**was, node: path}
        assert "Paris" in made.ask(CAPITAL)
    finally:
        put(made, node, was[node])
    found: str = said["found"]
    return found


def test_a_first_deployment_says_that_there_is_no_way_back(made: Commanded) -> None:
    made.up()
    for node in NODES:
        path = made.sh(node, f"readlink -e {PROFILE}")
        made.sh(node, "systemctl stop sparkserve-front sparkserve-rank 2>/dev/null || true")
        made.sh(node, f"{path}/bin/deactivate && rm {PROFILE} {PROFILE}-*-link")
    code, _, said = shown(made, "deploy")
    assert code == 0, said
    assert "First deployment on spark-0, spark-1, spark-2: there is nothing to return to" in said
    code, plan, said = run(made, "deploy")
    assert code == 0, said
    assert [member["base"] for member in plan["members"]] == [None, None, None]
    assert set(current(made).values()) == {""}

    code, done, said = run(made, "deploy", "--apply")
    assert (code, done["id"]) == (0, plan["id"]), said
    assert current(made) == {member["name"]: member["target"] for member in plan["members"]}
    assert "Paris" in made.ask(CAPITAL)
    rows = run(made, "generations")[1]
    assert [(row["node"], row["state"], row["current"]) for row in rows] == [
        (node, "kept", True) for node in NODES
    ]


def test_a_closure_of_another_node_is_refused(made: Commanded) -> None:
    theirs = current(made)["spark-1"]
    with closing(several.connect(made.fleet(), Safety.CHANGES_HOSTS)) as runner:
        assert isinstance(runner, SSH)
        runner.send("spark-2", Path(theirs))
    assert refused(made, "spark-2", theirs) == "one of spark-1"
    # Also by hand: with the group stopped nothing but the name keeps it from being activated.
    made.sh("spark-2", "systemctl stop sparkserve-rank")
    before = made.sh("spark-2", "cat /var/lib/sparkserve/activation/record.json")
    tried = attempt(made.fleet(), "spark-2", f"{theirs}/bin/activate")
    assert tried.returncode == EXIT_CODES["NODE.CLOSURE"], tried.stderr
    assert "spark-1" in tried.stderr and "spark-2" in tried.stderr
    assert made.sh("spark-2", "cat /var/lib/sparkserve/activation/record.json") == before
    assert made.up()["fleet_id"]


def test_a_profile_that_is_not_ours_is_left_alone(made: Commanded) -> None:
    # Somebody's own profile under our name: a store path that is there for another reason.
    theirs = made.sh("spark-2", f"readlink -f {PROFILE}/bin/sparkserve").rpartition("/bin/")[0]
    assert refused(made, "spark-2", theirs) == f"{theirs}, which is none"


def test_there_and_back(made: Commanded) -> None:
    first = current(made)
    made.change(f"hosts/{FLEET}/fleet.nix", ("startWindowS = 600", "startWindowS = 601"))
    code, plan, said = run(made, "deploy", "--apply")
    assert code == 0, said
    assert current(made) == {member["name"]: member["target"] for member in plan["members"]} != first
    assert plan["members"][0]["target"] in front(made)
    assert "Paris" in made.ask(CAPITAL)

    code, _, said = run(made, "rollback", "--apply")
    assert code == 0, said
    assert current(made) == first
    assert first[HEAD] in front(made)
    assert "Paris" in made.ask(CAPITAL)
    code, found, said = run(made, "verify", "--live")
    assert code == 0, (found, said)


def test_promoted_and_swept(made: Commanded) -> None:
    running = current(made)
    code, baseline, said = run(made, "promote", "r1", "--why", "the first")
    assert code == 0, said
    assert {node["name"]: node["closure"] for node in baseline["nodes"]} == running
    assert len(list((made.copy.path / "manifests/baselines").glob("*-r1.json"))) == 1

    made.change(f"hosts/{FLEET}/fleet.nix", ("startWindowS = 601", "startWindowS = 602"))
    code, _, said = run(made, "deploy", "--apply")
    assert code == 0, said
    paths = {row["path"] for row in run(made, "generations")[1] if row["current"]}
    code, swept, said = run(made, "generations", "gc", "--apply")
    assert code == 0, said
    assert all(row["applied"] for row in swept)
    left = {row["path"]: row for row in run(made, "generations")[1]}
    assert paths | set(running.values()) <= set(left)  # what runs, and the baseline
    assert left[running[HEAD]]["baseline"] == "r1"
    until("an answer", lambda: "Paris" in made.ask(CAPITAL), 30)
    code, _, said = run(made, "rollback", "--to", "r1", "--apply")
    assert code == 0, said
    assert current(made) == running
