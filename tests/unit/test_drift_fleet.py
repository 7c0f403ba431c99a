"""All nodes of a fleet: who answered, what each says, and what they do not share."""

from __future__ import annotations

import json
from typing import Any

from sparkserve import commands
from sparkserve.commands import Safety
from sparkserve.drift import fleet
from sparkserve.drift.report import Difference, Report, difference
from sparkserve.drift.sides import of_generation
from sparkserve.runner import Recorded, Result

NAMES = ["spark-0", "spark-1", "spark-2"]
LINE = commands.drift(live=True, deep=False).line()


def report(node: str, *differences: Difference, **facts: str) -> Report:
    return Report(
        schema="sparkserve.drift/1",
        node=node,
        closure="/nix/store/host",
        generation=3,
        fleet_id="f" * 64,
        engine=102,
        checked={"sysctls": 2},
        differences=differences,
        facts={"kernel": "6.1", **facts},
    )


def answer(found: Report) -> Result:
    return Result(0, found.model_dump_json(by_alias=True))


def ask(answers: dict[str, Result]) -> fleet.Drift:
    runner = Recorded({(node, LINE): each for node, each in answers.items()}, allow=Safety.READS_HOSTS)
    return fleet.over(runner, NAMES, live=True, deep=False)


def test_all_as_they_are_to_be() -> None:
    found = ask({node: answer(report(node)) for node in NAMES})
    assert not found.differs and list(found.reports) == NAMES
    assert found.as_dict()["nodes"]["spark-1"]["facts"] == {"kernel": "6.1"}


def test_each_difference_has_its_node() -> None:
    row = difference("sysctls", "vm.swappiness", "1", "60")
    found = ask({node: answer(report(node, *([row] if node == "spark-1" else []))) for node in NAMES})
    assert found.differs and found.rows == [("spark-1", row)] and found.between == ()


def test_what_nodes_do_not_share_is_told_with_the_value_of_each() -> None:
    other = {"kernel": "6.2", "NVIDIA driver": "580.95"}
    found = ask({node: answer(report(node, **(other if node == "spark-2" else {}))) for node in NAMES})
    assert found.differs and found.rows == []
    assert [each.what for each in found.between] == ["kernel", "NVIDIA driver"]
    assert found.between[0].values == {"spark-0": "6.1", "spark-1": "6.1", "spark-2": "6.2"}
    assert found.between[1].values == {"spark-0": "nothing", "spark-1": "nothing", "spark-2": "580.95"}


def test_a_node_without_an_answer_differs_and_the_others_are_told() -> None:
    old = Result(2, "", "Usage: sparkserve rank\nError: No such command 'drift'.\n")
    found = ask({"spark-0": answer(report("spark-0")), "spark-1": old, "spark-2": Result(1)})
    assert found.differs and list(found.reports) == ["spark-0"]
    assert {name: each.found for name, each in found.silent.items()} == {
        "spark-1": "Error: No such command 'drift'.",
        "spark-2": "exit code 1",
    }


def test_a_generation_is_read_over_the_runner() -> None:
    path = "/nix/store/x-host"
    plan = {"node": {"name": "spark-1", "rank": 1}, "gates": ["smoke"]}
    layer = {"name": "base", "target": "/", "path": "/p", "diff_id": "sha256:1"}
    closure: dict[str, Any] = {
        **{
            "fleet_id": "f",
            "root": {"digest": "d", "layers": [layer]},
            "harness": {"digest": "h", "path": "/h"},
        },
        **{"argv": ["a"], "env": {}, "bwrap": "/b", "guard": None},
    }
    pins = {"base": [{"name": "bash", "version": "5.2", "sha256": "0123456789"}]}
    texts = "".join(f"{json.dumps(each)}\0" for each in (plan, closure, pins))
    runner = Recorded(
        {
            commands.generations().line(): Result(0, f"current 7\n7 {path}\n"),
            commands.read_closures(path).line(): Result(0, texts),
        },
        allow=Safety.READS_HOSTS,
    )
    side = of_generation(runner, "spark-1", 7)
    assert side.fleet_id == "f" and side.label == f"generation 7 of spark-1, {path}"
    (document,) = side.documents.values()
    assert document["plan"] == plan and document["pins"] == {"base": {"bash": "5.2 (01234567)"}}
    assert document["closure"]["layers"] == [{"name": "base", "target": "/", "diff_id": "sha256:1"}]
