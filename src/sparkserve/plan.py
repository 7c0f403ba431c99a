"""The plan: what one node runs. Nix renders it (nix/plan.nix); everything else reads it, recomputing nothing.

`docs/plan.schema.json` is the JSON Schema of these types (`sparkserve fleet schema`).
"""

from __future__ import annotations

import json
from ipaddress import IPv4Address  # noqa: TC003 - pydantic needs it at run time
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sparkserve import given
from sparkserve.errors import SparkserveError
from sparkserve.names import FleetName, GateName, Name  # noqa: TC001 - pydantic needs them at run time

Rank = Annotated[int, Field(ge=0)]
Port = Annotated[int, Field(ge=1, le=65535)]
Interface = Annotated[str, Field(pattern="^[A-Za-z0-9_.-]{1,15}$")]
Prefix = Annotated[int, Field(ge=8, le=30)]
AbsolutePath = Annotated[str, Field(pattern="^/")]
# As the options are typed (modules/types/text.nix): what is written to a node is written by root.
EtcFile = Annotated[str, Field(pattern=r"^/etc(/\.?[A-Za-z0-9_@\\:-][A-Za-z0-9_.@\\:+-]*)+$")]
_PART = r"(/\.?[A-Za-z0-9_-][A-Za-z0-9_.-]*)"
Folder = Annotated[
    str,
    Field(pattern=rf"^(/(srv|mnt|data){_PART}+|/var/lib/sparkserve/(engram|weights){_PART}*)$"),
]
UnitName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_\\:-][A-Za-z0-9@_.\\:-]*"
        r"\.(service|socket|mount|automount|swap|target|path|timer|slice)$"
    ),
]
Sysctl = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*)+$")]
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$")]
KernelArg = Annotated[str, Field(pattern="^[A-Za-z0-9_.,:=/+-]+$")]


# A file may be of another version; what was evaluated just now is of this one, so an option is wrong.
_BUILD = (
    "Name a host closure or a plan of this version. If it was edited or is of another one, build it again."
)
_CHANGE = "Change the option of the fleet that this field comes from."


class _Frozen(BaseModel):
    # A part's own validator is only made for who validates a part alone: it is a third of this module's time.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, serialize_by_alias=True, defer_build=True
    )


class FleetNode(_Frozen):
    """A node as all nodes know it."""

    name: Name
    rank: Rank
    address: IPv4Address


class Fleet(_Frozen):
    """All nodes in rank order; rank 0 is the head."""

    name: FleetName
    topology: Literal["single", "pair", "triangle", "ring", "switched"]
    nodes: Annotated[tuple[FleetNode, ...], Field(min_length=1)]


class Node(_Frozen):
    """The node that this plan is for."""

    name: Name
    rank: Rank


class Serving(_Frozen):
    """The endpoint on the head. It asks for a key of `api_key_file`, which is there too; None: for none."""

    model: Name
    host: Name
    port: Port
    api_key_file: AbsolutePath | None
    ready_timeout_s: Annotated[int, Field(ge=1)]

    @property
    def endpoint(self) -> str:
        """Base URL of the HTTP API."""
        return f"http://{self.host}:{self.port}"

    @property
    def key_file(self) -> Path | None:
        """`api_key_file` as a path."""
        return Path(self.api_key_file) if self.api_key_file else None


class Engine(_Frozen):
    """What runs inside the engine's root. `package` and `model` are names under pkgs/, never paths."""

    package: Name
    model: Name
    args: tuple[str, ...]
    env: dict[str, str]
    devices: tuple[AbsolutePath, ...]
    binds: tuple[AbsolutePath, ...]
    shm_mib: Annotated[int, Field(ge=1)]


class MemoryTerm(_Frozen):
    """What one thing takes of a node's memory: from the start on, or only while requests are served."""

    name: Name
    phase: Literal["start", "serve"]
    bytes: Annotated[int, Field(ge=1)]
    why: Name


