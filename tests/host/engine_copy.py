"""A copy of this checkout with a port and a state folder of its own, so that an engine of yours goes on."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).parents[2]


class Copy(NamedTuple):
    """The copy at `path`, whose fleets listen on `port`. Commands are for `fleet` unless they say another."""

    path: Path
    port: int
    fleet: str = "local-single"

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "sparkserve.cli.main", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=self.path,
            env={
                **os.environ,
                "PYTHONPATH": f"{self.path}/src",
                "SPARKSERVE_CHECKOUT": str(self.path),
                "SPARKSERVE_FLEET": self.fleet,
            },
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Exit code and stdout; stderr goes to pytest's report."""
        with self.start(*arguments) as child:
            out, err = child.communicate(timeout=1800)
        sys.stderr.write(err)
        return child.returncode, out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json")[1])


def make(path: Path, networks: dict[str, str] | None = None) -> Copy:
    """Copy what git tracks into the folder `path`, and take a free port.

    Fleets named in `networks` get that management network in place of 10.77.0, such as "10.79.5".
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=SOURCE, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, path / name, follow_symlinks=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for name, network in {"local-single": "", **(networks or {})}.items():
        fleet = path / f"hosts/{name}/fleet.nix"
        text = fleet.read_text()
        assert "serving.port = 8888;" in text
        text = text.replace("serving.port = 8888;", f"serving.port = {port};")
        fleet.write_text(text.replace("10.77.0.", f"{network}."))
    for argv in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *argv], cwd=path, check=True)
    return Copy(path, port)
