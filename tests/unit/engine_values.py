"""A plan, a closure and a run for tests of the engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sparkserve import plan as plans
from sparkserve.engine import procfs
from sparkserve.engine.closure import Closure
from sparkserve.engine.record import Run

if TYPE_CHECKING:
    from sparkserve.engine.procfs import Process
    from sparkserve.plan import Plan

DIGEST = "sha256:" + "0" * 64


def plan(*, port: int = 8888, ready_timeout_s: int = 300, **engine: Any) -> Plan:
    """A plan of one node; keywords replace fields of its engine."""
    return plans.parse(
        {
            "schema": "sparkserve.plan/1",
            "fleet": {
                "name": "local-single",
                "topology": "single",
                "nodes": [{"name": "spark-0", "rank": 0, "address": "127.0.0.1"}],
            },
            "node": {"name": "spark-0", "rank": 0},
            "serving": {
                "model": "smollm2-135m",
                "host": "127.0.0.1",
                "port": port,
                "api_key_file": None,
                "ready_timeout_s": ready_timeout_s,
            },
            "engine": {
                "package": "engine-cpu",
                "model": "demo-model",
                "args": ["--model-path", "/model", "--host", "127.0.0.1", "--port", str(port)],
                "env": {"OMP_NUM_THREADS": "2"},
                "devices": [],
                "binds": [],
                "shm_mib": 64,
                **engine,
            },
            "adapters": [],
            "fabric": None,
            "group": None,
            "guard": None,
            "engram": None,
            "metrics": None,
            "gates": ["smoke"],
            "memory": None,
            "weights": None,
            "host": {
                "files": {},
                "units": {},
                "mask": [],
                "default_target": None,
                "sysctls": {},
                "kernel_args": [],
                "kernel": None,
            },
        }
    )


def closure(**fields: Any) -> Closure:
    """A closure of three layers; keywords replace its fields."""
    layers = [("base", "/"), ("site", "/opt/engine"), ("model", "/model")]
    return Closure.model_validate(
        {
            "schema": "sparkserve.closure/1",
            "fleet_id": "0" * 64,
            "root": {
                "digest": DIGEST,
                "layers": [
                    {"name": name, "target": target, "path": f"/nix/store/{name}", "diff_id": DIGEST}
                    for name, target in layers
                ],
            },
            "argv": ["/usr/bin/python3.11", "-m", "sparkserve_launch"],
            "env": {"HOME": "/root", "LANG": "C.UTF-8"},
            "harness": {"digest": DIGEST, "path": "/nix/store/sparkserve"},
            "bwrap": "/nix/store/tools/usr/bin/bwrap",
            "guard": None,
            **fields,
        }
    )


def run(process: Process, *, port: int = 8888, boot_id: str | None = None) -> Run:
    """A run whose monitor, PID 1 and launcher are all `process`."""
    return Run(
        fleet="local-single",
        node="spark-0",
        fleet_id="0" * 64,
        closure="/nix/store/host",
        host="127.0.0.1",
        port=port,
        model="smollm2-135m",
        started_at=time.time(),
        boot_id=procfs.boot_id() if boot_id is None else boot_id,
        monitor=process,
        init=process,
        engine=process,
    )