class Memory(_Frozen):
    """What a node's memory is planned for, in bytes. `pool_bytes` is what Linux calls MemTotal.

    `start_bytes` is the sum of the terms of a start, and `serve_bytes` that of all. The lines are the
    bytes of MemAvailable below which the guard kills the engine, before it serves and while it does.
    """

    pool_bytes: Annotated[int, Field(ge=1)]
    terms: tuple[MemoryTerm, ...]
    start_bytes: Annotated[int, Field(ge=1)]
    serve_bytes: Annotated[int, Field(ge=1)]
    start_line_bytes: Annotated[int, Field(ge=1)]
    serve_line_bytes: Annotated[int, Field(ge=1)]


class Management(_Frozen):
    """This node's place on the management network: SSH, control, and what gloo says."""

    interface: Interface
    address: IPv4Address
    prefix: Prefix


class Peer(_Frozen):
    """Another node on a link's network."""

    rank: Rank
    address: IPv4Address


class Link(_Frozen):
    """One stripe of one of this node's ports, and who else is on its network.

    `rail` numbers what joins ports: a cable, with one peer, or a switch, with all nodes. `hca` is the RDMA
    device of `interface`, `pci` the function's address.
    """

    interface: Interface
    hca: Name
    pci: Name
    port: Literal[0, 1]
    rail: Annotated[int, Field(ge=0)]
    stripe: Literal[0, 1]
    address: IPv4Address
    prefix: Prefix
    peers: Annotated[tuple[Peer, ...], Field(min_length=1)]


class Fabric(_Frozen):
    """The networks of this node. `mtu` is that of the cables, in bytes.

    `nccl` is which one the engine loads, None for an engine without; its environment is in the engine's.
    """

    management: Management
    mtu: Annotated[int, Field(ge=1280, le=9216)]
    nccl: Literal["stock", "ring"] | None
    links: tuple[Link, ...]


class Group(_Frozen):
    """How the engine runs as one group over the nodes.

    `rendezvous_ports` are the first and the last that boots take turns with. At most `start_limit` starts in
    `start_window_s` seconds. `canary_s`: how often an idle group is asked for a token. `lost_s`: how long it
    may give none before clients are refused; a rank may say nothing for half of it.
    """

    size: Annotated[int, Field(ge=1)]
    control_port: Port
    rendezvous_ports: tuple[Port, Port]
    engine_port: Port
    start_limit: Annotated[int, Field(ge=1)]
    start_window_s: Annotated[int, Field(ge=1)]
    canary_s: Annotated[int, Field(ge=1)]
    lost_s: Annotated[int, Field(ge=2)]


class GuardLevel(_Frozen):
    """MiB of MemAvailable that are kept, MiB below which it kills the engine, most ms between two samples."""

    floor_mib: Annotated[int, Field(ge=1)]
    line_mib: Annotated[int, Field(ge=1)]
    interval_ms: Annotated[int, Field(ge=1)]


class Guard(_Frozen):
    """The memory guard (docs/guard.md): `startup` until the engine serves, `steady` then.

    The floors hold while MemAvailable falls by `rate_mib_s` at most: `closest_ms` is the shortest time
    between two samples, `kill_ms` what a kill takes.
    """

    startup: GuardLevel
    steady: GuardLevel
    rate_mib_s: Annotated[int, Field(ge=1)]
    closest_ms: Annotated[int, Field(ge=1)]
    kill_ms: Annotated[int, Field(ge=1)]


class Metrics(_Frozen):
    """Where each node serves its counters, on its management address."""

    port: Port


class Adapter(_Frozen):
    """An adapter that is on, with every one of its settings."""

    name: Name
    settings: dict[str, int]


class Engram(_Frozen):
    """Where a rank's Engram rows are: the folder of its pack, the cache in GiB, and reads at a time."""

    directory: Folder
    cache_gib: Annotated[int, Field(ge=0)]
    io_threads: Annotated[int, Field(ge=1)]


class Weights(_Frozen):
    """Where the node finds the checkpoint: `local` is its own copy, `nfs` the head's."""

    path: Folder
    source: Literal["local", "nfs"]


