#!/usr/bin/env python3
"""bubblewrap and SGLang in one, without namespaces and without a model: for tests of the group.

Takes the runner's whole command line. The variable FAULT_<rank> says where it misbehaves: `die:PHASE` and
`hang:PHASE` at a phase's log line (a word of it), `unarmed`, `refuse`, `settings` about adapters, `error` (no
answer to a question), `die-with-file:PATH` once PATH is there, `lose-with-file:PATH` as a rank that lost its
peer, `die-after-file:PATH` 0.7 s later.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - before the imports

from fake_engine import FakeEngine

PHASES = ("Init torch distributed begin", "Load weight begin", "Load weight end", "KV Cache is allocated")


def die_with(parent: int) -> None:
    """As everything in a namespace dies with its PID 1."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def engine(variables: dict[str, str], args: list[str]) -> None:
    """The launcher: log lines, then an HTTP server."""
    rank = int(args[args.index("--node-rank") + 1])
    fault, _, where = variables.get(f"FAULT_{rank}", "").partition(":")
    group = json.loads(variables["SPARKSERVE_ADAPTERS"])
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print("server_args=ServerArgs()", flush=True)
    for phase in PHASES:
        if fault in ("die", "hang") and where in phase:
            print("RuntimeError: no weights", flush=True)
            if fault == "die":
                os._exit(3)
            time.sleep(600)
        print(f"[TP{rank}] {phase}.", flush=True)
        if phase == PHASES[0] and fault != "unarmed":
            for each in group["adapters"]:
                event = {
                    "event": "armed",
                    "adapter": each["name"],
                    "group": fault if fault == "settings" else "d",
                }
                if fault == "refuse":
                    event = {"event": "refused", "adapter": each["name"], "reason": "another source"}
                print(f"sparkserve-adapter {json.dumps(event)}", flush=True)
    me = os.getpid()
    if os.fork() == 0:
        die_with(me)
        ctypes.CDLL(None).prctl(15, b"sglang::scheduler")
        time.sleep(600)
    server = FakeEngine(int(args[args.index("--port") + 1]), fault if fault == "error" else "")
    if rank == 0:
        print("Uvicorn running on loopback", flush=True)
    if fault in ("die-with-file", "lose-with-file", "die-after-file"):
        threading.Thread(target=die_with_file, args=(fault, Path(where)), daemon=True).start()
    server.serve_forever()


def die_with_file(fault: str, path: Path) -> None:
    """Die once `path` is there: at once, at once for a lost peer, or a moment later."""
    while not path.exists():
        time.sleep(0.02)
    if fault == "lose-with-file":
        print("RuntimeError: Connection closed by peer [127.0.0.3]:1", flush=True)
    time.sleep(0.7 if fault == "die-after-file" else 0)
    os._exit(9)


def main() -> None:
    """Parse as bubblewrap does, fork its PID 1, and below that the engine."""
    words = sys.argv[1:]
    at = words.index("--")
    options, argv = words[:at], words[at + 1 :]
    variables = {options[i + 1]: options[i + 2] for i, word in enumerate(options) if word == "--setenv"}
    status = int(options[options.index("--json-status-fd") + 1])
    if "--die-with-parent" in options:
        die_with(os.getppid())
    monitor = os.getpid()
    init = os.fork()
    if init == 0:
        die_with(monitor)
        me = os.getpid()
        if (launcher := os.fork()) == 0:
            die_with(me)
            engine(variables, argv)
        _, ended = os.waitpid(launcher, 0)
        os._exit(os.waitstatus_to_exitcode(ended) % 256)
    os.write(status, json.dumps({"child-pid": init}).encode() + b"\n")
    _, ended = os.waitpid(init, 0)
    code = os.waitstatus_to_exitcode(ended)
    code = code if code >= 0 else 128 - code
    os.write(status, json.dumps({"exit-code": code}).encode() + b"\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
