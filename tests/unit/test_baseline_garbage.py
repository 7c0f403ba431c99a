"""What is garbage on nodes, and that Nix deletes that and nothing else: on a real store in a folder."""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from baseline_world import FLEET, ID, NODES, OTHER, World, opened, past

from sparkserve import commands, nix
from sparkserve.deploy import garbage, standing, survey
from sparkserve.deploy.state import State
from sparkserve.errors import SparkserveError
from sparkserve.runner import Recorded, Result
from sparkserve.transport import deliver

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sparkserve.commands import Command
    from sparkserve.deploy.baseline import Baseline
    from sparkserve.deploy.garbage import Garbage

THIRD = "33" * 32
SETTINGS = "build-users-group =\nfsync-metadata = false"  # nobody cuts the power of a test
LAYER = "/nix/store/" + "9" * 32 + "-layer"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def db(*paths: tuple[str, int, Sequence[str]]) -> str:
    """What `nix-store --dump-db` prints."""
    return "".join(
        "\n".join([path, "0" * 64, str(size), "", str(len(refs)), *refs]) + "\n" for path, size, refs in paths
    )


def runner(world: World, held: dict[str, str] | None = None) -> Recorded:
    """The nodes, each with a store: each closure has a layer of its own, and all share LAYER."""
    found = world.runner()
    answers = dict(found.answers)
    for node in world.nodes.values():
        links = {f"{commands.PROFILE}-{n}-link": node.path(v) for n, v in node.generations.items()}
        links |= {f"{commands.HOLDS}/{name}": node.path(v) for name, v in (held or {}).items()}
        roots = "".join(f"{link} -> {path}\n" for link, path in links.items())
        rows: list[tuple[str, int, Sequence[str]]] = [(LAYER, 1000, [LAYER])]
        for version in {*node.generations.values(), "z"}:  # z: copied, and never a generation
            rows += [(node.path(version), 10, [LAYER, own(version)]), (own(version), 100, [])]
        answers[node.name, commands.gc_roots().line()] = Result(0, roots)
        answers[node.name, commands.registered().line()] = Result(0, db(*rows))
    return Recorded(answers, allow=commands.Safety.READS_HOSTS)


def own(version: str) -> str:
    return f"/nix/store/{version * 32}-layer"


def five(world: World) -> None:
    """Generations a to e: b and c were kept, e runs and was kept last, a and d never were."""
    ids = {"a": "aa" * 32, "b": OTHER, "c": THIRD, "d": "dd" * 32, "e": ID}
    for name, node in world.nodes.items():
        node.generations, node.current, node.ids = dict(enumerate("abcde", 1)), 5, ids
        node.state = State(past=tuple(past(name, version) for version in "bce"))


def find(world: World, *baselines: Baseline, held: dict[str, str] | None = None) -> dict[str, Garbage]:
    return garbage.find(runner(world, held), FLEET, NODES, baselines)


def numbers(found: dict[str, Garbage]) -> dict[str, list[int]]:
    return {node: [each.number for each in there.generations] for node, there in found.items()}


def test_what_runs_was_kept_last_or_is_gone_back_to_stays(world: World) -> None:
    five(world)
    found = find(world)
    assert numbers(found) == {key: [1, 2, 4] for key in NODES}
    there = found["spark-1"]
    closures = {world.nodes["spark-1"].path(version) for version in "abdz"}
    assert set(there.paths) == closures | {own(version) for version in "abdz"}
    assert there.bytes == 4 * 110


def test_what_was_kept_last_stays_under_an_experiment(world: World) -> None:
    five(world)
    for node in world.nodes.values():
        node.current = 4
    assert numbers(find(world)) == {key: [1, 2, 3] for key in NODES}


def promoted(world: World, fleet: str = FLEET, fleet_id: str = OTHER) -> Baseline:
    """A baseline of generation b, made before there were others."""
    return world.make().model_copy(update={"fleet": fleet, "fleet_id": fleet_id})


def test_baselines_stay(world: World) -> None:
    made = promoted(world)
    five(world)
    assert numbers(find(world, made)) == {key: [1, 4] for key in NODES}
    other = made.model_copy(update={"fleet": "other"})
    assert numbers(find(world, other)) == {key: [1, 2, 4] for key in NODES}


def test_what_a_node_holds_stays_without_the_manifest(world: World) -> None:
    five(world)
    assert numbers(find(world, held={"baseline-r7": "a"})) == {key: [2, 4] for key in NODES}


