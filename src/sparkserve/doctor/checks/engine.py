"""What the plan gives the engine: environment, arguments and ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.doctor.check import RESTARTED, NotApplicable, Unknown, Verdict, check, want

if TYPE_CHECKING:
    from sparkserve.doctor.node import Node

ENV = "the plan's engine.env"


def _cuda(n: Node) -> dict[str, str]:
    """The environment of an engine that runs on a GPU."""
    environment = n.environment()
    if environment.get("SGLANG_USE_CPU_ENGINE") == "1":
        raise NotApplicable("the plan's engine runs on the CPU")
    return environment


def _left_out(names: str) -> str:
    return f"take {names} out of engine.env in fleet.nix, {RESTARTED}: what is right is set without it"


@check(
    "ENGINE.EXPANDABLE",
    "The allocator has no expandable segments: with them every prefill above 64 tokens gave NaN.",
    "error",
    "issues, mia, knapcio",
    fix=_left_out("PYTORCH_CUDA_ALLOC_CONF"),
)
def expandable(n: Node) -> Verdict:
    found = _cuda(n).get("PYTORCH_CUDA_ALLOC_CONF", "not set")
    good = "expandable_segments:true" not in found.lower()
    return want(good, expected="expandable_segments:False", found=found, where=ENV)


@check(
    "ENGINE.JOBS",
    "At most two kernels are compiled at a time: 22 compilers beside a load reset all four nodes.",
    "error",
    "issues",
    fix=f"memory.compileJobs = 2 or 1 in fleet.nix, and no MAX_JOBS in engine.env, {RESTARTED}",
)
def jobs(n: Node) -> Verdict:
    found = _cuda(n).get("MAX_JOBS", "not set")
    return want(found in ("1", "2"), expected="MAX_JOBS 1 or 2", found=found, where=ENV)


@check(
    "ENGINE.NCCL_BUFFERS",
    "NCCL's buffers of all channels are at most 16 MiB: the default pins 4.7 GiB of the pool on each node.",
    "warning",
    "issues, mia",
    fix=_left_out("NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS"),
)
def nccl_buffers(n: Node) -> Verdict:
    environment = _cuda(n)
    n.links()
    size, channels = environment.get("NCCL_BUFFSIZE", ""), environment.get("NCCL_MAX_NCHANNELS", "")
    # 8 of 1 MiB in a triangle and at a switch, 4 of 4 MiB in a ring.
    good = size.isdigit() and channels.isdigit() and int(size) * int(channels) <= 16 << 20
    found = f"NCCL_BUFFSIZE {size or 'not set'}, NCCL_MAX_NCHANNELS {channels or 'not set'}"
    return want(good, expected="a product of 16777216 or less", found=found, where=ENV)


@check(
    "ENGINE.GID_EMPTY",
    "NCCL_IB_GID_INDEX is not the empty text: that means index 0, a link-local address.",
    "error",
    "issues",
    fix=_left_out("NCCL_IB_GID_INDEX"),
)
def gid_empty(n: Node) -> Verdict:
    found = n.environment().get("NCCL_IB_GID_INDEX")
    shown = "not set" if found is None else repr(found)
    return want(found != "", expected="not set", found=shown, where=ENV)


@check(
    "ENGINE.SOCKET_NAMES",
    "gloo and NCCL are told this node's own management interface: else gloo takes loopback and waits.",
    "error",
    "issues",
    fix="take the *_SOCKET_IFNAME out of engine.env in fleet.nix: the plan knows each node's interface",
)
def socket_names(n: Node) -> Verdict:
    environment = n.environment()
    ours = str(n.plan("fabric", "management", "interface"))
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
    given = {name: environment[name] for name in names if name in environment}
    wrong = [f"{name}={value}" for name, value in given.items() if value.lstrip("=") != ours]
    found = " ".join(wrong) or "right, or left to the supervisor"
    return want(not wrong, expected=ours, found=found, where=ENV)


@check(
    "ENGINE.HCAS",
    "NCCL is given the RDMA device of every stripe: one function alone is half of a cable.",
    "error",
    "issues, knapcio",
    fix=_left_out("NCCL_IB_HCA"),
    on="spark",
)
def hcas(n: Node) -> Verdict:
    named = _cuda(n).get("NCCL_IB_HCA")
    if named is None:
        raise NotApplicable("the plan names none: NCCL takes all that are active")
    given = {word.partition(":")[0] for word in named.lstrip("=^").split(",")}
    there: set[str] = set()
    for link in n.links():
        folder = f"/sys/class/net/{link['interface']}/device/infiniband"
        there |= set(n.names(folder)) if n.exists(folder) else set()
    missing = sorted(there - given)
    found = f"{named}, without {' '.join(missing)}" if missing else named
    return want(not missing, expected=",".join(sorted(there)), found=found, where=ENV)


@check(
    "ENGINE.RING",
    "In a ring every rank uses NCCL's ring only, with the NCCL that skips trees: opposite nodes have "
    "no path.",
    "error",
    "issues, mia, knapcio",
    fix=f'fleet.topology = "ring" and no NCCL_ALGO in engine.env of fleet.nix, {RESTARTED}',
)
def ring(n: Node) -> Verdict:
    if n.plan("fleet", "topology") != "ring":
        raise NotApplicable("the topology is no ring")
    algorithm = _cuda(n).get("NCCL_ALGO", "not set")
    library = str(n.plan("fabric", "nccl"))
    good = algorithm == "Ring" and library == "ring"
    found = f"NCCL_ALGO {algorithm}, NCCL {library}"
    return want(good, expected="NCCL_ALGO Ring, NCCL ring", found=found, where=ENV)


@check(
    "ENGINE.CHUNK",
    "Scores of a prefill are planned with at most 16 GiB: 14 bytes x chunk x context, or parts of 2 GiB.",
    "error",
    "issues, mia",
    fix="a smaller engine.prefillChunk, or engine.chunkedIndexer for an engine that has it, in fleet.nix",
)
def chunk(n: Node) -> Verdict:
    counted = [int(term["bytes"]) for term in n.plan("memory", "terms") if term["name"] == "indexer"]
    need = sum(counted) / (1 << 30)
    return want(need <= 16, expected="at most 16 GiB", found=f"{need:.1f} GiB", where="the plan's memory")


@check(
    "ENGINE.SHM",
    "The engine's /dev/shm is at most 16 GiB: it is part of the one pool.",
    "warning",
    "issues",
    fix=f"engine.shmMiB = 16384 or less in fleet.nix, {RESTARTED}",
)
def shm(n: Node) -> Verdict:
    found = int(n.plan("engine", "shm_mib"))
    return want(
        found <= 16384, expected="at most 16384 MiB", found=f"{found} MiB", where="the plan's engine.shm_mib"
    )


@check(
    "ENGINE.PORTS",
    "No port of the group is one that the kernel gives to outgoing connections.",
    "error",
    "owen",
    fix="choose ports below net.ipv4.ip_local_port_range: group.rendezvousPort and the others in fleet.nix",
)
def ports(n: Node) -> Verdict:
    group = n.plan("group")
    text = n.text("/proc/sys/net/ipv4/ip_local_port_range").split()
    if len(text) != 2 or not all(word.isdigit() for word in text):
        raise Unknown("ip_local_port_range has another form")
    low, high = map(int, text)
    used = [group.get("control_port"), group.get("engine_port"), *group.get("rendezvous_ports", [])]
    inside = [str(port) for port in used if isinstance(port, int) and low <= port <= high]
    found = " ".join(inside) or "none inside"
    return want(not inside, expected=f"none of {low} to {high}", found=found, where="ip_local_port_range")
