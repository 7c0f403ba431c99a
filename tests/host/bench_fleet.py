"""What `bench compare` says of two equal arms, and of one that is 5 % slower, on the laptop fleet: evidence.

    sudo python tests/host/bench_fleet.py FOLDER [--boots N] [--samples N] [--tokens N] [--pace MS]

Works on a copy of this checkout in FOLDER, with a port and a network of its own. Three arms, `a`, `again`
and `slow`; each boot of the group belongs to one, and their order is drawn. In `slow` all nodes are frozen
for 5 % of the time that they run, which no counter of the engine can see. In all arms
every all-reduce waits for MS first: where ranks share the cores of a virtual machine, a boot's rate goes up
and down by 10 % with what its host does, and 5 % would take dozens of boots. Results go to
docs/results/bench-fleet.json. Needs root and Nix, a machine that does nothing else, and everything committed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import engine_copy
from measure_group import machine

from sparkserve.local import faults, triangle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkserve.local.record import Fleet

FLEET = "local-triangle"
NETWORK = "10.79.64"
ARMS = ("a", "again", "slow")
DELAY = 0.05
STOP_S = 0.1  # much longer than a pace, in which a stop would go unnoticed
RESULT = Path(__file__).parents[2] / "docs/results/bench-fleet.json"


# At the end of the adapter.
PACED = """

def _paced(call, pause_s):
    import time

    def all_reduce(*args):
        time.sleep(pause_s)
        return call(*args)

    return all_reduce


Adapter.all_reduce = _paced(Adapter.all_reduce, {pause_s})
"""


@contextmanager
def slowed(fleet: Fleet) -> Iterator[dict[str, float]]:
    """Freeze the nodes for STOP_S, as often as makes a step DELAY longer. Yields what came of it.

    Not by signals: a supervisor that sees an engine's process stopped ends the boot.
    """
    over, spent = threading.Event(), {"stopped_s": 0.0, "running_s": 0.0}

    def turns() -> None:
        last = time.monotonic()
        # By how long a stop really was: to freeze three nodes takes its time, too.
        while not over.wait((spent["stopped_s"] + STOP_S) / DELAY - spent["running_s"]):
            begin = time.monotonic()
            for node in fleet.nodes:
                faults.freeze(fleet, node)
            time.sleep(STOP_S)
            for node in fleet.nodes:
                faults.thaw(fleet, node)
            end = time.monotonic()
            spent["running_s"] += begin - last
            spent["stopped_s"] += end - begin
            last = end

    thread = threading.Thread(target=turns)
    thread.start()
    try:
        yield spent
    finally:
        over.set()
        thread.join()


def boot(made: engine_copy.Copy, arm: str, options: argparse.Namespace, seed: int, file: Path) -> Any:
    """One start of the group, measured; what the delay was."""
    made.json("up", "--fleet", FLEET)
    words = ["--cases", "prose", "--streams", "1", "--tokens", str(options.tokens), "--seed", str(seed)]
    words += ["--min", str(options.samples), "--max", str(options.samples), "--output", str(file)]
    try:
        if arm != "slow":
            code, _ = made.run("bench", "decode", "--fleet", FLEET, *words)
            spent = {}
        else:
            with slowed(triangle.load(FLEET)) as spent:
                code, _ = made.run("bench", "decode", "--fleet", FLEET, *words)
        assert code == 0, code
        return spent
    finally:
        made.run("down", "--fleet", FLEET)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--boots", type=int, default=4, help="Of each arm.")
    parser.add_argument("--samples", type=int, default=4, help="Of each boot.")
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--pace", type=float, default=5.0, metavar="MS")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = options.folder.resolve()
    before = machine()
    made = engine_copy.make(folder / "checkout", {FLEET: NETWORK})
    os.environ["SPARKSERVE_CHECKOUT"] = str(made.path)
    with (made.path / "src/sparkserve/adapters/oneshot_collectives/__init__.py").open("a") as adapter:
        adapter.write(PACED.format(pause_s=options.pace / 1000))
    files: dict[str, list[str]] = {arm: [] for arm in ARMS}
    delays, order = [], random.Random(options.seed)  # noqa: S311 - drawn, not secret
    for number in range(options.boots):
        for arm in order.sample(ARMS, len(ARMS)):
            file = folder / f"{arm}-{number}.json"
            spent = boot(made, arm, options, options.seed, file)
            files[arm].append(str(file))
            delays += [round(spent["stopped_s"] / spent["running_s"], 4)] if spent else []
            print(number, arm, spent, flush=True)
    found = {}
    for arm in ARMS[1:]:
        code, out = made.run("bench", "compare", *files[arm], "--against", *files["a"], "--json")
        found[arm] = {"exit_code": code, "compare": json.loads(out)}
        print(arm, code, flush=True)
    whole = {
        "schema": "sparkserve.results/1",
        "machine": {**before, "load_after": os.getloadavg()[0]},
        "command": f"python tests/host/bench_fleet.py FOLDER --boots {options.boots}"
        f" --samples {options.samples} --tokens {options.tokens} --pace {options.pace:g}"
        f" --seed {options.seed}",
        "delays": delays,
        **found,
        "boots": {arm: [json.loads(Path(file).read_text())["boots"] for file in files[arm]] for arm in ARMS},
    }
    RESULT.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
