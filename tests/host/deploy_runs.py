"""Deployments of real SGLang to three nodes, each with a fault at a random moment, and what they leave.

    sudo python tests/host/deploy_runs.py FOLDER --seed 1 --runs 20 [--fault "power cut"]
    sudo python tests/host/deploy_runs.py FOLDER --measure
    sudo python tests/host/deploy_runs.py FOLDER --down

Works on a copy of this checkout in FOLDER, with a port and a network of its own: the fleet local-triangle
there is brought up and kept. A run has a seed (those from --seed on): an option of the fleet is changed,
`deploy --apply` begins, at a moment of it something happens, is mended, and `deploy --resume` ends what is
open. Then all nodes have one fleet id, that of before or that of the target, run it, answer, have nothing
open, and have forgotten no line of a journal. The only gate is smoke, to spend the time on faults.
`--measure`: what a changed comment in the harness copies, and how long a rollback takes to serve again.
A line for each goes to docs/results/deploy-runs.jsonl. Disks stay in FOLDER for the next call; `--down`
removes them. The exit code is 1 when something was wrong; then the runs end. Needs root and Nix.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
sys.path[:0] = [str(CHECKOUT / "src"), str(HERE / "fleet")]

import deploy_faults  # noqa: E402
import deploy_left  # noqa: E402
import endpoint  # noqa: E402
import engine_copy  # noqa: E402
from group_fleet import FLEET, NODES  # noqa: E402
from nodes import attempt, until  # noqa: E402
from running import Running  # noqa: E402

from sparkserve.deploy.journal import journals  # noqa: E402
from sparkserve.deploy.plan import DeployPlan  # noqa: E402
from sparkserve.errors import EXIT_CODES, SparkserveError  # noqa: E402
from sparkserve.local import faults, triangle  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULT = CHECKOUT / "docs/results/deploy-runs.jsonl"
NETWORK = "10.79.65"
CAPITAL = "What is the capital of France?"
ANSWER_S = 300.0  # a group that comes back by itself
DEPLOY_S = 900.0
RESUMES = 5
MANAGEMENT = "enP7s7"
NOTHING = EXIT_CODES["DEPLOY.NOTHING"]


class Bed:
    """The fleet in the copy `made`; its own files are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = engine_copy.make(folder / "checkout", {FLEET: NETWORK})
        os.environ["SPARKSERVE_CHECKOUT"] = str(self.made.path)
        self.journals = self.made.path / f".sparkserve/deploy/{FLEET}/journal"
        self._fleet_file = self.made.path / f"hosts/{FLEET}/fleet.nix"
        text = self._fleet_file.read_text().rstrip().removesuffix("}")
        self._fleet_file.write_text(f'{text}\n  gates = [ "smoke" ];\n  group.startWindowS = 600;\n}}\n')
        self.change()

    def change(self) -> None:
        """Another value of one option, which the fleet has never had."""
        file = self.folder / "value"
        value = int(file.read_text()) + 1 if file.exists() else 600
        file.write_text(str(value))
        text = self._fleet_file.read_text()
        self._fleet_file.write_text(re.sub(r"startWindowS = \d+", f"startWindowS = {value}", text))

    def serve(self) -> None:
        """Bring it up, and keep what runs."""
        self.command("up")
        code = self.command("deploy", "--apply", also=NOTHING)
        print(f"{FLEET} is up and kept ({'now' if code == 0 else 'before'})", flush=True)

    def command(self, *words: str, also: int = 0) -> int:
        """The exit code of a command, which is 0 or `also`."""
        code, out = self.made.run(*words, "--fleet", FLEET)
        if code not in (0, also):
            raise SystemExit(f"{' '.join(words)} ended with {code}: {out}")
        return code

    def last(self) -> int:
        """The number of the last journal of the deployer."""
        return max((each.number for each in journals(self.journals)), default=0)

    def planned(self, after: int) -> DeployPlan | None:
        """The plan of the deployment that began after journal `after`; None without one."""
        for each in journals(self.journals):
            if each.number > after:
                return DeployPlan.model_validate_json(json.dumps(each.records[0].data["plan"]))
        return None

    def answer(self) -> float:
        """Wait for the right answer; the seconds."""
        return until("an answer", self.answers, ANSWER_S)

    def answers(self) -> bool:
        """Whether it answers; what it says must be right."""
        try:
            said = endpoint.ask(self.made.port, CAPITAL)
        except OSError:
            time.sleep(0.2)
            return False
        if "Paris" not in said:
            raise AssertionError(f"it answers {said!r}")
        return True

    def first_token(self) -> float:
        """Ask until there is an answer, which must be right; when its first token came."""
        while True:
            try:
                with closing(endpoint.pieces(self.made.port, CAPITAL)) as said:
                    first = next(piece for piece in said if piece)
                    at = time.monotonic()
                    rest = "".join(said)
            except OSError:
                time.sleep(0.2)
                continue
            if "Paris" not in first + rest:
                raise AssertionError(f"it answers {first + rest!r}")
            return at

    def started(self) -> float:
        """How long the group's last start took, in seconds, from the controller's word to its own answer."""
        status = deploy_left.look(triangle.load(FLEET)).status
        start = status.starts[-1] if status else None
        if start is None or start.up_at is None:
            raise AssertionError(f"the last start: {start}")
        return start.up_at - start.at


