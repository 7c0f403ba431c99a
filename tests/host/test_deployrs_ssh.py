"""deploy-rs's own command lines through a real sshd, to the harness that is shipped and a profile of Nix.

That deploy-rs sends these lines is what tests/unit/deployrs_deployer.py says. 10 s once the harness is built.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from deployrs_ssh import World

from sparkserve.errors import EXIT_CODES

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("node"))
    yield made
    made.close()


def test_deploy_lose_the_connection_and_revoke(world: World) -> None:
    # The first one, where nothing is on PATH but what deploy-rs calls.
    assert world.deploy(world.old) == 0
    assert world.now() == (world.old, "old")

    # A dry run of the next one, and what deploy-rs then sends when another node's has failed.
    target = world.target(world.new)
    assert world.run(target.activate("--dry-activate")) == 0
    assert world.run(target.revoke()) == 0
    assert world.now() == (world.old, "old")

    # The connection is lost when the new closure is in effect: nobody confirms, and the node goes back.
    short = world.target(world.new, confirmTimeout=1)
    activate, wait = world.ssh(short.activate()), world.ssh(short.wait())
    assert wait.wait(60) == 0
    activate.send_signal(signal.SIGKILL)
    activate.wait()
    world.until("going back", lambda: world.now() == (world.old, "old"))
    world.until("its end", lambda: '"undone"' in session(world))
    # Too late: the file to delete is gone, and deploy-rs hears so.
    assert world.run(target.confirm()) != 0

    assert world.deploy(world.new) == 0
    assert world.now() == (world.new, "new")
    (world.folder / "run/rank").write_text("active\n")
    assert world.run(target.revoke()) == EXIT_CODES["DEPLOY.OPEN"]
    assert world.now() == (world.new, "new")
    (world.folder / "run/rank").write_text("inactive\n")
    assert world.run(target.revoke()) == 0
    assert world.now() == (world.old, "old")


def session(world: World) -> str:
    return (world.folder / "var/lib/sparkserve/deploy-rs/session.json").read_text()
