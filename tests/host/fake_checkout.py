"""A checkout with one fleet, whose `nix` is a script that hands out a prepared closure in no time.

So a test can run the real command line, with real signals, against the small server of tests/unit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import engine_values
import fake_engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.engine.closure import Closure

SCRIPT = str(Path(fake_engine.__file__).resolve())
# A virtual environment's Python is a link; the root needs the installation behind it.
PREFIX = str(Path(sys.base_prefix).resolve())
SOURCE = Path(__file__).parents[2] / "src"

NIX = """#!/bin/sh
# $NIX_SLEEP: "eval" or "build" makes that step take very long.
case "$1 $*" in
  eval*.plans)
    touch "$SPARKSERVE_CHECKOUT/evals"
    [ "$NIX_SLEEP" = eval ] && exec sleep 600
    exec cat "$SPARKSERVE_CHECKOUT/plans.json" ;;
  eval*.outPath) echo "\\"$SPARKSERVE_CHECKOUT/closure\\"" ;;
  build*)
    touch "$SPARKSERVE_CHECKOUT/builds"
    [ "$NIX_SLEEP" = build ] && exec sleep 600
    echo "[{\\"outputs\\": {\\"out\\": \\"$SPARKSERVE_CHECKOUT/closure\\"}}]" ;;
esac
"""


class Checkout(NamedTuple):
    """A fake checkout at `path`."""

    path: Path

    def configure(
        self, *, port: int, fault: str = "", fleet_id: str = "0" * 64, ready_timeout_s: int = 300
    ) -> None:
        """Write plan and closure, as a build would."""
        plan = engine_values.plan(
            port=port, ready_timeout_s=ready_timeout_s, binds=[PREFIX, SCRIPT], env={"FAULT": fault}
        )
        value = plan.model_dump(mode="json", by_alias=True)
        (self.path / "plans.json").write_text(json.dumps({"spark-0": value}))
        (self.path / "closure/plan.json").write_text(json.dumps(value))
        closure = host_closure().model_copy(update={"fleet_id": fleet_id})
        (self.path / "closure/closure.json").write_text(closure.model_dump_json(by_alias=True))

    def start(
        self,
        *arguments: str,
        under: Sequence[str] = (),
        **environment: str,
    ) -> subprocess.Popen[str]:
        """Run `sparkserve` in the background; Ctrl-C is a SIGINT to its group, as a terminal sends it.

        `under` is a command that runs it; `environment` adds to a minimal one.
        """
        return subprocess.Popen(
            [*under, sys.executable, "-m", "sparkserve.cli.main", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=self.path,
            env={
                "HOME": str(self.path),
                "PATH": f"{self.path}/bin:{os.environ['PATH']}",
                "PYTHONPATH": str(SOURCE),
                "SPARKSERVE_CHECKOUT": str(self.path),
                "SPARKSERVE_FLEET": "local-single",
                **environment,
            },
        )

    def run(self, *arguments: str, under: Sequence[str] = (), **environment: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of one command."""
        with self.start(*arguments, under=under, **environment) as child:
            out, err = child.communicate(timeout=120)
            return child.returncode, out, err

    @property
    def record(self) -> Path:
        return self.path / ".sparkserve/run/local-single/spark-0.json"


def host_closure() -> Closure:
    """The machine's own / as the engine root, with this Python in it."""
    layer = {"name": "base", "target": "/", "path": "/", "diff_id": engine_values.DIGEST}
    return engine_values.closure(
        root={"digest": engine_values.DIGEST, "layers": [layer]},
        argv=[f"{PREFIX}/bin/python3", SCRIPT],
        bwrap=shutil.which("bwrap", path=f"{PREFIX}/bin:{os.environ['PATH']}"),
    )


def make(path: Path) -> Checkout:
    """A checkout in the empty folder `path`: a fleet that git tracks, empty pins and packages, a `nix`."""
    for folder in ("hosts/local-single", "nix/pins", "pkgs/engine-cpu", "pkgs/demo-model", "bin", "closure"):
        (path / folder).mkdir(parents=True)
    (path / "flake.nix").write_text("")
    (path / "hosts/local-single/fleet.nix").write_text("{ }")
    target = {"system": "x86_64-linux", "debian": "bookworm", "python": "3.11", "glibc": "2.36"}
    for profile in ("stage0", "base", "tools", "harness", "engine-cpu", "demo-model"):
        head = {"schema": "sparkserve.pins/1", "profile": profile, "locked": "", "target": target}
        (path / f"nix/pins/{profile}.json").write_text(json.dumps({**head, "pins": []}))
    for name, text in (("nix", NIX), ("nix-store", "#!/bin/sh\n")):
        (path / "bin" / name).write_text(text)
        (path / "bin" / name).chmod(0o755)
    subprocess.run(["git", "init", "--quiet"], cwd=path, check=True)
    subprocess.run(["git", "add", "hosts"], cwd=path, check=True)
    return Checkout(path)
