"""Compares SGLang in an engine root with the one that the adapters were qualified on. No server starts."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from sparkserve.adapters import fingerprint, registry
from sparkserve.engine import runner
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sparkserve.engine.closure import Closure

LIMIT_S = 300  # it imports SGLang: 4 s on two idle cores


class Target(NamedTuple):
    """A place in SGLang. `users`: adapters, or `plugin`. `state`: how it compares. `found`: its hash."""

    target: str
    users: list[str]
    state: str
    found: str | None


class Found(NamedTuple):
    """What a root has: SGLang's version, and every target that the adapters in it declare."""

    sglang: str
    targets: list[Target]

    def wrong(self) -> list[Target]:
        """The targets that are not as recorded."""
        return [each for each in self.targets if each.state != "same"]


def qualify(closure: Closure, *, binds: Mapping[str, str] | None = None) -> Found:
    """Resolve every target in the root of `closure`; `binds` as in `runner.program`.

    Raises `ENGINE.START` when Python or SGLang does not run there, `ADAPTER.DRIFT` when there are no targets:
    then nothing was proven.
    """
    program = [closure.argv[0], "-m", fingerprint.__name__]
    argv = runner.program(closure, program, env={"SGLANG_USE_CPU_ENGINE": "1"}, binds=binds)
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if ran.returncode != 0:
        raise SparkserveError(
            "ENGINE.START",
            expected="Python to look at SGLang in the engine's root",
            found=ran.stderr.strip()[-600:],
            where=closure.root.digest,
            do="The lines above name the failing import.",
        )
    value = json.loads(ran.stdout)
    users = fingerprint.targets(registry.declarations())
    recorded = fingerprint.recorded()
    targets = [
        Target(name, users.get(name, []), _state(row, recorded.get(name)), row.get("sha256"))
        for name, row in value["targets"].items()
    ]
    if not any(set(each.users) - {"plugin"} for each in targets):
        raise SparkserveError(
            "ADAPTER.DRIFT",
            expected="targets of adapters",
            found="none in the engine's root",
            where=closure.root.digest,
            do="Does the root have the adapters' layer?",
        )
    return Found(value["sglang"], targets)


def record(found: Found, file: Path) -> None:
    """Write `found` as what the adapters are qualified on. Raises `ADAPTER.DRIFT` for a target not found."""
    for each in found.targets:
        if each.found is None:
            raise drifted([each])
    hashes = {each.target: each.found for each in found.targets}
    value = {"sglang": found.sglang, "targets": hashes}
    file.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def drifted(wrong: list[Target]) -> SparkserveError:
    """The error for targets that are not as recorded."""
    return SparkserveError(
        "ADAPTER.DRIFT",
        expected="the SGLang that the adapters were qualified on",
        found="; ".join(f"{each.target} {each.state}" for each in wrong),
        where="the engine's root",
        do="Read what changed there, test the adapter, then: ./sparkserve adapters verify --update.",
    )


def _state(row: dict[str, str], recorded: str | None) -> str:
    if "error" in row:
        return f"does not resolve ({row['error']})"
    if recorded is None:
        return "is not recorded"
    return "same" if row["sha256"] == recorded else "has changed"
