"""What a picture of a fleet shows: from its plans, the pins, and the host closures that are built."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve import nix
from sparkserve.engine import closure, runner
from sparkserve.fleet import plans
from sparkserve.pins import model as pins
from sparkserve.pins import store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.plan import Plan


@dataclass(frozen=True)
class Source:
    """Where the layer `layer` comes from: what is pinned, how much of it, and the file that says so."""

    layer: str
    what: str
    amount: str
    file: str


@dataclass(frozen=True)
class Layer:
    """One layer of an engine root; `size` in bytes and `digest` in hex are None for what is not built."""

    name: str
    target: str
    source: Source
    size: int | None = None
    digest: str | None = None


@dataclass(frozen=True)
class Node:
    """A node and what runs on it: the layers in mount order, and the folders in memory over them."""

    name: str
    rank: int
    address: str
    engine: str
    layers: tuple[Layer, ...]
    memory: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A whole fleet in rank order. `fleet_id` is None when no host closure of it is built."""

    fleet: str
    endpoint: str
    model: str
    nodes: tuple[Node, ...]
    fleet_id: str | None = None


def collect(fleet: str, *, digests: bool) -> Picture:
    """The picture of a fleet as its files are now; builds nothing. Raises as `plans.evaluate` does.

    Without `digests` neither they nor the fleet id are in it: they change with every edit.
    """
    loaded = plans.load(fleet)
    built = [_built(plan) for plan in loaded] if digests else [None] * len(loaded)
    serving = loaded[0].serving
    return Picture(
        fleet=fleet,
        endpoint=serving.endpoint,
        model=serving.model,
        nodes=tuple(_node(*pair) for pair in zip(loaded, built, strict=True)),
        fleet_id=next((found.fleet_id for found in built if found), None),
    )


def source(layer: str, plan: Plan) -> Source:
    """Where a layer of a node comes from. Raises `PIN.PROFILE` for a pin list that is not valid."""
    profile = {"base": "base", "site": plan.engine.package, "model": plan.engine.model}.get(layer)
    if profile not in pins.known():
        # The adapters are part of the harness too.
        folder = "src/sparkserve" if layer == "adapters" else f"pkgs/{plan.engine.package}"
        return Source(layer, "files of this repository", "", f"{folder}/{layer}")
    found = pins.load(profile).pins
    debs, wheels = (sum(pin.kind == kind for pin in found) for kind in ("deb", "wheel"))
    counts = ((debs, "Debian package"), (wheels, "wheel"))
    what = ", ".join(f"{n} {noun}{'s' if n != 1 else ''}" for n, noun in counts if n)
    return Source(layer, what, size_text(sum(pin.size for pin in found)), f"nix/pins/{profile}.json")


def memory_folders(arguments: Sequence[str]) -> tuple[str, ...]:
    """The tmpfs folders in arguments of bubblewrap, each with its size where it has a limit."""
    folders, limit = [], ""
    for flag, value in pairwise(arguments):
        if flag == "--size":
            limit = f" {int(value) >> 20} MiB"
        elif flag == "--tmpfs":
            folders.append(value + limit)
            limit = ""
    return tuple(folders)


def size_text(size: int) -> str:
    """Bytes for people: whole MB, or kB below one MB."""
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"


def _built(plan: Plan) -> closure.Closure | None:
    # By the path that Nix evaluates now: the link that `up` leaves may be of an older state of the files.
    path = Path(nix.eval_json(f"{plans.host(plan)}.outPath"))
    return closure.load(path) if path.exists() else None


def _node(plan: Plan, built: closure.Closure | None) -> Node:
    layers = nix.eval_json(f"{plans.host(plan)}.layers")
    trees = {layer["tree"] for layer in layers}
    sizes = store.sizes(sorted(trees - store.missing(trees)))
    digests = (
        {layer.path: layer.diff_id.removeprefix("sha256:") for layer in built.root.layers} if built else {}
    )
    return Node(
        name=plan.node.name,
        rank=plan.node.rank,
        address=str(plan.fleet.nodes[plan.node.rank].address),
        engine=plan.engine.package,
        layers=tuple(
            Layer(
                layer["name"],
                layer["target"],
                source(layer["name"], plan),
                sizes.get(layer["tree"]),
                digests.get(layer["tree"]),
            )
            for layer in layers
        ),
        memory=memory_folders(runner.kernel_folders(plan.engine.shm_mib)),
    )
