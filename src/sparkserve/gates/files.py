"""Evidence as files: written whole or not at all, read with a reason when they are none."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sparkserve import checkout, given
from sparkserve.errors import SparkserveError
from sparkserve.gates.evidence import Evidence
from sparkserve.output import write_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def folder() -> Path:
    """Where evidence is kept when nobody says otherwise."""
    return checkout.state() / "evidence"


def save(evidence: Evidence, where: Path) -> Path:
    """Write it into the folder `where`, named by gate and UTC time; its path."""
    where.mkdir(parents=True, exist_ok=True)
    stamp = datetime.fromisoformat(evidence.started).astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = where / f"{evidence.gate}-{stamp}.json"
    number = 1
    while path.exists():  # two of one gate in a second
        number += 1
        path = where / f"{evidence.gate}-{stamp}-{number}.json"
    write_file(path, evidence.model_dump_json(by_alias=True, indent=2) + "\n")
    return path


def read(path: Path) -> Evidence:
    """The evidence in a file. Raises `GATE.EVIDENCE`."""
    try:
        return Evidence.model_validate_json(json.dumps(given.read_json(path)))
    except (OSError, ValueError) as error:
        raise bad(path, given.fault(error)) from None


def baseline(path: Path, gates: Sequence[str]) -> dict[str, Evidence]:
    """By gate what to compare with: the evidence file `path`, or the newest of each gate in the folder.

    Raises `GATE.EVIDENCE` when there is none of any gate.
    """
    if not path.is_dir():
        found = [read(path)]
    else:
        # The names begin with the gate and end with the time, but a name is only a name.
        found = sorted((read(file) for file in path.glob("*.json")), key=lambda each: each.started)
    latest = {each.gate: each for each in found if each.gate in gates}
    if not latest:
        raise bad(path, f"none of {', '.join(gates)}" if found else "no evidence")
    return latest


def digest(evidence: Evidence) -> str:
    """The sha256 that says which evidence something was compared with."""
    return hashlib.sha256(evidence.model_dump_json(by_alias=True).encode()).hexdigest()


def bad(path: Path, found: str) -> SparkserveError:
    """The error for a file or a folder that is no evidence."""
    return SparkserveError(
        "GATE.EVIDENCE",
        expected="evidence of schema sparkserve.gate/1",
        found=" ".join(found.split()),
        where=str(path),
        do="Name a file that ./sparkserve gate run wrote, or a folder of such files.",
    )
