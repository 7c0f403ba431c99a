"""activate-rs on a node in a folder: what it goes back to, and what it leaves alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from deployrs_world import PowerCutError, World
from host_node import RANK

from sparkserve.commands import HOLDS, PROFILE
from sparkserve.deploy.plan import Base, DeployPlan
from sparkserve.deploy.plan import Member as Planned
from sparkserve.errors import EXIT_CODES

if TYPE_CHECKING:
    from pathlib import Path

OK, REBOOT, UNDONE, OPEN = 0, *(EXIT_CODES[id] for id in ("NODE.REBOOT", "DEPLOY.UNDONE", "DEPLOY.OPEN"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def two(world: World) -> tuple[str, str]:
    """The closure that is current and in effect, and the next one."""
    old, new = world.closure("old"), world.closure("new")
    world.bring(old)
    return old, new


def test_a_confirmed_activation_stays(world: World, two: tuple[str, str]) -> None:
    old, new = two
    assert world.deploy(new) == OK
    assert world.now() == (new, new, {1: old, 2: new})
    assert world.called == [f"{new}/deploy-rs-activate"]
    assert world.told == [{"PROFILE": new, "DRY_ACTIVATE": "0", "BOOT": "0"}]
    assert not os.path.lexists(world.system.at(f"{HOLDS}/deploy-rs"))


def test_without_a_confirmation_the_node_goes_back(world: World, two: tuple[str, str]) -> None:
    old, new = two
    before = world.now()
    # Also with --auto-rollback false: the deployer may not reach the node any more.
    for rollback in (True, False):
        world.forget()
        assert world.deploy(new, confirm=False, autoRollback=rollback) == UNDONE
        assert world.now() == before
        assert world.called == [f"{new}/deploy-rs-activate", f"{old}/bin/activate"]


def test_a_failed_activation_goes_back_or_stays_as_asked(world: World, two: tuple[str, str]) -> None:
    old, new = two
    before = world.now()
    world.codes[f"{new}/deploy-rs-activate"] = 74
    assert world.deploy(new) == UNDONE
    assert world.now() == before and world.called[-1] == f"{old}/bin/activate"
    world.forget()
    assert world.deploy(new, autoRollback=False) == EXIT_CODES["NODE.ACTIVATE"]
    assert world.called == [f"{new}/deploy-rs-activate"]
    # What has failed was never current.
    assert world.now() == before


def test_it_goes_back_to_what_ran_and_not_to_the_number_below(world: World, two: tuple[str, str]) -> None:
    # Somebody went from 2 back to 1: deploy-rs's own would undo 3 to 2, which did not run.
    one, other = two
    world.bring(other)
    world.node._nix_env("--switch-generation", "1")
    world._call(world.system.at(f"{one}/bin/activate"), {})
    third = world.closure("third")
    assert world.deploy(third, confirm=False) == UNDONE
    assert world.now() == (one, one, {1: one, 2: other})
    # The newest generation, which is not the current one, is taken again, and stays.
    assert world.deploy(other, confirm=False) == UNDONE
    assert world.now() == (one, one, {1: one, 2: other})


def test_what_is_current_already_makes_no_generation_and_stays(world: World, two: tuple[str, str]) -> None:
    old, _ = two
    first = world.now()
    for confirm, code in ((True, OK), (False, UNDONE)):
        assert world.deploy(old, confirm=confirm) == code
        assert world.now() == first
    world.codes[f"{old}/deploy-rs-activate"] = 74
    assert world.deploy(old) == UNDONE
    assert world.now() == first
    # A group that runs it may go on.
    world.folder.ran.add(RANK)
    world.codes.clear()
    assert world.deploy(old) == OK
    assert world.run(world.target(old).revoke()) == OK
    assert world.now() == first


def test_a_first_deploy_that_fails_is_deactivated(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    new = world.closure("new")
    assert world.deploy(new, confirm=False) == UNDONE
    said = capsys.readouterr().err
    assert said.index("there is none to go back to") < said.index("deploy-rs-activate ends with 0")
    assert world.now() == (None, None, {})
    assert not os.path.lexists(world.system.at(PROFILE))
    assert world.called == [f"{new}/deploy-rs-activate", f"{new}/bin/deactivate"]
    assert world.deploy(new) == OK
    assert world.now() == (new, new, {1: new})


def test_one_that_only_a_reboot_completes_is_not_called_done(world: World, two: tuple[str, str]) -> None:
    old, new = two
    before = world.now()
    world.codes = {f"{new}/deploy-rs-activate": REBOOT, f"{old}/bin/activate": REBOOT}
    assert world.deploy(new) == UNDONE
    assert world.now() == before
    assert world.deploy(new, autoRollback=False) == REBOOT
    assert world.now()[1] == new
    world.codes.clear()  # rebooted
    assert world.deploy(new) == OK
    assert world.now() == (new, new, {1: old, 2: new})


def test_a_dry_run_changes_nothing_and_makes_revoke_harmless(world: World, two: tuple[str, str]) -> None:
    # deploy-rs revokes the nodes before the one whose dry run failed.
    old, new = two
    for closure in (new, old):
        before = world.now()
        assert world.deploy(closure, "--dry-activate") == OK
        assert world.told[-1] == {"PROFILE": closure, "DRY_ACTIVATE": "1", "BOOT": "0"}
        assert world.run(world.target(closure).revoke()) == OK
        assert world.now() == before
    assert world.deploy(new) == OK
    stands = world.now()
    world.forget()
    assert world.deploy(new, "--dry-activate") == OK
    assert world.run(world.target(new).revoke()) == OK
    assert world.now() == stands and world.called == [f"{new}/deploy-rs-activate"]
    # Also when the last one that was activated is another one.
    third = world.closure("third")
    assert world.deploy(third) == OK
    stands = world.now()
    for closure in (new, world.closure("fourth")):
        assert world.deploy(closure, "--dry-activate") == OK
        assert world.run(world.target(closure).revoke()) == OK
    assert world.now() == stands


def test_revoke_goes_back_once(world: World, two: tuple[str, str]) -> None:
    old, new = two
    before = world.now()
    assert world.deploy(new) == OK
    for _ in range(2):
        assert world.run(world.target(new).revoke()) == OK
        assert world.now() == before
    assert world.called == [f"{new}/deploy-rs-activate", f"{old}/bin/activate"]


def test_a_running_group_is_left_alone(world: World, two: tuple[str, str]) -> None:
    _, new = two
    before = world.now()
    world.folder.ran.add(RANK)
    assert world.deploy(new) == EXIT_CODES["NODE.ACTIVATE"]
    assert world.now() == before and world.called == []
    # What was deployed is revoked when the group is stopped again.
    world.folder.ran.clear()
    assert world.deploy(new) == OK
    after = world.now()
    world.folder.ran.add(RANK)
    assert world.run(world.target(new).revoke()) == OPEN
    assert world.now() == after
    world.folder.ran.clear()
    assert world.run(world.target(new).revoke()) == OK
    assert world.now() == before


def test_an_open_deployment_has_the_node(world: World, two: tuple[str, str]) -> None:
    old, new = two
    assert world.deploy(new) == OK
    plan = _plan(new, 2, world.closure("next"))
    open_ = world.member.begin(plan, "somebody").open
    assert open_ is not None
    before = world.now()
    world.forget()
    for line in (world.target(new).activate(), world.target(new).activate("--dry-activate")):
        assert world.run(line) == EXIT_CODES["DEPLOY.LEASE"]
    assert world.run(world.target(new).revoke()) == EXIT_CODES["DEPLOY.LEASE"]
    world.member.decide(open_.id, open_.epoch, "undo")
    world.member.end(open_.id, open_.epoch)
    # It began from here: to go back behind it is no longer deploy-rs's affair.
    assert world.run(world.target(new).revoke()) == EXIT_CODES["DEPLOY.BASE"]
    assert world.now() == before and world.called == []
    assert world.deploy(old) == OK


def test_what_a_deployment_has_kept_since_is_what_to_go_back_to(world: World, two: tuple[str, str]) -> None:
    old, new = two
    world.codes = {f"{old}/bin/activate": 74}
    assert world.deploy(new, confirm=False) == OPEN
    world.codes.clear()
    open_ = world.member.begin(_plan(new, 2, new), "somebody").open
    assert open_ is not None
    world.member.decide(open_.id, open_.epoch, "keep")
    world.member.end(open_.id, open_.epoch)
    kept = world.now()
    assert world.deploy(world.closure("third"), confirm=False) == UNDONE
    assert world.now() == kept


def _plan(base: str, generation: int, target: str) -> DeployPlan:
    member = Planned(name="spark-1", base=Base(generation=generation, path=base), target=target, bytes=1)
    return DeployPlan(fleet="f", members=(member,), base_fleet_id=None, target_fleet_id="t")


def test_a_deployment_does_not_begin_while_a_confirmation_is_waited_for(
    world: World, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sparkserve.deploy import member
    from sparkserve.errors import SparkserveError

    _, new = two
    monkeypatch.setattr(member, "LOCK_S", 0)
    met: list[Any] = []

    def confirmed(*_: object) -> bool:
        with pytest.raises(SparkserveError, match=r"DEPLOY\.LEASE"):
            world.member.begin(_plan(new, 2, new), "somebody")
        met.append(world.run(world.target(new).activate()))
        return True

    monkeypatch.setattr("sparkserve.deployrs.canary.taken", confirmed)
    assert world.deploy(new, confirm=False) == OK
    assert met == [EXIT_CODES["DEPLOY.LEASE"]]


def test_what_is_not_this_nodes_is_untouched(world: World, two: tuple[str, str]) -> None:
    _, new = two
    before = world.now()
    assert world.deploy(world.closure("theirs", node="spark-2")) == EXIT_CODES["NODE.CLOSURE"]
    assert world.now() == before
    foreign = world.closure("foreign", node="spark-2")
    world.node.switch(foreign)
    links = world.generations()
    world.forget()
    assert world.deploy(new) == EXIT_CODES["NODE.CLOSURE"]
    assert world.generations() == links and world.called == []


def test_what_somebody_else_made_current_since_is_untouched(world: World, two: tuple[str, str]) -> None:
    _, new = two
    assert world.deploy(new) == OK
    world.bring(world.closure("third"))
    after = world.now()
    assert world.run(world.target(new).revoke()) == EXIT_CODES["DEPLOY.BASE"]
    assert world.now() == after and world.called == []


def test_a_rollback_that_fails_says_so_and_can_be_done_later(
    world: World, two: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = two
    before = world.now()
    world.codes = {f"{old}/bin/activate": 74}
    assert world.deploy(new, confirm=False) == OPEN
    assert f"{new}/activate-rs revoke --profile-path {PROFILE}" in " ".join(capsys.readouterr().err.split())
    assert world.deploy(new, "--dry-activate") == OPEN
    world.codes.clear()
    assert world.run(world.target(new).revoke()) == OK
    assert world.now() == before


@pytest.mark.parametrize("first", [False, True], ids=["next", "first"])
@pytest.mark.parametrize("how", ["revoke", "again"])
def test_after_a_power_cut_anywhere_it_goes_back_or_on(tmp_path: Path, how: str, first: bool) -> None:
    cut = 0
    while True:
        world = World(tmp_path / str(cut), nix=False)
        old, new = (None if first else world.closure("old")), world.closure("new")
        if old is not None:
            world.bring(old)
        before, world.cut = world.now(), cut
        try:
            # Unconfirmed, so that the cuts are also in the rollback.
            world.deploy(new, confirm=False)
            break
        except PowerCutError:
            pass
        world.cut = None
        if how == "again":
            assert world.deploy(new) == OK
            assert world.now()[:2] == (new, new)
        assert world.run(world.target(new).revoke()) == OK
        assert world.now() == before, world.steps
        cut += 1
    assert cut >= 10
