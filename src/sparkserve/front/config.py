"""What the front is told: addresses, files, and how long silence may last."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.plan import Plan

RUN_DIR = Path("/run/sparkserve")

_LOOPBACK: tuple[IPv4Network | IPv6Network, ...] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

# Limits that no site has had a reason to change. Bytes and seconds.
HEAD_BYTES = 64 * 1024  # request line and headers; the longest cookies and bearer tokens stay below 16 KiB
PIPELINED_BYTES = 64 * 1024  # of requests that wait behind a running one, before we stop reading
DISCARD_BYTES = 16 * 1024 * 1024  # of a body whose answer is known, before we close instead of reading on
CONNECTIONS = 2048
HEAD_S = 20.0  # from a request's first byte to its last header, however fast the bytes drip
BODY_S = 60.0  # between two pieces of a request's body
IDLE_S = 75.0  # of a kept connection without a request
STALL_S = 300.0  # of a client that takes nothing of what we have for it
CONNECT_S = 5.0
# uvicorn closes kept connections after 5 s: we stop using ours well before, or a request could meet its end.
UPSTREAM_IDLE_S = 2.0


@dataclass(frozen=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """From HOST:PORT. Raises ValueError."""
        host, _, port = text.rpartition(":")
        if not host or not 0 <= int(port) <= 65535:
            raise ValueError(f"{text!r} is not HOST:PORT")
        return cls(host.strip("[]"), int(port))


@dataclass(frozen=True)
class Config:
    """Of one front. Requests may ask for `model`; `status_from` are who may read /sparkserve/status.

    `api_key_file` has the keys of which a request must show one; None lets everybody ask.
    """

    listen: tuple[Address, ...]
    engine: Address
    model: str
    group_file: Path = RUN_DIR / "group.json"
    front_file: Path = RUN_DIR / "front.json"
    api_key_file: Path | None = None
    canary_s: float = 5.0
    lost_s: float = 10.0
    grace_s: float = 10.0  # for requests in flight when the front itself is stopped
    status_from: tuple[IPv4Network | IPv6Network, ...] = _LOOPBACK

    def may_see_status(self, peer: str) -> bool:
        """Whether a client with the address `peer` may read the status page."""
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self.status_from)


def from_plan(
    plan: Plan, *, listen: Sequence[Address] = (), engine: Address | None = None, run_dir: Path = RUN_DIR
) -> Config:
    """What the plan says, unless `listen` or `engine` say else. Raises `PLAN.SCHEMA` without an engine."""
    own = {} if plan.group is None else {"canary_s": plan.group.canary_s, "lost_s": plan.group.lost_s}
    if engine is None:
        if plan.group is None:
            raise SparkserveError(
                "PLAN.SCHEMA",
                expected="a plan with a group, whose engine has a port of its own",
                found=f"one of topology {plan.fleet.topology}",
                where=plan.fleet.name,
                do="Say with --engine where the engine listens.",
            )
        engine = Address("127.0.0.1", plan.group.engine_port)
    networks = _LOOPBACK
    if plan.fabric is not None:
        management = plan.fabric.management
        networks += (ip_network(f"{management.address}/{management.prefix}", strict=False),)
    return Config(
        listen=tuple(listen) or (Address(plan.serving.host, plan.serving.port),),
        engine=engine,
        model=plan.serving.model,
        group_file=run_dir / "group.json",
        front_file=run_dir / "front.json",
        api_key_file=plan.serving.key_file,
        status_from=networks,
        **own,
    )
