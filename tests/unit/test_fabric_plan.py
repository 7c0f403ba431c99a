"""`fabric plan`: the table of the cables, and the picture that an owner plugs them by."""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Address
from pathlib import Path  # noqa: TC003 - pytest reads the annotations
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from fabric_host import fabric, golden

from sparkserve.cli.main import main
from sparkserve.fabric import cabling, draw
from sparkserve.fleet import plans
from sparkserve.fleet.svg import Box
from sparkserve.plan import Peer

if TYPE_CHECKING:
    from sparkserve.plan import Plan

FLEETS = ["tp3-triangle", "tp4-ring", "tp4-switched"]
P0, P1 = ["rocep1s0f0", "roceP2p1s0f0"], ["rocep1s0f1", "roceP2p1s0f1"]


@pytest.mark.parametrize(
    ("fleet", "expected"),
    [
        # The reference peer maps of the published three and four node fleets: port 0 to the next rank.
        ("tp3-triangle", [{1: P0, 2: P1}, {0: P1, 2: P0}, {0: P0, 1: P1}]),
        ("tp4-ring", [{1: P0, 3: P1}, {0: P1, 2: P0}, {1: P1, 3: P0}, {0: P0, 2: P1}]),
        ("tp4-switched", [{peer: P0 for peer in range(4) if peer != rank} for rank in range(4)]),
    ],
)
def test_which_rdma_devices_lead_to_a_peer(fleet: str, expected: list[dict[int, list[str]]]) -> None:
    assert [cabling.hcas(plan) for plan in golden(fleet)] == expected


def test_the_environment_is_the_same_on_all_ranks_except_who_they_are() -> None:
    rows = cabling.shared(golden("tp4-ring"))
    assert {name for name, _, nodes in rows if nodes != "all"} == {"SGLANG_HOST_IP"}
    values = {name: value for name, value, nodes in rows if nodes == "all"}
    # Both functions of both ports, by their whole names.
    assert values["NCCL_IB_HCA"].removeprefix("=").split(",") == sorted([*P0, *P1])
    assert values["NCCL_SOCKET_IFNAME"] == "=" + values["GLOO_SOCKET_IFNAME"]
    assert (values["NCCL_ALGO"], values["NCCL_MIN_NCHANNELS"], values["NCCL_MAX_NCHANNELS"]) == (
        "Ring",
        "4",
        "4",
    )
    assert "NCCL_IB_GID_INDEX" not in values
    assert "NCCL_ALGO" not in dict(row[:2] for row in cabling.shared(golden("tp3-triangle")))
    assert not [name for name, _, _ in cabling.shared(golden("local-triangle")) if name.startswith("NCCL")]


def elements(text: str, tag: str) -> list[ET.Element]:
    return list(ET.fromstring(text).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))  # noqa: S314 - made here


def words(text: str) -> list[str]:
    return [element.text or "" for element in elements(text, "text")]


@pytest.mark.parametrize("fleet", FLEETS)
def test_the_picture_names_every_interface_address_and_way(fleet: str) -> None:
    given = golden(fleet)
    said = words(draw.draw(given))
    for end in cabling.ends(given):
        for each in (end.link.interface, end.link.hca):
            assert said.count(each) == len(given), each
        assert said.count(str(end.link.address)) == 1
    assert not [line for line in said if line.endswith("…")]
    assert [line for line in said if line.startswith("rank 0")] == ["rank 0, head"]


def test_a_cable_names_its_ports_at_both_ends_and_in_the_middle() -> None:
    said = words(draw.draw(golden("tp4-ring")))
    assert "spark-0 port 0 to spark-1 port 1: 10.12.0.0/24, 10.12.1.0/24" in said
    assert "spark-0 port 1 to spark-3 port 0: 10.14.0.0/24, 10.14.1.0/24" in said
    ports = [
        (said[i + 1], said[i + 2])
        for i, line in enumerate(said)
        if line.startswith("10.") and i + 2 < len(said) and said[i + 1].startswith("to ")
    ]
    assert ports == [
        *[("to spark-1", "port 1"), ("to spark-3", "port 0")],
        *[("to spark-2", "port 1"), ("to spark-0", "port 0")],
        *[("to spark-3", "port 1"), ("to spark-1", "port 0")],
        *[("to spark-0", "port 1"), ("to spark-2", "port 0")],
    ]


