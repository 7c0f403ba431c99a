"""Measures what an owner waits for, on a bare Debian made anew for every run: docs/results/up-FLEET.json.

    python tests/host/measure.py [RUNS [FLEET]]

A run (measure_inside.sh): `./sparkserve up` from nothing, then one with everything built, with the smoke
question, an answer of 128 tokens, and memory; then sizes. Needs root, debootstrap, a free port,
a quiet machine, and everything committed.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from sparkserve.fleet import DEFAULT_FLEET
from sparkserve.pins import sources

CHECKOUT = Path(__file__).parents[2]
SUITE = "bookworm"


def run(fleet: str) -> list[dict[str, Any]]:
    """One bare machine; its records."""
    mirror = sources.debian()
    if mirror is None:
        sys.exit("no Debian mirror in /etc/apt")
    folder = tempfile.mkdtemp(prefix="measure-")
    try:
        script = str(CHECKOUT / "tests/host/bare.sh")
        done = subprocess.run(
            [script, SUITE, mirror.uri, folder, f"tests/host/measure_inside.sh {fleet}"],
            stdout=subprocess.PIPE,
            text=True,
        )
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)
    if done.returncode:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"kind"')]


def spread(values: list[float]) -> dict[str, float]:
    """Median, least, and greatest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def main(runs: int, fleet: str) -> None:
    records = [record for _ in range(runs) for record in run(fleet)]
    again = [record for record in records if record["kind"] == "again"]
    sizes = next(record for record in records if record["kind"] == "size")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    cpu = next(
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")
    )
    summary = {
        "schema": "sparkserve.results/1",
        "command": f"python tests/host/measure.py {runs} {fleet}",
        "commit": commit.stdout.strip(),
        "machine": {
            "cpu": cpu.partition(": ")[2],
            "cores": os.cpu_count(),
            "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
            "kernel": platform.release(),
            "system": f"Debian {SUITE} from debootstrap, in namespaces",
        },
        "fleet_id": again[0]["up"]["fleet_id"],
        "first_up_s": spread([record["seconds"] for record in records if record["kind"] == "first"]),
        "second_up_s": spread([record["seconds"] for record in again]),
        "engine_ready_s": spread([record["up"]["seconds"]["ready"] for record in again]),
        "overhead_s": spread([record["seconds"] - record["up"]["seconds"]["ready"] for record in again]),
        "tokens_per_s": spread(
            [record["decode"]["tokens"] / record["decode"]["seconds"] for record in again]
        ),
        "ttft_s": spread([record["smoke"]["ttft_s"] for record in again]),
        "memory_bytes": spread(
            [sum(node["pss_bytes"] for node in record["status"]["nodes"]) for record in again]
        ),
        "closure_bytes": sizes["closure_bytes"],
        "store_bytes": sizes["store_bytes"],
        "records": records,
    }
    result = CHECKOUT / f"docs/results/up-{fleet}.json"
    result.write_text(json.dumps(summary, indent=1, sort_keys=True) + "\n")
    print(json.dumps({key: value for key, value in summary.items() if key != "records"}, indent=1))


if __name__ == "__main__":
    if shutil.which("debootstrap") is None:
        sys.exit("debootstrap is missing: apt-get install debootstrap")
    words = sys.argv[1:]
    main(int(words[0]) if words else 5, words[1] if len(words) > 1 else DEFAULT_FLEET)
