"""The addresses of the cables, on random fleets: nix/rails.nix is evaluated once for them all, in 0.5 s."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from ipaddress import ip_interface
from itertools import combinations
from pathlib import Path
from typing import Any

import evaluated
import pytest

from sparkserve import nix, plan

ROOT = Path(__file__).parents[2]
STRIPES = 2  # functions of a port of a ConnectX-7 in a Spark
FLEETS = 60
SHAPES = {(2, 1): "pair", (3, 3): "triangle", (4, 4): "ring"}  # nodes, pairs
DICE = random.Random()  # noqa: S311 - each run tries other fleets; a failure prints its fleet

Fleet = dict[str, Any]
Links = list[list[dict[str, Any]]]


def links_of(fleets: list[Fleet]) -> list[Links]:
    """By fleet and rank, what the modules see."""
    function = ROOT / "nix/rails.nix"
    expression = f"""
      let
        lib = import {ROOT}/nix/lib;
        ports = import {ROOT}/nix/ports.nix;
        links = fleet:
          let
            nodes = map (name: {{ inherit name ports; }}) fleet.names;
            config = {{ inherit (fleet) fabric; fleet = {{ inherit (fleet) topology; inherit nodes; }}; }};
          in
          lib.genList (import {function} {{ inherit lib config; }}).links (lib.length nodes);
      in
      map links (builtins.fromJSON ''{json.dumps(fleets)}'')
    """
    argv = ["nix-instantiate", "--eval", "--strict", "--json", "-"]
    done = subprocess.run(argv, env=nix.environment(), input=expression, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[Links] = json.loads(done.stdout)
    return found


def cabled(count: int, pairs: list[tuple[int, int]]) -> Fleet:
    """`pairs` of ranks joined at random ports, listed in a random order from a random end."""
    names = [f"n{DICE.randrange(10**6)}-{rank}" for rank in range(count)]
    free = {rank: DICE.sample((0, 1), 2) for rank in range(count)}
    ends = [[f"{names[rank]}.{free[rank].pop()}" for rank in pair] for pair in pairs]
    cables = [
        dict(zip(("from", "to"), DICE.sample(pair, 2), strict=True)) | {"subnets": None} for pair in ends
    ]
    DICE.shuffle(cables)
    fabric = {"cables": cables, "prefix": DICE.choice((10, 172, 7)), "switchPorts": [0]}
    return {"topology": "any", "names": names, "fabric": fabric, "pairs": pairs}


def random_fleet() -> Fleet:
    match DICE.choice(("pair", "two cables", "triangle", "ring", "switched")):
        case "pair":
            return cabled(2, [(0, 1)])
        case "two cables":
            return cabled(2, [(0, 1), (0, 1)])
        case "triangle":
            return cabled(3, [(0, 1), (1, 2), (0, 2)])
        case "ring":
            return cabled(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    count = DICE.randint(2, 16)
    ports = DICE.choice(([0], [1], [0, 1]))
    fleet = cabled(count, [])
    fleet["fabric"] |= {"cables": None, "switchPorts": ports}
    return fleet | {"topology": "switched", "pairs": [*combinations(range(count), 2)] * len(ports)}


def test_every_fleet_has_one_network_for_a_stripe_and_nothing_twice() -> None:
    fleets = [random_fleet() for _ in range(FLEETS)]
    for fleet, ranks in zip(fleets, links_of(fleets), strict=True):
        for links in ranks:
            assert max(Counter(network(link) for link in links).values()) == 1, fleet
        addresses = [link["address"] for links in ranks for link in links]
        assert len(set(addresses)) == len(addresses), fleet
        assert {int(address.split(".")[0]) for address in addresses} == {fleet["fabric"]["prefix"]}
        wanted: Counter[tuple[int, int]] = Counter(fleet["pairs"])
        for one, other in combinations(range(len(ranks)), 2):
            shared = {network(link) for link in ranks[one]} & {network(link) for link in ranks[other]}
            assert len(shared) == STRIPES * wanted[one, other], fleet


def test_both_ends_say_the_same() -> None:
    fleets = [random_fleet() for _ in range(FLEETS)]
    for fleet, ranks in zip(fleets, links_of(fleets), strict=True):
        seen = {
            (
                rank,
                link["address"],
                peer["rank"],
                peer["address"],
                link["rail"],
                link["stripe"],
                network(link),
            )
            for rank, links in enumerate(ranks)
            for link in links
            for peer in link["peers"]
        }
        assert seen == {(peer, there, rank, here, *rest) for rank, here, peer, there, *rest in seen}, fleet
        assert seen


def test_random_fleets_pass_all_rules_and_are_plans(tmp_path: Path) -> None:
    """Through every module: no rule refuses a cabling that is right, and the plans are of their schema."""
    wanted = {}
    for number in range(6):
        fleet = random_fleet()
        count, pairs = len(fleet["names"]), len(set(fleet["pairs"]))
        topology = "switched" if fleet["topology"] == "switched" else SHAPES[count, pairs]
        given = fleet["fabric"]
        nodes = [{"name": name, "address": f"192.168.7.{n + 1}"} for n, name in enumerate(fleet["names"])]
        options = {
            "fleet": {"topology": topology, "nodes": nodes},
            "fabric": given,
            "serving": {"model": "smollm2-135m"},
            "host": {"platform": "dgx-os"},
        }
        folder = tmp_path / f"fleet-{number}"
        folder.mkdir()
        (folder / "fleet.nix").write_text(f"builtins.fromJSON ''{json.dumps(options)}''")
        wanted[folder.name] = len(given["switchPorts"] if topology == "switched" else fleet["pairs"])
    for name, plans in evaluated.plans(tmp_path).items():
        parsed = [plan.parse(value) for value in plans.values()]
        rails = {link.rail for each in parsed if each.fabric for link in each.fabric.links}
        assert len(rails) == wanted[name]


def test_a_site_with_networks_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/fleet.nix").write_text(
        """{
          fleet.topology = "pair";
          fleet.nodes = [ { name = "a"; address = "10.0.0.1"; } { name = "b"; address = "10.0.0.2"; } ];
          serving.model = "smollm2-135m";
          fabric.cables = [
            { from = "b.1"; to = "a.1"; subnets = [ "172.20.5.0/24" "172.20.9.0/24" ]; }
          ];
        }"""
    )
    links = evaluated.plans(tmp_path)["site"]["b"]["fabric"]["links"]
    assert [(link["interface"], link["address"], link["peers"]) for link in links] == [
        ("enp1s0f1np1", "172.20.5.2", [{"rank": 0, "address": "172.20.5.1"}]),
        ("enP2p1s0f1np1", "172.20.9.2", [{"rank": 0, "address": "172.20.9.1"}]),
    ]


def network(link: dict[str, Any]) -> str:
    return str(ip_interface(f"{link['address']}/{link['prefix']}").network)


@pytest.mark.parametrize(
    ("topology", "count", "rank", "expected"),
    [
        # The four-node reference of the published switchless fleets, with stripes counted from 0.
        ("ring", 4, 3, ["10.34.0.4 np1 2", "10.34.1.4 np1 2", "10.14.0.4 np0 0", "10.14.1.4 np0 0"]),
        ("triangle", 3, 0, ["10.12.0.1 np0 1", "10.12.1.1 np0 1", "10.13.0.1 np1 2", "10.13.1.1 np1 2"]),
        ("pair", 2, 1, ["10.12.0.2 np1 0", "10.12.1.2 np1 0"]),
        ("switched", 3, 2, ["10.100.0.3 np0 0 1", "10.100.1.3 np0 0 1"]),
    ],
)
def test_cables_that_nobody_listed(topology: str, count: int, rank: int, expected: list[str]) -> None:
    fabric = {"cables": None, "prefix": 10, "switchPorts": [0]}
    names = [f"spark-{n}" for n in range(count)]
    links = links_of([{"topology": topology, "names": names, "fabric": fabric}])[0][rank]
    found = [
        " ".join([link["address"], link["interface"][-3:], *(str(peer["rank"]) for peer in link["peers"])])
        for link in links
    ]
    assert found == expected