def test_all_nodes_keep_what_one_of_them_runs(world: World) -> None:
    five(world)
    world.nodes["spark-2"].current = 1
    assert numbers(find(world)) == {key: [2, 4] for key in NODES}


def test_what_is_not_ours_stays(world: World) -> None:
    five(world)
    world.nodes["spark-0"].of = "spark-1"
    assert numbers(find(world)) == {"spark-0": [], "spark-1": [1, 2, 4], "spark-2": [1, 2, 4]}


def test_refuses_while_a_deployment_is_open(world: World) -> None:
    world.nodes["spark-1"].state = opened("spark-1")
    with pytest.raises(SparkserveError) as caught:
        find(world)
    assert caught.value.id == "DEPLOY.LEASE"


def test_refuses_when_another_closure_runs(world: World) -> None:
    five(world)
    world.nodes["spark-1"].runs = world.nodes["spark-1"].path("a")
    with pytest.raises(SparkserveError) as caught:
        find(world)
    assert caught.value.id == "DEPLOY.BASE"


def test_without_any_generation_only_what_nothing_holds_goes(world: World) -> None:
    for node in world.nodes.values():
        node.generations, node.current = {}, None
    found = find(world)
    assert numbers(found) == {key: [] for key in NODES}
    assert found["spark-0"].bytes == 1110


def test_never_what_runs_or_was_kept_last_whatever_the_history(world: World) -> None:
    seed = secrets.randbits(32)
    print("seed", seed)
    draw = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(40):
        versions = draw.choices("abcdef", k=draw.randrange(1, 9))
        for name, node in world.nodes.items():
            node.generations = dict(enumerate(versions, 1))
            node.ids = {version: version * 64 for version in "abcdef"}
            node.current = draw.choice(list(node.generations))
            kept = draw.sample(versions, draw.randrange(len(versions) + 1))
            node.state = State(past=tuple(past(name, each, draw.choice(["keep", "undo"])) for each in kept))
        for name, there in find(world).items():
            node = world.nodes[name]
            assert node.current is not None and node.state is not None
            stays = {node.path(node.generations[node.current])}
            stays |= {each.path for each in node.state.past[-1:] if each.path and each.outcome == "keep"}
            assert not stays & {each.path for each in there.generations}
            assert not {*stays, LAYER} & there.paths.keys()


def test_says_what_is_desired_and_who_has_something_else(world: World) -> None:
    made = world.make()
    found = survey.survey(world.runner(), NODES)
    assert "all nodes have it" in standing.words(found, FLEET, [made])
    world.nodes["spark-1"].generations, world.nodes["spark-1"].current = {1: "a", 2: "b", 3: "c"}, 3
    world.nodes["spark-1"].ids["c"] = THIRD
    world.nodes["spark-2"].current = None
    found = survey.survey(world.runner(), NODES)
    said = standing.words(found, FLEET, [made])
    assert f"baseline r7 of {made.promoted_at}" in said
    assert f"spark-1 has {THIRD[:12]}, experimental; spark-2 has nothing." in said
    assert "spark-0" not in said
    rows = standing.rows(found, FLEET, [made])
    assert {(row["generation"], row["baseline"], row["desired"]) for row in rows} == {
        (1, None, False), (2, "r7", True), (3, None, False),
    }  # fmt: skip
    assert "nothing is desired" in standing.words(found, FLEET, [made.model_copy(update={"fleet": "other"})])