def run(bed: Bed, seed: int, fault: deploy_faults.Fault) -> dict[str, Any]:
    """One deployment and its fault; what became of them."""
    fleet = triangle.load(FLEET)
    base, before = deploy_left.look(fleet), bed.last()
    bed.change()
    wrong = list(base.wrong)
    begin = time.monotonic()
    deployer = Running(bed.made, "deploy", "--apply", "--json")
    with deploy_left.Journals(fleet) as seen, ended(deployer):
        there = deploy_faults.come_to(fault, deployer, bed.journals, before)
        at = time.monotonic()
        told, undo = deploy_faults.happen(fault, fleet, deployer)
        if fault.kind == "power cut":
            seen.cut[fault.node] = (at, time.monotonic())
        print(f"  {at - begin:.1f} s, {there}: {told}", flush=True)
        if undo is not None:
            wait(deployer, fault.hold_s)
            undo[1]()
        code, out = deployer.end(DEPLOY_S)
        (bed.folder / f"run-{seed}.txt").write_text("".join(deployer.lines) + out)
        deploy_s = time.monotonic() - begin
        if code not in (0, -9, *EXIT_CODES.values()) or deployer.said("Traceback"):
            wrong.append(f"deploy ended with {code}: {deployer.lines[-20:]}")
        for node in NODES:
            until(f"{node} to answer", lambda: attempt(fleet, node, "true").returncode == 0, 60)  # noqa: B023
        mended = time.monotonic()
        resumed, resume_s = resume(bed)
        bed.answer()
        serving_s = time.monotonic() - mended
        left, plan = deploy_left.look(fleet), bed.planned(before)
        wrong += [*left.wrong, *seen.lost()]
    outcome = "undone" if left.fleet_id == base.fleet_id else "kept"
    if left.fleet_id not in (base.fleet_id, plan and plan.target_fleet_id):
        wrong.append(f"neither {base.fleet_id} nor {plan and plan.target_fleet_id}, but {left.fleet_id}")
    return {
        **{"seed": seed, **fault._asdict(), "step": there, "happened": told, "exit": code},
        **{"outcome": outcome, "resumed": resumed, "deploy_s": round(deploy_s, 1)},
        **{"resume_s": round(resume_s, 1), "serving_s": round(serving_s, 1), "wrong": wrong},
        "bytes": {member.name: member.bytes for member in plan.members} if plan else None,
    }


@contextmanager
def ended(deployer: Running) -> Iterator[None]:
    """After the body, whatever comes of it, the deployer does not run."""
    try:
        yield
    finally:
        deployer.child.kill()


def wait(deployer: Running, seconds: float | None) -> None:
    """Until so many seconds are over; None: until the deployer has ended."""
    begin = time.monotonic()
    while time.monotonic() - begin < (DEPLOY_S if seconds is None else seconds):
        if seconds is None and deployer.child.poll() is not None:
            break
        time.sleep(0.1)


