"""A promotion: what a baseline says, and everything that keeps it from being made."""

from __future__ import annotations

import hashlib
import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from baseline_world import (
    ADAPTERS,
    CHANGED,
    FLEET,
    GATES,
    ID,
    NODES,
    OTHER,
    World,
    boot,
    drift,
    opened,
    past,
    path,
)
from report_values import point, sample

from sparkserve import commands, plan
from sparkserve.deploy import baseline, promote, way
from sparkserve.deploy.state import State
from sparkserve.errors import SparkserveError
from sparkserve.gates import subject

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
COMMITTED = sorted((ROOT / baseline.FOLDER).glob("*.json"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_says_what_runs_and_what_proves_it(world: World) -> None:
    nan = world.proof("nan", at="23:00", quick=False)
    files = [world.bench(boot(1, [40, 42])), world.bench(boot(2, [43, 45]), boot(3, [47, 49]), name="b.json")]
    made = world.make(*files)
    assert (made.fleet, made.fleet_id, made.why, made.previous) == (FLEET, ID, "it is faster", None)
    assert [(each.name, each.generation, each.closure) for each in made.nodes] == [
        (node, 2, path(node)) for node in NODES
    ]
    head = json.loads((ROOT / "tests/golden" / FLEET / "spark-0.json").read_text())
    assert made.nodes[0].plan_sha256 == subject.digest(plan.parse({**head, **CHANGED}))
    assert len({each.plan_sha256 for each in made.nodes}) == len(NODES)
    assert {each.kept_at for each in made.nodes} == {"2026-12-02T00:00:00Z"}
    assert made.nodes[1].observed.kernel == "6.11.0-1016-nvidia"
    assert made.nodes[1].observed.driver == "580.95.05"
    assert [each.model_dump() for each in made.adapters] == ADAPTERS
    assert made.pins["base"][0].version == "2.36"
    smoke, found = made.gates
    assert (smoke.gate, smoke.quick, smoke.limits, smoke.measured["worst"]) == (
        "smoke",
        True,
        {"worst": 1},
        0.5,
    )
    assert (found.gate, found.quick, found.file, found.sha256) == ("nan", False, nan.name, sha256(nan))
    assert made.bench is not None
    assert [(each.name, each.sha256) for each in made.bench.files] == [(f.name, sha256(f)) for f in files]
    (step,) = made.bench.references
    assert (step.point, step.metric, step.boots, step.median) == ("prose-c1", "step_ms", 3, 44)
    means = [41, 44, 48]
    half = 4.303 * statistics.stdev(means) / 3**0.5  # Student's t of 2 degrees of freedom
    assert step.low == pytest.approx(statistics.fmean(means) - half, abs=0.01)
    assert step.high == pytest.approx(statistics.fmean(means) + half, abs=0.01)
    assert made.warnings == ("Quick evidence, of fewer and shorter requests: smoke.",)


def test_nothing_changes_on_a_node_before_all_is_judged(world: World) -> None:
    world.make()  # its runner refuses what changes one


def no_generation(world: World) -> None:
    world.nodes["spark-1"].current = None


def experimental(world: World) -> None:
    node = world.nodes["spark-1"]
    node.state = State(past=(past("spark-1", "a"), past("spark-1", "b", "undo")))


def two_ids(world: World) -> None:
    world.nodes["spark-2"].ids["b"] = OTHER


def another_nodes(world: World) -> None:
    world.nodes["spark-2"].of = "spark-1"


def by_hand(world: World) -> None:
    world.nodes["spark-0"].runs = path("spark-0", "a")


def is_open(world: World) -> None:
    world.nodes["spark-2"].state = opened("spark-2")


def older_version(world: World) -> None:
    world.nodes["spark-2"].pins = ""


def no_evidence(world: World) -> None:
    (world.evidence / "nan-2200.json").unlink()


def no_folder(world: World) -> None:
    world.evidence = world.evidence / "none"


def of_another(world: World) -> None:
    no_evidence(world)
    world.proof("nan", id=OTHER)


def of_an_endpoint(world: World) -> None:
    no_evidence(world)
    world.proof("nan", id=None)


def failed(world: World) -> None:
    world.proof("nan", passed=False, summary="a NaN came")


def failed_later(world: World) -> None:
    world.proof("nan", at="23:00", passed=False, summary="a NaN came")


def could_not_run(world: World) -> None:
    world.proof("nan", passed=False, ran=False, summary="no logprobs")


def claims_without_having_run(world: World) -> None:
    world.proof("nan", passed=True, ran=False, summary="no logprobs")


def no_json(world: World) -> None:
    (world.evidence / "nan-2200.json").write_text("{")


@pytest.mark.parametrize(
    ("wrong", "id", "said"),
    [
        (no_generation, "DEPLOY.BASE", "spark-1: nothing"),
        (experimental, "DEPLOY.BASE", f"spark-1: generation 2 of {ID[:12]}, experimental"),
        (two_ids, "DEPLOY.BASE", f"spark-2: {OTHER[:12]}, kept"),
        (another_nodes, "DEPLOY.BASE", f"spark-2: generation 2 of {ID[:12]}, foreign"),
        (by_hand, "DEPLOY.BASE", "on spark-0"),
        (is_open, "DEPLOY.LEASE", "by somebody since"),
        (older_version, "NODE.CLOSURE", "Invalid JSON"),
        (no_evidence, "GATE.EVIDENCE", "nan: none"),
        (no_folder, "GATE.EVIDENCE", "smoke: none; nan: none"),
        (of_another, "GATE.EVIDENCE", f"nan: only of the fleet id {OTHER[:12]}"),
        (of_an_endpoint, "GATE.EVIDENCE", "nan: only of the fleet id none"),
        (failed, "GATE.FAILED", "nan failed: a NaN came (nan-2200.json)"),
        (failed_later, "GATE.FAILED", "nan failed: a NaN came (nan-2300.json)"),
        (could_not_run, "GATE.FAILED", "nan could not run: no logprobs"),
        (claims_without_having_run, "GATE.FAILED", "nan could not run: no logprobs"),
        (no_json, "GATE.EVIDENCE", "line 1"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_refuses(world: World, wrong: Callable[[World], None], id: str, said: str) -> None:
    world.make()
    wrong(world)
    with pytest.raises(SparkserveError) as caught:
        world.make()
    assert caught.value.id == id
    assert said in caught.value.found


def test_evidence_of_others_in_the_same_folder_does_no_harm(world: World) -> None:
    world.proof("nan", at="23:30", id=OTHER, passed=False)
    world.proof("lru", passed=False)
    assert [each.gate for each in world.make().gates] == list(GATES)


def test_a_later_pass_makes_an_earlier_failure_good(world: World) -> None:
    world.proof("nan", at="21:00", passed=False)
    assert world.make().gates[1].file == "nan-2200.json"


@pytest.mark.parametrize("number", [0, 1])
def test_refuses_a_bench_result_of_another_fleet_id(world: World, number: int) -> None:
    boots = [boot(1), boot(2)]
    boots[number] = boot(number + 1, id=OTHER)
    with pytest.raises(SparkserveError) as caught:
        world.make(world.bench(*boots))
    assert caught.value.id == "BENCH.RESULT"
    assert f"boot boot-{number + 1} of {OTHER[:12]}" in caught.value.found


def test_one_boot_is_a_warning_and_gives_no_interval(world: World) -> None:
    made = world.make(world.bench(boot(1)))
    assert made.bench is not None
    assert (made.bench.references[0].boots, made.bench.references[0].low) == (1, None)
    assert "One boot gives no interval: prose-c1." in made.warnings


def test_a_point_that_one_boot_has_is_a_warning_too(world: World) -> None:
    more = point("code", 1, [sample({"step_ms": 3.0})])
    two = boot(2)
    made = world.make(
        world.bench(boot(1), two.model_copy(update={"points": {**two.points, "code-c1": more}}))
    )
    assert made.bench is not None
    assert [(each.point, each.boots) for each in made.bench.references] == [("prose-c1", 2), ("code-c1", 1)]
    assert "One boot gives no interval: code-c1." in made.warnings


def test_what_differs_on_a_node_is_written_down(world: World) -> None:
    world.nodes["spark-1"].drift = drift("spark-1", ("sysctls", "vm.swappiness", "1", "60"))
    made = world.make()
    assert made.nodes[1].observed.differences == ("sysctls, vm.swappiness: expected 1, found 60",)
    assert "spark-1 differs from its closure in 1 values." in made.warnings


def test_reads_back_what_it_wrote_and_fits_the_schema(world: World, tmp_path: Path) -> None:
    made = world.make(world.bench(boot(1), boot(2)))
    file = tmp_path / made.file
    file.write_text(made.text())
    assert baseline.load(file) == made
    jsonschema.validate(json.loads(made.text()), baseline.schema())


def written(world: World, folder: Path, change: Callable[[dict[str, object]], None]) -> Path:
    """A baseline's file, edited."""
    made = world.make()
    value = json.loads(made.text())
    change(value)
    file = folder / made.file
    file.write_text(json.dumps(value))
    return file


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.update(schema="sparkserve.baseline/2"),
        lambda value: value.update(why=" "),
        lambda value: value.update(fleet_id=ID[:12]),
        lambda value: value.update(more=1),
        lambda value: value.pop("pins"),
        lambda value: value["gates"][0].update(passed=False),
        lambda value: value["gates"].append(value["gates"][0]),
        lambda value: value["nodes"].append(value["nodes"][0]),
        lambda value: value.update(nodes=[]),
        lambda value: value.update(name="other"),
        lambda value: value.update(promoted_at="2020-01-01T00:00:00Z"),
    ],
)
def test_an_edited_file_is_no_baseline(world: World, tmp_path: Path, change: Callable[..., None]) -> None:
    assert baseline.known(tmp_path) == []
    file = written(world, tmp_path, change)
    with pytest.raises(SparkserveError) as caught:
        baseline.known(tmp_path)
    assert (caught.value.id, caught.value.where) == ("BASELINE.FILE", str(file))


@pytest.mark.parametrize("name", ["", "-a", ".a", "3", "A", "a/b", "a b", "a\n", "x" * 64, "../a"])
def test_refuses_a_name_that_is_none(name: str) -> None:
    with pytest.raises(SparkserveError, match="small letters") as caught:
        baseline.check_name(name, [])
    assert caught.value.id == "BASELINE.NAME"


def test_refuses_a_name_that_is_taken(world: World) -> None:
    taken = world.make()
    baseline.check_name("r8", [taken])
    with pytest.raises(SparkserveError, match="promoted at") as caught:
        baseline.check_name("r7", [taken])
    assert caught.value.id == "BASELINE.NAME"


def test_a_rollback_finds_it_by_name(world: World, to: _Way, tmp_path: Path) -> None:
    assert baseline.closure("r7", FLEET) == "r7"
    promote.promote(FLEET, promote.Wish("r7", "why", world.evidence))
    assert baseline.closure("r7", FLEET) == path("spark-0")
    assert [baseline.closure("r7", "other"), baseline.closure("3", FLEET)] == ["r7", "3"]
    (baseline.folder() / "2026-01-01-x.json").write_text("{}")
    assert [baseline.closure(word, FLEET) for word in ("3", path("spark-0"))] == ["3", path("spark-0")]


def test_the_newest_of_the_fleet_is_desired(world: World) -> None:
    first = world.make().model_copy(update={"promoted_at": "2026-12-01T00:00:00Z", "name": "z"})
    second = world.make(name="a")
    other = world.make().model_copy(update={"fleet": "other", "promoted_at": "2030-01-01T00:00:00Z"})
    assert baseline.newest([first, second, other], FLEET) == second
    assert baseline.newest([], FLEET) is None


class _Way:
    nodes = NODES

    def __init__(self, world: World) -> None:
        self.runner = world.runner()
        self.runner.allow = commands.Safety.CHANGES_HOSTS

    def connect(self, allow: commands.Safety) -> object:
        return self.runner


@pytest.fixture
def to(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Way:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    found = _Way(world)
    monkeypatch.setattr(way, "to", lambda fleet: found)
    return found


def test_writes_one_file_and_each_node_holds_its_closure(world: World, to: _Way, tmp_path: Path) -> None:
    made, file = promote.promote(FLEET, promote.Wish("r7", "why", world.evidence))
    assert file == tmp_path / "manifests/baselines" / made.file
    assert baseline.known() == [made]
    for node in NODES:
        assert to.runner.of(node)[-2:] == [
            commands.hold("baseline-r7", path(node)).line(),
            commands.sync("/nix").line(),  # a power cut must not undo it
        ]
    later, _ = promote.promote(FLEET, promote.Wish("r8", "why", world.evidence))
    assert (later.previous, made.previous) == ("r7", None)


@pytest.mark.parametrize("wrong", [failed, experimental, is_open])
def test_what_is_refused_writes_nothing(
    world: World, to: _Way, tmp_path: Path, wrong: Callable[[World], None]
) -> None:
    wrong(world)
    to.runner.answers = world.runner().answers
    with pytest.raises(SparkserveError):
        promote.promote(FLEET, promote.Wish("r7", "why", world.evidence))
    assert not (tmp_path / "manifests").exists()
    assert not [line for _, line in to.runner.asked if "gcroots" in line and "readlink" not in line]


def test_a_taken_name_asks_no_node(world: World, to: _Way) -> None:
    promote.promote(FLEET, promote.Wish("r7", "why", world.evidence))
    to.runner.asked.clear()
    with pytest.raises(SparkserveError, match="promoted at"):
        promote.promote(FLEET, promote.Wish("r7", "other", world.evidence))
    assert to.runner.asked == []


def test_committed_schema_is_the_exported_one() -> None:
    # Another one is wanted: ./sparkserve baselines schema > docs/baseline.schema.json
    assert json.loads((ROOT / "docs/baseline.schema.json").read_text()) == baseline.schema()


def test_committed_baselines_are_some() -> None:
    for file in COMMITTED:
        made = baseline.load(file)
        assert file.read_text() == made.text()
        before = {each.name: each for each in baseline.known(file.parent) if each.fleet == made.fleet}
        assert made.previous is None or before[made.previous].promoted_at < made.promoted_at