def long_names(fleet: str) -> list[Plan]:
    """A fleet with names as long as host names may be."""
    made = []
    for given in golden(fleet):
        nodes = [each.model_copy(update={"name": f"{'n' * 61}-{each.rank}"}) for each in given.fleet.nodes]
        node = given.node.model_copy(update={"name": nodes[given.node.rank].name})
        named = given.fleet.model_copy(update={"nodes": tuple(nodes)})
        made.append(given.model_copy(update={"fleet": named, "node": node}))
    return made


def sixteen() -> list[Plan]:
    """Sixteen nodes at a switch."""
    given = golden("tp4-switched")[0]
    node = given.fleet.nodes[0]
    nodes = tuple(node.model_copy(update={"name": f"n-{rank}", "rank": rank}) for rank in range(16))
    made = []
    for rank in range(16):
        links = tuple(
            link.model_copy(
                update={
                    "address": IPv4Address(f"10.100.{link.stripe}.{rank + 1}"),
                    "peers": tuple(
                        Peer(rank=peer, address=IPv4Address(f"10.100.{link.stripe}.{peer + 1}"))
                        for peer in range(16)
                        if peer != rank
                    ),
                }
            )
            for link in fabric(given).links
        )
        changed = {
            "fleet": given.fleet.model_copy(update={"nodes": nodes}),
            "node": given.node.model_copy(update={"name": nodes[rank].name, "rank": rank}),
            "fabric": fabric(given).model_copy(update={"links": links}),
        }
        made.append(given.model_copy(update=changed))
    return made


@pytest.mark.parametrize("given", [*map(golden, FLEETS), *map(long_names, FLEETS), sixteen()])
def test_nothing_is_outside_of_the_page_and_no_cards_overlap(given: list[Plan]) -> None:
    text = draw.draw(given)
    root = ET.fromstring(text)  # noqa: S314 - made here
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    keys = ("x", "y", "width", "height")
    boxes = [Box(*(float(each.attrib[key]) for key in keys)) for each in elements(text, "rect")]
    assert all(box.x >= 0 and box.x + box.width <= width for box in boxes)
    assert all(box.y >= 0 and box.y + box.height <= height for box in boxes)
    for path in elements(text, "path")[1:]:  # the first is an arrow's head
        numbers = [float(n) for n in re.findall(r"[\d.]+", path.attrib["d"])]
        assert max(numbers) <= max(width, height)
    cards = [box for box in boxes if box.width == draw.CARD_WIDTH]
    assert len(cards) == len(given)
    for i, one in enumerate(cards):
        for other in cards[i + 1 :]:
            apart = abs(one.x - other.x) >= one.width or abs(one.y - other.y) >= one.height
            assert apart, (one, other)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plans, "load", golden)
    file = tmp_path / "cabling.svg"
    with pytest.raises(SystemExit) as caught:
        main(["fabric", "plan", "tp4-ring", "--json", "--output", str(file)])
    assert caught.value.code == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["rank_order"] == [f"spark-{rank}" for rank in range(4)]
    assert printed["peer_hcas"]["spark-3"] == {"spark-0": P0, "spark-2": P1}
    assert len(printed["links"]) == 16
    assert file.read_text() == draw.draw(golden("tp4-ring"))
    with pytest.raises(SystemExit):
        main(["fabric", "plan", "tp3-triangle"])
    out = capsys.readouterr().out
    assert re.search(r"0 +1 +spark-0 +0 +enP2p1s0f0np0 +roceP2p1s0f0 +10\.12\.1\.1/24 +spark-1", out)
    with pytest.raises(SystemExit) as caught:
        main(["fabric", "plan", "local-single", "--json"])
    assert caught.value.code == 54
