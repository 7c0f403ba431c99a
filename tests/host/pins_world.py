"""Commands of a checkout with a Nix store of its own, so that the machine's is safe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
# The pinned Python is in /nix, which is another folder here; ./sparkserve's bootstrap environment is not.
BOOTSTRAP = REPOSITORY / ".sparkserve/venv/bin/python"
PYTHON = str(BOOTSTRAP) if BOOTSTRAP.exists() else sys.executable
SPARKSERVE = [PYTHON, "-m", "sparkserve.cli.main"]


class World:
    """A checkout at `root`, and a namespace in which /nix is its folder `store`. `unshare`: more flags."""

    def __init__(self, root: Path, *unshare: str) -> None:
        self.root = root
        (root / "store").mkdir()
        # Mounts go away with the last process of the namespace: this one.
        enter = f"mount --bind {root}/store /nix && echo ready && exec sleep 3600"
        self.holder = subprocess.Popen(
            ["unshare", "--mount", *unshare, "sh", "-c", enter], stdout=subprocess.PIPE, text=True
        )
        assert self.holder.stdout is not None
        assert self.holder.stdout.readline() == "ready\n"

    def start(self, *argv: str) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "SPARKSERVE_CHECKOUT": str(self.root),
            "PYTHONPATH": str(REPOSITORY / "src"),
        }
        entered = ["nsenter", "--target", str(self.holder.pid), "--mount", "--net", *argv]
        return subprocess.Popen(
            entered, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, *argv: str) -> tuple[int, str]:
        process = self.start(*argv)
        out, _ = process.communicate(timeout=600)
        return process.returncode, out

    def pins(self, *arguments: str) -> tuple[int, str]:
        return self.run(*SPARKSERVE, "pins", *arguments)

    def physical(self, path: str) -> Path:
        return self.root / "store" / Path(path).relative_to("/nix")