def resume(bed: Bed) -> tuple[str | None, float]:
    """End what is open; how it ended, None when nothing was, and the seconds that it took."""
    begin, said = time.monotonic(), ""
    for _ in range(RESUMES):
        code, said = bed.made.run("deploy", "--resume", "--fleet", FLEET, "--json")
        if code == NOTHING:
            return None, time.monotonic() - begin
        if code == 0:
            return str(json.loads(said)[-1]["outcome"]), time.monotonic() - begin
        time.sleep(3)
    raise AssertionError(f"not resumed {RESUMES} times: {said}")


def harness_change(bed: Bed) -> dict[str, Any]:
    """A line of comment more in a module of the harness, deployed: what goes to each node."""
    with (bed.made.path / "src/sparkserve/notify.py").open("a") as file:
        file.write(f"# {time.time()}\n")
    fleet, before = triangle.load(FLEET), bed.last()
    was = {node: faults.counters(fleet, node)[MANAGEMENT].received for node in NODES}
    deployer = Running(bed.made, "deploy", "--apply")
    until("its copy", lambda: deployer.said("✓ Copy the closure"), DEPLOY_S)
    received = {node: faults.counters(fleet, node)[MANAGEMENT].received - was[node] for node in NODES}
    code, _ = deployer.end(DEPLOY_S)
    plan = bed.planned(before)
    assert code == 0 and plan is not None, deployer.lines
    copied = [line.split()[-2] for line in deployer.lines if "✓ Copy the closure" in line]
    return {
        "what": "a comment in the harness",
        "bytes": {member.name: member.bytes for member in plan.members},
        "received": received,  # of all that came in until then, the deployer's commands included
        "copy_s": float(copied[0]),
    }


def rollback(bed: Bed) -> dict[str, Any]:
    """`rollback --apply` of an idle fleet, with somebody who asks for a token while it is away."""
    begin = time.monotonic()
    deployer = Running(bed.made, "rollback", "--apply")
    while endpoint.health(bed.made.port) == 200:
        time.sleep(0.2)
    away = time.monotonic() - begin
    served = bed.first_token() - begin
    code, _ = deployer.end(60)
    command_s = time.monotonic() - begin
    assert code == 0, deployer.lines
    boot_s = bed.started()
    return {
        "what": "rollback",
        "boot_s": round(boot_s, 1),
        "serving_s": round(served, 1),  # since the command began
        "beside_boot_s": round(served - boot_s, 1),
        "away_s": round(served - away, 1),
        "command_s": round(command_s, 1),
        "phases": [line.strip() for line in deployer.lines if line.startswith("✓")],
    }


def keep(found: dict[str, Any]) -> None:
    """Add a line to the results."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    where = {"commit": commit.stdout.strip(), "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    line = json.dumps({**found, **where, "load": round(os.getloadavg()[0], 1)}, sort_keys=True)
    with RESULT.open("a") as file:
        file.write(line + "\n")
    print(line, flush=True)


def look_closer(bed: Bed, seed: int) -> None:
    """Keep what the nodes' units said."""
    fleet = triangle.load(FLEET)
    for node in NODES:
        with suppress(subprocess.TimeoutExpired):
            said = attempt(
                fleet, node, "journalctl --unit sparkserve-rank --unit sparkserve-front --lines 200"
            )
            (bed.folder / f"run-{seed}-{node}.txt").write_text(said.stdout + said.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--fault", choices=deploy_faults.KINDS)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--down", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    bed = Bed(options.folder.resolve())
    try:
        if options.runs or options.measure:
            bed.serve()
        for seed in range(options.seed, options.seed + options.runs):
            fault = deploy_faults.draw(seed, options.fault)
            print(f"seed {seed}: {fault}", flush=True)
            try:
                found = run(bed, seed, fault)
            except (AssertionError, SparkserveError) as error:
                found = {"seed": seed, **fault._asdict(), "wrong": [str(error)]}
            keep(found)
            if found["wrong"]:
                look_closer(bed, seed)
                raise SystemExit(1)
        for part in (harness_change, rollback) if options.measure else ():
            keep(part(bed))
    finally:
        triangle.down(FLEET, disks=options.down)


if __name__ == "__main__":
    main()