class RealStore(Recorded):
    """One node whose Nix is real: its store, its profile and its roots are in a folder."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.env = {**os.environ, "NIX_REMOTE": f"local?root={root}", "NIX_CONFIG": SETTINGS}
        for folder in (commands.HOLDS, commands.PROFILE.rpartition("/")[0]):
            self.at(folder).mkdir(parents=True)

    def at(self, path: str) -> Path:
        """Where a path of the node is."""
        return self.root / path.lstrip("/")

    def run(self, node: str, command: Command, *, feed: Sequence[str] | None = None) -> Result:
        known = (commands.held("deploy"), commands.held("kept"), commands.current(), commands.sync("/nix"))
        if command in known or (node, command.line()) in self.answers:
            return super().run(node, command)
        # Store paths are names for Nix; only who reads what is in them needs their place.
        reads = "read" in command.argv[:4]
        words = [
            str(self.at(word))
            if word in (commands.PROFILE, commands.HOLDS) or (reads and word[0] == "/")
            else word
            for word in command.argv
        ]
        done = subprocess.run(words, capture_output=True, text=True, env=self.env)
        return Result(done.returncode, done.stdout.replace(str(self.root), ""), done.stderr)

    def nix(self, *argv: str, given: str | None = None) -> str:
        """What a program of Nix says about this store."""
        done = subprocess.run(argv, capture_output=True, text=True, env=self.env, input=given)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def add(self, name: str, files: dict[str, str], *references: str) -> str:
        """Add a path that refers to others."""
        made = self.root / name
        made.mkdir()
        for file, text in files.items():
            (made / file).write_text(text)
        path = self.nix("nix-store", "--add", str(made))
        shutil.rmtree(made)
        record = self.nix("nix-store", "--dump-db", path).splitlines()[:4]
        self.nix(
            "nix-store", "--load-db", given="\n".join([*record, str(len(references)), *references]) + "\n"
        )
        return path

    def closure(self, version: str, *references: str, node: str = "spark-0") -> str:
        """A host closure, whose fleet id begins with `version`."""
        plan = {"fleet": {"name": FLEET}, "node": {"name": node}}
        texts = {"plan.json": json.dumps(plan), "closure.json": json.dumps({"fleet_id": version * 64})}
        layer = self.add(f"layer-{version}", {"bytes": version * 5000})
        return self.add(f"host-{version}", texts, layer, *references)

    def says(self, command: Command, text: str) -> None:
        """Answer a command that is not of Nix."""
        self.answers = {**self.answers, ("spark-0", command.line()): Result(0 if text else 1, text)}

    def there(self) -> set[str]:
        """All valid paths, by their names; each is really there."""
        paths = nix.parse_db(self.nix("nix-store", "--dump-db"))
        assert all(self.at(path).exists() for path in paths)
        assert {path.name for path in self.at("/nix/store").iterdir() if path.name[0] != "."} == {
            path.rpartition("/")[2] for path in paths
        }
        return {path.partition("-")[2] for path in paths}


@pytest.mark.skipif(shutil.which("nix-store") is None, reason="no Nix in the sandbox")
def test_nix_deletes_that_and_nothing_else(tmp_path: Path) -> None:
    store = RealStore(tmp_path)
    shared = store.add("layer-shared", {"bytes": "s" * 9000})
    paths = {version: store.closure(version, shared) for version in "abcde"}
    paths["f"] = store.closure("f", node="spark-1")
    store.closure("1", shared)  # a copy that was interrupted: no generation has it
    for version in "fabcde":
        assert store.run("spark-0", commands.make_current(paths[version], "incoming")).code == 0
    assert store.run("spark-0", commands.hold("baseline-r7", paths["a"])).code == 0
    kept = [
        past("spark-0", version).model_copy(update={"path": paths[version]}) for version in ("b", "c", "e")
    ]
    state = State(past=tuple(kept))
    store.says(commands.current(), paths["e"] + "\n")
    store.says(commands.deploy_member(f"{paths['e']}/bin/sparkserve", "look"), state.model_dump_json())
    units = ("sparkserve-rank.service", "sparkserve-front.service")
    shown = [f"Id={unit}\nActiveState=active\nExecStart={{ path={paths['e']}/bin/x }}" for unit in units]
    store.says(commands.shown_units(*units), "\n\n".join(shown))

    before = store.there()
    found = garbage.find(store, FLEET, ["spark-0"], [])
    assert numbers(found) == {"spark-0": [3, 5]}  # b, which c replaced, and d; f is not ours, a is held
    there = found["spark-0"]
    names = {path.partition("-")[2] for path in there.paths}
    assert names == {f"{what}-{version}" for what in ("host", "layer") for version in "bd1"}
    assert there.bytes > 3 * 5000
    assert store.there() == before

    gone = garbage.delete(store, found)["spark-0"]
    assert store.there() == before - names
    assert (gone.paths, gone.bytes) == (there.paths, there.bytes)
    assert {each.path for each in deliver.generations(store, "spark-0")} == {
        paths[version] for version in "acef"
    }
    again = garbage.find(store, FLEET, ["spark-0"], [])
    assert (numbers(again), again["spark-0"].bytes) == ({"spark-0": []}, 0)


@pytest.mark.skipif(shutil.which("nix-store") is None, reason="no Nix in the sandbox")
def test_nix_refuses_to_delete_the_current_generation(tmp_path: Path) -> None:
    # What may change between the question and the deletion is the current generation.
    store = RealStore(tmp_path)
    path = store.closure("a")
    store.run("spark-0", commands.make_current(path, "incoming"))
    store.run("spark-0", commands.delete_generations("1"))
    store.run("spark-0", commands.collect_garbage())
    assert store.there() == {"host-a", "layer-a"}
