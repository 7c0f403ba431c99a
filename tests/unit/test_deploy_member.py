"""A node's side of a deployment: its lease, what it refuses, what it holds, and what it says afterwards."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import power_cuts
import pytest
from deploy_node import NODE, DeployNode, plan

from sparkserve.deploy.files import Files
from sparkserve.deploy.journal import Journal
from sparkserve.deploy.plan import Base, DeployPlan
from sparkserve.deploy.state import Past
from sparkserve.errors import SparkserveError
from sparkserve.host import record
from sparkserve.host.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sparkserve.deploy.member import Member
    from sparkserve.deploy.state import State

MANY = "you@laptop (process 7)"


@pytest.fixture
def node(tmp_path: Path) -> DeployNode:
    """A node that runs `one` and has `two` in its store."""
    made = DeployNode(tmp_path / "node")
    made.closure("one")
    made.closure("two")
    made.switch("/nix/store/one")
    return made


BASE = Base(generation=1, path="/nix/store/one")
PLAN = plan(BASE, "/nix/store/two")


def refused(do: Callable[[], State]) -> SparkserveError:
    with pytest.raises(SparkserveError) as raised:
        do()
    return raised.value


def test_kept(node: DeployNode) -> None:
    member = node.member
    now = member.begin(PLAN, "me").open
    assert now is not None and (now.id, now.plan, now.deployer, now.steps) == (PLAN.id, PLAN, "me", ())
    assert (node.held("deploy"), node.held("deploy-base")) == ("/nix/store/two", "/nix/store/one")
    for step in ("stopped", "activated", "stopped"):
        member.note(now.id, now.epoch, step)
    node.switch("/nix/store/two")
    decided = member.decide(now.id, now.epoch, "keep").open
    assert decided is not None and (decided.steps, decided.decided) == (("stopped", "activated"), "keep")
    assert member.decide(now.id, now.epoch, "keep").open == decided
    ended = member.end(now.id, now.epoch)
    assert ended == member.look() == member.end(now.id, now.epoch)
    assert ended.open is None and ended.past == (
        Past(
            id=PLAN.id,
            epoch=now.epoch,
            outcome="keep",
            path="/nix/store/two",
            generation=2,
            ended_at="2026-01-01T00:00:00Z",
        ),
    )
    assert (node.held("deploy"), node.held("deploy-base"), node.held("kept")) == (
        None,
        None,
        "/nix/store/two",
    )


def test_undone(node: DeployNode) -> None:
    """The base counts, not its number, and the next try begins from there."""
    first = node.member.begin(PLAN, "me").open
    assert first is not None
    node.switch("/nix/store/two")
    node.member.decide(first.id, first.epoch, "undo")
    error = refused(lambda: node.member.end(first.id, first.epoch))
    assert error.id == "DEPLOY.BASE" and "/nix/store/one" in error.expected and "two" in error.found
    back = node.switch("/nix/store/one")
    past = node.member.end(first.id, first.epoch).past[-1]
    assert (past.outcome, past.path, past.generation) == ("undo", "/nix/store/one", 3)
    assert (node.held("deploy"), node.held("kept")) == (None, None)
    second = node.member.begin(plan(back, "/nix/store/two"), "me").open
    assert second is not None and second.epoch > first.epoch


def test_same_plan_again(node: DeployNode) -> None:
    """A deployer of an earlier try cannot act in the next one, though both have the id of one plan."""
    first = node.member.begin(PLAN, "me").open
    assert first is not None
    node.member.decide(first.id, first.epoch, "undo")
    node.member.end(first.id, first.epoch)
    second = node.member.begin(PLAN, "you").open
    assert second is not None and second.id == first.id
    assert refused(lambda: node.member.decide(first.id, first.epoch, "keep")).id == "DEPLOY.FENCED"
    assert refused(lambda: node.member.end(first.id, first.epoch)).id == "DEPLOY.FENCED"


def test_first_deploy_undone(node: DeployNode) -> None:
    """With nothing to return to, nothing is current at its end."""
    node.forget()
    now = node.member.begin(plan(None, "/nix/store/two"), "me").open
    assert now is not None and node.held("deploy-base") is None
    node.switch("/nix/store/two")
    node.member.decide(now.id, now.epoch, "undo")
    assert refused(lambda: node.member.end(now.id, now.epoch)).id == "DEPLOY.BASE"
    node.forget()
    past = node.member.end(now.id, now.epoch).past[-1]
    assert (past.path, past.generation) == (None, None)


def test_leased(node: DeployNode) -> None:
    """Another deployer is told who has it; the same one, whose answer was lost, goes on."""
    begun = node.member.begin(PLAN, MANY)
    other = plan(BASE, "/nix/store/two", gates=("smoke",))
    before = node.lasting()
    for refuse in (PLAN, other):
        error = refused(lambda refuse=refuse: node.member.begin(refuse, "me"))  # type: ignore[misc]
        assert error.id == "DEPLOY.LEASE" and MANY in error.found and "2026-01-01" in error.found
        assert "--resume" in error.do
    assert node.member.begin(PLAN, MANY) == begun
    assert node.lasting() == before


def test_fenced(node: DeployNode) -> None:
    """Who was replaced can do nothing more, nor can who is late after the end."""
    old = node.member.begin(PLAN, "me").open
    assert old is not None
    new = node.member.take(old.id, old.epoch, "you").open
    assert new is not None and (new.id, new.deployer) == (old.id, "you")
    before = node.lasting()
    late: list[Callable[[], State]] = [
        lambda: node.member.take(old.id, old.epoch, "me"),
        lambda: node.member.note(old.id, old.epoch, "stopped"),
        lambda: node.member.decide(old.id, old.epoch, "keep"),
        lambda: node.member.end(old.id, old.epoch),
    ]
    for do in late:
        error = refused(do)
        assert error.id == "DEPLOY.FENCED" and "you" in error.expected
    assert node.lasting() == before
    node.member.decide(new.id, new.epoch, "undo")
    assert refused(lambda: node.member.decide(new.id, new.epoch, "keep")).id == "DEPLOY.FENCED"
    node.member.end(new.id, new.epoch)
    assert all(refused(do).id == "DEPLOY.FENCED" for do in late)


def test_not_ended_before_the_decision(node: DeployNode) -> None:
    now = node.member.begin(PLAN, "me").open
    assert now is not None
    assert refused(lambda: node.member.end(now.id, now.epoch)).id == "DEPLOY.OPEN"
    assert node.member.look().open == now


def by_hand(node: DeployNode) -> None:
    record.save(node.node.system, Record(node=NODE, closure="/nix/store/by-hand"))


def foreign(node: DeployNode) -> None:
    (node.node.system.at("/nix/store/one") / "plan.json").unlink()


def to(path: str) -> Callable[[DeployNode], None]:
    """Let the profile be a link to `path`."""

    def change(node: DeployNode) -> None:
        node.profile.unlink()
        node.profile.symlink_to(path)

    return change


def no_store_path(node: DeployNode) -> None:
    node.profile.unlink()
    node.profile.symlink_to("sparkserve-9-link")
    node.profile.with_name("sparkserve-9-link").symlink_to("some where")


def no_link(node: DeployNode) -> None:
    node.profile.unlink()
    node.profile.mkdir()


def others(name: str) -> Callable[[DeployNode], None]:
    """Let `name` be the closure of another node."""

    def change(node: DeployNode) -> None:
        plan_json = node.node.system.at(f"/nix/store/{name}") / "plan.json"
        plan_json.write_text(
            plan_json.read_text().replace('"node": {"name": "spark-0"', '"node": {"name": "spark-1"')
        )

    return change


@pytest.mark.parametrize(
    ("change", "asked", "id", "says"),
    [
        (lambda node: node.switch("/nix/store/one"), PLAN, "DEPLOY.BASE", "generation 2, /nix/store/one"),
        (lambda node: node.switch("/nix/store/two"), PLAN, "DEPLOY.BASE", "generation 1, /nix/store/one"),
        (DeployNode.forget, PLAN, "DEPLOY.BASE", "no generation"),
        (lambda node: None, plan(None, "/nix/store/two"), "DEPLOY.BASE", "no generation"),
        (by_hand, PLAN, "DEPLOY.BASE", "/nix/store/by-hand"),
        (lambda node: None, plan(BASE, "/nix/store/gone"), "NODE.CLOSURE", "nothing there"),
        (others("two"), PLAN, "NODE.CLOSURE", "spark-1"),
        (others("one"), PLAN, "NODE.CLOSURE", "spark-1"),
        (foreign, PLAN, "NODE.CLOSURE", "left alone"),
        (to("/nix/store/one"), PLAN, "NODE.CLOSURE", "left alone"),
        (to("sparkserve-9-link"), PLAN, "NODE.CLOSURE", "a link to nothing"),
        (no_link, PLAN, "NODE.CLOSURE", "no link"),
        (no_store_path, PLAN, "NODE.CLOSURE", "none to a store path"),
        (
            lambda node: None,
            PLAN.model_copy(update={"members": PLAN.members[1:]}),
            "NODE.CLOSURE",
            "the host name spark-0",
        ),
    ],
)
def test_not_begun(
    node: DeployNode, change: Callable[[DeployNode], object], asked: DeployPlan, id: str, says: str
) -> None:
    """What is not as the plan says, or is not ours, is named and left as it is."""
    change(node)
    before = power_cuts.read(node.node.root)
    error = refused(lambda: node.member.begin(asked, "me"))
    assert error.id == id and says in str(error)
    assert power_cuts.read(node.node.root) == before
    assert node.member.look().open is None


class Full(Files):
    """A disk without room at the call `number`."""

    def __init__(self, number: int) -> None:
        self.number = number

    def _room(self, path: Path) -> None:
        self.number -= 1
        if self.number == -1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def create(self, path: Path) -> None:
        self._room(path)
        super().create(path)

    def link(self, path: Path, target: str) -> None:
        self._room(path)
        super().link(path, target)

    def write(self, path: Path, at: int, data: bytes) -> None:
        super().write(path, at, data[:10])
        self._room(path)
        super().write(path, at, data)


def test_full_disk(node: DeployNode) -> None:
    """A command that finds no room changes nothing that counts, says so, and can be given again."""
    commands: list[tuple[Callable[[Member], State], int]] = [
        (lambda member: member.begin(PLAN, "me"), 4),
        (lambda member: member.note(PLAN.id, 1, "stopped"), 1),
        (lambda member: member.take(PLAN.id, 1, "you"), 1),
        (lambda member: member.decide(PLAN.id, 2, "keep"), 1),
        (lambda member: member.end(PLAN.id, 2), 2),
    ]
    for do, calls in commands:
        known = node.member.look()
        if known.open is not None and known.open.decided:
            node.switch("/nix/store/two")
        for number in range(calls):
            error = refused(lambda do=do, number=number: do(node.with_files(Full(number))))  # type: ignore[misc]
            assert error.id == "HOST.DISK" and "sparkserve" in error.where
            assert node.member.look() == known
        assert do(node.with_files(Full(calls))) == node.member.look() != known


def test_damaged_journal(node: DeployNode) -> None:
    """Nothing begins beside a journal that cannot be read, nor beside one that makes no sense."""
    node.member.begin(PLAN, "me")
    file = next(node.member.folder.iterdir())
    whole = file.read_bytes()
    for damaged in (whole.replace(b"me", b"ME"), whole * 2):
        file.write_bytes(damaged)
        for do in (node.member.look, lambda: node.member.begin(PLAN, "me")):
            error = refused(do)
            assert error.id == "DEPLOY.JOURNAL" and str(file) in error.where
        assert file.read_bytes() == damaged
    file.write_bytes(whole)
    file.rename(file.with_name("000001-ba9876543210"))
    assert refused(node.member.look).id == "DEPLOY.JOURNAL"


def test_journal_of_another_kind(node: DeployNode) -> None:
    """Whole lines that no version of ours has written."""
    whole = PLAN.model_dump(mode="json")
    journal = Journal.create(node.member.folder, PLAN.id)
    journal.append("begun", epoch="1", plan=whole, deployer="me", at="now")
    assert refused(node.member.look).id == "DEPLOY.JOURNAL"


def test_copied_journal(node: DeployNode) -> None:
    """A deployment that is there twice would be one in which a late deployer could act."""
    now = node.member.begin(PLAN, "me").open
    assert now is not None
    file = next(node.member.folder.iterdir())
    begun = file.read_bytes()
    node.member.decide(now.id, now.epoch, "undo")
    node.member.end(now.id, now.epoch)
    file.with_name(file.name.replace("1", "2", 1)).write_bytes(begun)
    assert refused(node.member.look).id == "DEPLOY.JOURNAL"


def test_looking_changes_nothing(node: DeployNode) -> None:
    before = sorted(node.node.root.rglob("*"))
    assert node.member.look().open is None
    assert sorted(node.node.root.rglob("*")) == before
