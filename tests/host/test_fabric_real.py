"""A node's cables made of veth pairs, as its plan says: `fabric check` there, its firewall with real packets.

The node and all of its peers are two network namespaces, which end with the test. Costs: 15 s.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fabric_host import fabric, golden

from sparkserve import nix

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
WITH_RULES = golden("tp3-triangle")[1]
# No RDMA device can be made here.
PLAN = WITH_RULES.model_copy(update={"fabric": fabric(WITH_RULES).model_copy(update={"nccl": None})})
LINKS = fabric(PLAN).links
FIRST = LINKS[0].interface
# Says who connects, to whoever connects.
SERVE = """
import socket, sys, threading
for port in map(int, sys.argv[1:]):
    server = socket.create_server(("0.0.0.0", port))
    def serve(server=server):
        while True:
            server.accept()[0].sendall(b"here")
    threading.Thread(target=serve).start()
print("ready", flush=True)
"""
CALL = """
import socket, sys
made = socket.socket()
made.settimeout(1)
made.bind((sys.argv[3], 0))
made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[4].encode())
try:
    made.connect((sys.argv[1], int(sys.argv[2])))
    print(made.recv(9).decode())
except OSError as error:
    print("dropped" if isinstance(error, TimeoutError) else error)
"""


def far_end(name: str) -> str:
    """The other end of an interface of the node."""
    return f"far-{name}"[:15]


class World:
    """`node` runs a command on the node, `peers` where the other ends are."""

    def __init__(self, folder: Path, root: Path, tools: Path) -> None:
        # No loader of this machine is that of the pinned packages.
        libraries = f"{root}/usr/lib/x86_64-linux-gnu"
        (folder / "ping").write_text(
            f"#!/bin/sh\nexec {root}/lib64/ld-linux-x86-64.so.2 --library-path {libraries} "
            f'{root}/usr/bin/ping "$@"\n'
        )
        (folder / "ping").chmod(0o755)
        self.env = {**os.environ, "PATH": f"{folder}:{tools}/bin:{os.environ['PATH']}"}
        apart = ["unshare", "--net", "--mount", "--propagation", "private"]
        script = "mount -t sysfs sysfs /sys && echo ready && exec sleep 600"
        self.processes = [
            subprocess.Popen([*apart, "sh", "-c", script], env=self.env, stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        for process in self.processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        self.node("ip", "link", "set", "dev", "lo", "up")
        management = fabric(PLAN).management
        peer = PLAN.fleet.nodes[0].address
        self._cable(management.interface, f"{management.address}/{management.prefix}", f"{peer}/24", 1500)
        for link in LINKS:
            self._cable(link.interface, f"{link.address}/24", f"{link.peers[0].address}/24", fabric(PLAN).mtu)
        for name, value in PLAN.host.sysctls.items():
            if name.startswith("net."):
                self.node("sh", "-c", f"echo {value} >/proc/sys/{name.replace('.', '/')} || :")

    def run(self, place: int, *argv: str, text: str = "") -> str:
        pid = str(self.processes[place].pid)
        inside = ["nsenter", "--target", pid, "--net", "--mount", *argv]
        done = subprocess.run(inside, env=self.env, input=text, capture_output=True, text=True)
        assert done.returncode in (0, 63), done.stderr
        return done.stdout.strip()

    def node(self, *argv: str, text: str = "") -> str:
        return self.run(0, *argv, text=text)

    def peers(self, *argv: str) -> str:
        return self.run(1, *argv)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def _cable(self, name: str, here: str, there: str, mtu: int) -> None:
        far = ["type", "veth", "peer", "name", far_end(name), "mtu", str(mtu)]
        argv = ["ip", "link", "add", name, "mtu", str(mtu), *far, "netns", str(self.processes[1].pid)]
        self.node(*argv)
        for run, interface, address in ((self.node, name, here), (self.peers, far_end(name), there)):
            run("ip", "link", "set", "dev", interface, "addrgenmode", "none")
            run("ip", "address", "add", address, "dev", interface)
            run("ip", "link", "set", "dev", interface, "up")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root, tools = nix.build(["node-root", "node-tools"])
    made = World(tmp_path_factory.mktemp("bin"), root, tools)
    yield made
    made.end()


def checked(world: World, folder: Path) -> list[tuple[str, str]]:
    """Where `fabric check` finds something, and what it expected."""
    file = folder / "plan.json"
    file.write_text(PLAN.model_dump_json(by_alias=True))
    argv = ["env", f"PYTHONPATH={ROOT}/src", sys.executable, "-m", "sparkserve.cli.main"]
    found = json.loads(world.node(*argv, "fabric", "check", "--plan", str(file), "--json"))
    return [(each["where"], each["expected"].split(" (")[0]) for each in found[PLAN.node.name]]


def test_check_sees_what_is_there(world: World, tmp_path: Path) -> None:
    far = far_end(FIRST)
    assert checked(world, tmp_path) == []
    # As after a firmware update of one end: both ends are up, and large packets are lost.
    world.peers("ip", "link", "set", "dev", far, "mtu", "1500")
    assert checked(world, tmp_path) == [(FIRST, "an answer of spark-0")]
    world.peers("ip", "link", "set", "dev", far, "mtu", "9000")
    world.peers("ip", "link", "set", "dev", far, "down")
    assert checked(world, tmp_path) == [(FIRST, "a signal")]
    world.peers("ip", "link", "set", "dev", far, "up")
    world.node("ip", "address", "add", "10.12.7.7/24", "dev", FIRST)
    assert checked(world, tmp_path) == [(FIRST, "the address of the plan alone")]
    world.node("ip", "address", "del", "10.12.7.7/24", "dev", FIRST)
    world.node("sh", "-c", f"echo 0 >/proc/sys/net/ipv4/conf/{FIRST}/arp_ignore")
    assert checked(world, tmp_path) == [(f"net.ipv4.conf.{FIRST}.arp_ignore", "1")]
    world.node("sh", "-c", f"echo 1 >/proc/sys/net/ipv4/conf/{FIRST}/arp_ignore")
    assert checked(world, tmp_path) == []


def test_the_firewall_closes_the_cables_and_nothing_else(world: World) -> None:
    assert PLAN.group is not None
    api, control = PLAN.serving.port, PLAN.group.control_port
    listening = subprocess.Popen(
        ["nsenter", "--target", str(world.processes[0].pid), "--net", sys.executable, "-c", SERVE]
        + [str(port) for port in (22, api, control, control + 1)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert listening.stdout is not None
    assert listening.stdout.readline() == "ready\n"
    management, cable = str(fabric(PLAN).management.address), str(LINKS[0].address)
    head, peer = str(PLAN.fleet.nodes[0].address), str(LINKS[0].peers[0].address)
    far, port = far_end(FIRST), far_end(fabric(PLAN).management.interface)
    world.peers("ip", "address", "add", "10.55.0.1/24", "dev", far)
    # Whoever is at a cable can send to any address of the node.
    world.peers("ip", "route", "add", f"{management}/32", "via", cable, "dev", far, "metric", "9")
    world.node("ip", "route", "add", "10.55.0.0/24", "dev", FIRST)

    def calls() -> dict[str, str]:
        ways = {
            "ssh from management": (management, 22, head, port),
            "endpoint from management": (management, api, head, port),
            "controller from management": (management, control, head, port),
            "peer's echo by cable": (cable, control + 1, peer, far),
            "endpoint by cable": (cable, api, peer, far),
            "endpoint's other address by cable": (management, api, peer, far),
            "controller by cable": (cable, control, peer, far),
            "foreign address by cable": (cable, control + 1, "10.55.0.1", far),
        }
        return {name: world.peers(sys.executable, "-c", CALL, *map(str, way)) for name, way in ways.items()}

    try:
        assert set(calls().values()) == {"here"}
        rules = PLAN.host.files["/etc/sparkserve/nftables.conf"].text
        for _ in range(2):  # again, as after an edit: in place of the first
            world.node("nft", "-f", "-", text=rules)
        world.node("nft", "add", "table", "inet", "others")
        found = calls()
        assert {name for name, said in found.items() if said == "here"} == {
            *("ssh from management", "endpoint from management", "controller from management"),
            "peer's echo by cable",
        }
        assert len({name for name, said in found.items() if said == "dropped"}) == 4
        world.node("nft", "-f", "-", text=rules)
        assert "table inet others" in world.node("nft", "list", "ruleset")
        world.node("nft", "delete", "table", "inet", "sparkserve")
        assert set(calls().values()) == {"here"}
    finally:
        listening.kill()
        listening.wait()
