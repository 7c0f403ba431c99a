"""The order of a delivery and of a rollout, on a recorded runner."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sparkserve import commands
from sparkserve.deploy import lease
from sparkserve.errors import SparkserveError
from sparkserve.group.protocol import Status
from sparkserve.runner import Recorded, Result
from sparkserve.transport import deliver, rollout

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = Path("/nix/store/00000000000000000000000000000000-host")
LAYER = "/nix/store/11111111111111111111111111111111-layer"
NODES = {"spark-0": PATH, "spark-1": PATH}
Answers = dict[tuple[str, str] | str, Result]
PATHS = [LAYER, str(PATH)]
NOT_YET: Answers = {commands.unverified(str(PATH)).line(): Result(0, "\n".join(PATHS) + "\n")}


def lines(*made: commands.Command) -> list[str]:
    return [command.line() for command in made]


def test_held_copied_synced_and_read_before_anything_else() -> None:
    runner = Recorded(NOT_YET)
    deliver.deliver(runner, NODES)
    for node in NODES:
        assert runner.of(node) == lines(
            commands.hold("incoming", str(PATH)),
            commands.copy_closure(node, str(PATH)),
            commands.sync("/nix/store"),
            commands.unverified(str(PATH)),
            commands.verify(*PATHS),
            commands.note_verified(*PATHS),
        )


def test_what_a_node_has_is_verified_and_not_sent() -> None:
    runner = Recorded(NOT_YET)
    deliver.deliver(runner, NODES, there=["spark-1"])
    sent = commands.copy_closure("spark-1", str(PATH)).line()
    assert [line for line in runner.of("spark-0") if line not in runner.of("spark-1")] == [
        commands.copy_closure("spark-0", str(PATH)).line()
    ]
    assert sent not in runner.of("spark-1")
    assert commands.verify(*PATHS).line() in runner.of("spark-1")


def test_a_path_is_verified_once_per_power_on() -> None:
    for left in ([], [str(PATH)]):
        runner = Recorded({commands.unverified(str(PATH)).line(): Result(0, "".join(left))})
        deliver.deliver(runner, {"spark-0": PATH})
        read = [line for line in runner.of("spark-0") if " verify " in line]
        assert read == [commands.verify(*left).line() for _ in left]


class Damaged(Recorded):
    """Says that a path was modified until it has been restored `times` times."""

    def __init__(self, times: int, text: str) -> None:
        super().__init__(NOT_YET)
        self.times, self.text = times, text

    def run(self, node: str, command: commands.Command, **given: Any) -> Result:
        result = super().run(node, command, **given)
        if command == commands.restore(LAYER):
            self.times -= 1
        if command == commands.verify(*PATHS) and self.times > 0:
            return Result(2, "", self.text)
        return result


@pytest.mark.parametrize(
    "text",
    [
        f"path '{LAYER}' was modified! expected hash 'sha256:a', got 'sha256:b'",
        f"warning: {PATH}\nerror: getting status of '{LAYER}/bin/x': No such file or directory",
    ],
)
def test_what_is_damaged_is_sent_again_and_read_again(text: str) -> None:
    runner = Damaged(1, text)
    deliver.deliver(runner, {"spark-0": PATH})
    assert runner.of("spark-0")[4:] == [
        commands.verify(*PATHS).line(),
        f"nix-store --dump {LAYER} | {commands.restore(LAYER).line()}",
        commands.verify(*PATHS).line(),
        commands.note_verified(*PATHS).line(),
    ]


def test_what_stays_damaged_is_an_error() -> None:
    with pytest.raises(SparkserveError, match="1 damaged paths after a repair") as caught:
        deliver.deliver(Damaged(2, f"path '{LAYER}' was modified!"), {"spark-0": PATH})
    assert caught.value.id == "NODE.STORE"


def test_a_verification_that_says_nothing_useful_is_an_error() -> None:
    with pytest.raises(SparkserveError, match="exit code 2: out of memory"):
        deliver.deliver(Damaged(1, "out of memory"), {"spark-0": PATH})


def test_the_first_nodes_error_is_raised_and_the_others_told(capsys: pytest.CaptureFixture[str]) -> None:
    runner = Recorded({commands.sync("/nix/store").line(): Result(1, "", "disk gone")})
    with pytest.raises(SparkserveError, match="where: spark-0"):
        deliver.deliver(runner, NODES)
    assert "where: spark-1" in capsys.readouterr().err


@pytest.mark.parametrize("ask", [deliver.generations, lease.look_at])
def test_a_shell_that_greets_is_told_of(ask: Callable[[Recorded, str], object]) -> None:
    """Else its words would be taken for numbers, or for the path of a program."""
    said = Result(0, "Welcome to DGX Spark\n")
    answers: Answers = {commands.generations().line(): said, commands.held("deploy").line(): said}
    with pytest.raises(SparkserveError) as caught:
        ask(Recorded(answers), "spark-0")
    assert (caught.value.id, caught.value.found) == ("NODE.COMMAND", "Welcome to DGX Spark")
    assert "~/.bashrc" in caught.value.do


@pytest.mark.parametrize(
    "said", [Result(255, "", "?"), Result(3, "/nix/store/x"), Result(0, "/nix/store/\0")]
)
def test_who_does_not_say_whether_a_deployment_is_open_is_not_taken_for_a_no(said: Result) -> None:
    with pytest.raises(SparkserveError, match=r"NODE\.COMMAND"):
        lease.look_at(Recorded({commands.held("deploy").line(): said}), "spark-0")


def test_generations() -> None:
    out = "current 2\n1 /nix/store/a\n10 /nix/store/c\n2 /nix/store/b\n"
    runner = Recorded({commands.generations().line(): Result(0, out)})
    assert deliver.generations(runner, "spark-0") == [
        deliver.Generation(1, "/nix/store/a", False),
        deliver.Generation(2, "/nix/store/b", True),
        deliver.Generation(10, "/nix/store/c", False),
    ]


def status(**fields: Any) -> Result:
    value = {
        **{"fleet": "f", "fleet_id": "0", "state": "down", "reason": "", "wanted": True, "number": 1},
        **{"since": 0.0, "phase": None, "phase_s": None, "ranks": (), "starts": (), **fields},
    }
    return Result(0, Status.model_validate(value).model_dump_json())


def test_nothing_to_do_when_all_units_run_the_closure() -> None:
    unit = "Id={}\nActiveState=active\nExecStart={{ path={}/bin/sparkserve }}"
    rank, front = (unit.format(name, PATH) for name in (rollout.RANK, rollout.FRONT))
    answers: dict[tuple[str, str] | str, Result] = {
        commands.current().line(): Result(0, f"{PATH}\n"),
        commands.shown_units(rollout.RANK, rollout.FRONT).line(): Result(0, f"{rank}\n\n{front}\n"),
        commands.shown_units(rollout.RANK).line(): Result(0, f"{rank}\n"),
    }
    assert rollout.put_into_effect(Recorded(answers), NODES) is False
    dead = Result(0, rank.replace("=active", "=failed"))
    runner = Recorded({**answers, ("spark-1", commands.shown_units(rollout.RANK).line()): dead})
    assert rollout.put_into_effect(runner, NODES) is True
    changes = [(node, line) for node, line in runner.asked if "show" not in line and "readlink" not in line]
    # What runs goes on: a front that systemd is about to restart must not cost a boot.
    assert changes == [("spark-1", commands.start_units(rollout.RANK).line())]


def test_rollout_stops_all_then_workers_before_the_head() -> None:
    runner = Recorded({commands.ask_group("stop").line(): status()})
    assert rollout.put_into_effect(runner, NODES) is True
    asked = [(node, line) for node, line in runner.asked if "show" not in line and "readlink" not in line]
    stops = {(node, commands.stop_units(rollout.RANK).line()) for node in NODES}
    assert asked[0] == ("spark-0", commands.ask_group("stop").line())
    assert set(asked[1:3]) == stops
    activated = commands.activate(str(PATH)).line()
    assert asked[3:5] == [("spark-1", activated), ("spark-0", activated)]
    generation = commands.make_current(str(PATH), "incoming").line()
    assert set(asked[5:7]) == {("spark-0", generation), ("spark-1", generation)}
    assert set(asked[7:]) == {
        ("spark-0", commands.start_units(rollout.RANK, rollout.FRONT).line()),
        ("spark-1", commands.start_units(rollout.RANK).line()),
    }


class Rebooting(Recorded):
    """`spark-1` needs a reboot, does not answer for a while then, and activates with `after`."""

    def __init__(self, after: int) -> None:
        super().__init__({commands.ask_group("stop").line(): status()})
        self.boots, self.silent, self.after = 0, 0, after

    def run(self, node: str, command: commands.Command, **given: Any) -> Result:
        result = super().run(node, command, **given)
        if node == "spark-1" and command == commands.reboot():
            self.boots, self.silent = 1, 2
            raise SparkserveError("NODE.UNREACHABLE", expected="", found="", where=node, do="")
        if command == commands.boot_id():
            self.silent -= 1
            if self.silent >= 0:
                raise SparkserveError("NODE.UNREACHABLE", expected="", found="", where=node, do="")
            return Result(0, f"{self.boots}\n")
        if node == "spark-1" and command == commands.activate(str(PATH)):
            return Result(self.after if self.boots else 75, "", "without kho=off")
        return result


def test_a_node_that_needs_a_reboot_gets_one_and_is_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    runner = Rebooting(after=0)
    assert rollout.put_into_effect(runner, NODES) is True
    own = [line for line in runner.of("spark-1") if "boot_id" not in line]
    begin = own.index(commands.activate(str(PATH)).line())
    assert own[begin : begin + 4] == lines(
        commands.activate(str(PATH)),
        commands.reboot(),
        commands.activate(str(PATH)),
        commands.make_current(str(PATH), "incoming"),
    )
    assert commands.reboot().line() not in runner.of("spark-0")


@pytest.mark.parametrize("after", [74, 75])
def test_a_reboot_that_does_not_help_leaves_the_generation(
    monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    runner = Rebooting(after)
    with pytest.raises(SparkserveError, match=f"exit code {after}: without kho=off"):
        rollout.put_into_effect(runner, NODES)
    # The next `up` sees the old generation, and tries again.
    assert commands.make_current(str(PATH), "incoming").line() not in [line for _, line in runner.asked]


def test_a_start_that_gives_up_says_why() -> None:
    runner = Recorded(
        {commands.ask_group("start").line(): status(wanted=False, reason="given up; rank 1 died")}
    )
    with pytest.raises(SparkserveError, match="rank 1 died") as caught:
        rollout.start_group(runner, "spark-0")
    assert caught.value.id == "GROUP.BOOT"


def rank(**fields: Any) -> dict[str, Any]:
    return {"rank": 1, "node": "spark-1", "connected": True, **fields}


def test_a_rank_that_runs_something_else_ends_the_start_at_once() -> None:
    reason = "rank 1 (spark-1) has another layer site of the engine root: sha256:1, the head sha256:0"
    other = rank(connected=False, trouble=reason)
    runner = Recorded(
        {commands.ask_group("start").line(): status(reason="rank 0 (spark-0) not connected", ranks=(other,))}
    )
    with pytest.raises(SparkserveError, match="another layer site") as caught:
        rollout.start_group(runner, "spark-0")
    assert caught.value.id == "GROUP.BOOT"


def test_a_start_that_nothing_begins_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "HINDERED_S", 0.1)
    waiting = status(reason="preflight: rank 1 (spark-1): no echo from rank 2")
    key = Status.model_validate_json(waiting.out).key
    words: Answers = {
        commands.ask_group("start").line(): waiting,
        commands.wait_group(key, 10).line(): waiting,
    }
    with pytest.raises(SparkserveError, match="no echo from rank 2") as caught:
        rollout.start_group(Recorded(words), "spark-0")
    assert caught.value.id == "GROUP.BOOT"