class Kernel(_Frozen):
    """What must run on the node: `uname -r` (None: whatever boots), bytes in a page, how the driver's version
    begins."""

    release: Name | None
    page_size: Literal[4096, 65536]
    driver: Name


class HostFile(_Frozen):
    """A file of the node. `mode` is in octal."""

    mode: Annotated[str, Field(pattern="^0[0-7]{3}$")]
    text: str


class Host(_Frozen):
    """What the closure puts on its node: files by path, systemd units by name. `@out@` in a text is it.

    `sysctls` are what /proc/sys must show, `kernel_args` what /proc/cmdline must. A `default_target` of None
    leaves the node's own. `kernel` is None where nothing of the operating system is decided.
    """

    files: dict[EtcFile, HostFile]
    units: dict[UnitName, str]
    mask: tuple[UnitName, ...]
    default_target: UnitName | None
    sysctls: dict[Sysctl, Line]
    kernel_args: tuple[KernelArg, ...]
    kernel: Kernel | None


class Plan(_Frozen):
    """One node's plan. `fabric`, `group` and `metrics` are None for the topology `single`, `engram` for a
    model without, `memory` for one whose shapes are not known, and `weights` for one that is in the closure.

    `gates` are names of gates in the order they run; one that the harness does not have has failed."""

    schema_name: Literal["sparkserve.plan/1"] = Field(alias="schema")
    fleet: Fleet
    node: Node
    serving: Serving
    engine: Engine
    fabric: Fabric | None
    adapters: tuple[Adapter, ...]
    group: Group | None
    guard: Guard | None
    engram: Engram | None
    metrics: Metrics | None
    gates: tuple[GateName, ...]
    memory: Memory | None
    weights: Weights | None
    host: Host

    @model_validator(mode="after")
    def _node_is_of_the_fleet(self) -> Self:
        ranks = [(node.name, node.rank) for node in self.fleet.nodes]
        if [rank for _, rank in ranks] != list(range(len(ranks))):
            raise ValueError("fleet.nodes with the ranks 0, 1, ... in order")
        if (self.node.name, self.node.rank) not in ranks:
            raise ValueError("node to be one of fleet.nodes, with the same rank")
        if (self.fleet.topology == "single") != (
            self.fabric is None and self.group is None and self.metrics is None
        ):
            raise ValueError("fabric, group and metrics exactly when the topology is not single")
        if self.group is not None and self.group.size != len(ranks):
            raise ValueError("group.size to be the number of fleet.nodes")
        return self


def load(path: Path) -> Plan:
    """Read a plan.json. Raises `PLAN.SCHEMA` when the file is missing, not JSON or not a plan."""
    try:
        value = given.read_json(path)
    except (OSError, ValueError) as error:
        raise _wrong("a plan in JSON", str(error), str(path), _BUILD) from error
    return _parse(value, str(path), _BUILD)


def parse(value: Any) -> Plan:
    """A plan from the JSON value that this checkout's Nix code gave. Raises `PLAN.SCHEMA` with the first
    wrong field."""
    return _parse(value, "the evaluated plan", _CHANGE)


def _parse(value: Any, where: str, do: str) -> Plan:
    try:
        # As JSON, so that strict types still take a list for a tuple.
        return Plan.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise _wrong(*_in_words(error), where, do) from error


def _in_words(error: ValidationError) -> tuple[str, str]:
    """What was expected and what was found, of the first error."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "missing":
            return f"the field {field}", "a plan without it"
        case "extra_forbidden":
            return "only fields of this version of the plan", field
        case "value_error":
            return first["msg"].removeprefix("Value error, "), "other values"
    return f"{field}: {first['msg'].removeprefix('Input should be ')}", json.dumps(first["input"])[:100]


def schema() -> dict[str, Any]:
    """The JSON Schema of a plan."""
    return Plan.model_json_schema(by_alias=True)


def _wrong(expected: str, found: str, where: str, do: str) -> SparkserveError:
    return SparkserveError("PLAN.SCHEMA", expected=expected, found=found, where=where, do=do)
