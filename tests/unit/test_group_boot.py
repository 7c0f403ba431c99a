"""A boot's timers and its adapters, without time and sockets; what is remembered; a rank's place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from engine_values import closure
from engine_values import plan as single
from group_values import plan

from sparkserve.engine import runner
from sparkserve.errors import SparkserveError
from sparkserve.group import boot_logs, launch, links, memory, phases, protocol
from sparkserve.group.boot import Boot, Over

if TYPE_CHECKING:
    from pathlib import Path


def boot() -> Boot:
    """One whose ranks have all started at second 0; ready_timeout_s is 20."""
    made = Boot(plan(0, 20000), 1, 0.0)
    for rank in range(3):
        made.take(rank, protocol.Started(number=1), 0.0)
    return made


def reach(made: Boot, rank: int, phase: int, now: float) -> None:
    made.take(rank, protocol.Reached(number=1, phase=phases.NAMES[phase]), now)


def armed(made: Boot, rank: int, group: str = "d") -> None:
    line = {"event": "armed", "adapter": "one", "group": group}
    made.take(rank, protocol.Adapter(number=1, line=line), 1.0)


def test_the_last_rank_is_where_the_group_is_and_its_timer_counts_from_there() -> None:
    made = boot()
    reach(made, 0, 1, 1.0)
    reach(made, 2, 1, 1.0)
    made.tick(11.9)  # importing may take 0.6 x 20 s
    with pytest.raises(Over, match=r"^rank 1 \(spark-1\) stuck in: importing \(12 s\)$"):
        made.tick(12.1)
    reach(made, 1, 1, 12.0)
    made.tick(16.9)  # joining 0.25 x 20 s, from when the last rank came to it
    with pytest.raises(Over, match=r"rank 0 .* and rank 1 .* and rank 2 .* stuck in: joining"):
        made.tick(17.1)


def test_the_whole_start_has_a_limit_too() -> None:
    made = boot()
    for rank in range(3):
        reach(made, rank, 2, 11.0)
    with pytest.raises(Over, match="loading weights"):
        made.tick(20.1)


def test_a_phase_does_not_go_back() -> None:
    made = boot()
    reach(made, 1, 3, 1.0)
    reach(made, 1, 1, 2.0)
    assert made.of(1) == ("allocating the KV cache", 1.0, ())


def test_ready_needs_every_adapter_of_every_rank() -> None:
    made = boot()
    for rank in range(3):
        reach(made, rank, phases.READY, 1.0)
    armed(made, 0)
    armed(made, 2)
    with pytest.raises(Over, match=r"rank 1 \(spark-1\): not armed: one") as caught:
        made.ready()
    assert caught.value.again is False
    armed(made, 1)
    assert made.ready() is True
    armed(made, 1, "other")
    with pytest.raises(Over, match="different settings of one"):
        made.ready()


@pytest.mark.parametrize(
    ("line", "reason", "again"),
    [
        ({"event": "refused", "adapter": "one", "reason": "x"}, "adapter one refused: x", False),
        ({"event": "refused", "adapter": None, "reason": "x"}, "adapters refused: x", False),
        ({"event": "failed", "adapter": "one", "reason": "x"}, "adapter one failed: x", True),
        ({}, "adapters None: it gives no reason", False),
    ],
)
def test_adapters_that_are_not_right(line: dict[str, object], reason: str, again: bool) -> None:
    with pytest.raises(Over) as caught:
        boot().take(1, protocol.Adapter(number=1, line=line), 1.0)
    assert caught.value.reason == f"rank 1 (spark-1): {reason}"
    assert caught.value.again is again


@pytest.mark.parametrize(
    ("message", "victim"),
    [
        (
            protocol.Ended(number=1, reason="x", log="RuntimeError: Connection closed by peer [10.0.0.1]:5"),
            True,
        ),
        (protocol.Ended(number=1, reason="x", log="crashed with exit code -9"), False),
        (protocol.Adapter(number=1, line={"event": "failed", "adapter": "one", "peers": [2]}), True),
        (protocol.Adapter(number=1, line={"event": "failed", "adapter": "one"}), False),
        (protocol.Adapter(number=1, line={"event": "refused", "adapter": "one", "peers": [2]}), False),
        (protocol.Beat(trouble="no carrier on x"), False),
    ],
)
def test_a_rank_that_only_lost_a_peer(message: protocol.Message, victim: bool) -> None:
    with pytest.raises(Over) as caught:
        boot().take(1, message, 1.0)
    assert caught.value.victim is victim


def test_phases_of_a_log() -> None:
    lines = [
        "server_args=",
        "[TP0] Init torch distributed begin.",
        "Load weight begin",
        "[TP0] Load weight end",
    ]
    now, seen = 0, []
    for line in [*lines, lines[1], "KV Cache is allocated", "Uvicorn running on x"]:
        now = phases.reached(line, now)
        seen.append(now)
    assert seen == [0, 1, 2, 3, 3, 4, 5]


def test_the_place_of_a_rank_in_the_command_line() -> None:
    given = plan(1, 20000)
    place = launch.launch(given, port=20007)
    assert place.args == (
        *("--tp-size", "3", "--nnodes", "3", "--node-rank", "1", "--dist-init-addr", "127.0.0.1:20007"),
        *("--host", "127.0.0.1", "--port", "20003"),
    )
    value = json.loads(place.env.pop("SPARKSERVE_ADAPTERS"))
    assert place.env == {"SGLANG_HOST_IP": "127.0.0.2", "GLOO_SOCKET_IFNAME": "lo"}
    link = {"interface": "lo", "address": "127.1.0.2", "peer": 0, "peer_address": "127.1.1.1", "stripe": 0}
    assert value["links"][0] == link
    assert {key: value[key] for key in ("schema", "rank", "size", "adapters")} == {
        "schema": "sparkserve.adapters/1",
        "rank": 1,
        "size": 3,
        "adapters": [{"name": "one", "settings": {"timeout_s": 30}}],
    }
    argv = runner.command(given, closure(), args=place.args, env={"A": "1"}, leashed=True, status_fd=7)
    assert argv[1:4] == ["--json-status-fd", "7", "--die-with-parent"]
    assert argv[-len(place.args) :] == list(place.args)
    assert argv[argv.index("A") - 1 : argv.index("A") + 2] == ["--setenv", "A", "1"]
    assert "--die-with-parent" not in runner.command(given, closure())


def test_stripes_to_a_peer_count_over_all_rails() -> None:
    """As at a switch with two ports: two networks, and both peers on each."""
    given = plan(1, 20000)
    assert given.fabric is not None
    peers = tuple(peer for link in given.fabric.links for peer in link.peers)
    rails = [given.fabric.links[0].model_copy(update={"rail": rail, "peers": peers}) for rail in (0, 1)]
    both = given.model_copy(update={"fabric": given.fabric.model_copy(update={"links": tuple(rails)})})
    value = json.loads(launch.launch(both, port=1).env["SPARKSERVE_ADAPTERS"])
    assert [(link["peer"], link["stripe"]) for link in value["links"]] == [(0, 0), (2, 0), (0, 1), (2, 1)]
    assert links.ranks(rails[0]) == "ranks 0, 2"


def test_a_single_node_has_no_place_in_a_group() -> None:
    with pytest.raises(SparkserveError, match="topology single"):
        launch.launch(single(), port=1)


def test_starts_that_count(tmp_path: Path) -> None:
    made = memory.load(tmp_path / "none")
    for number in range(1, 13):
        made = made.started(protocol.PastStart(number=number, at=100.0 * number))
    assert len(made.starts) == memory.KEEP
    assert made.recent(1250.0, 600) == 6
    assert made.model_copy(update={"forgiven": 11}).recent(1250.0, 600) == 1
    assert made.recent(0.0, 600) == 0  # a clock that was set back
    memory.save(tmp_path / "file", made)
    assert memory.load(tmp_path / "file") == made
    (tmp_path / "file").write_text("")
    damaged = memory.load(tmp_path / "file")
    assert damaged.wanted is False
    assert "is damaged" in damaged.reason


def test_logs_of_the_last_boots(tmp_path: Path) -> None:
    for number in range(1, 14):
        (boot_logs.make(tmp_path, number) / "rank.log").write_text("x")
    assert sorted(int(each.name[5:]) for each in tmp_path.iterdir()) == list(range(4, 14))
    assert list(boot_logs.make(tmp_path, 13).iterdir()) == []


def test_carriers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "NET", tmp_path)
    fabric = plan(0, 20000).fabric
    assert fabric is not None
    looks = links.Carriers(fabric.links[:1])
    assert looks.trouble() == ""
    assert looks.trouble() == "no carrier on lo to rank 1"
    (tmp_path / "lo").mkdir()
    (tmp_path / "lo/carrier").write_text("1\n")
    assert looks.trouble() == ""
    monkeypatch.setattr(links, "NET", tmp_path / "none")
    assert [looks.trouble() for _ in range(3)] == [""] * 3
