"""A clone with the real ./sparkserve over stubs: one tiny wheel, an empty `pins fetch`, a shell harness."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2]
REAL = ("sparkserve", "src/sparkserve/bootstrap.sh", "src/sparkserve/errors.py", "src/sparkserve/nix.conf")

# The harness prints the marker and its arguments, then what it inherited, and exits with $STUB_EXIT.
FLAKE = """{ outputs = _: { packages.x86_64-linux.sparkserve = derivation {
  name = "stub";
  system = "x86_64-linux";
  builder = (derivation {
    name = "busybox";
    system = "x86_64-linux";
    builder = "/missing";
    outputHashMode = "recursive";
    outputHashAlgo = "sha256";
    outputHash = (builtins.head (builtins.filter (pin: pin.kind == "tree")
      (builtins.fromJSON (builtins.readFile ./nix/pins/stage0.json)).pins)).sha256;
  }) + "/busybox";
  marker = builtins.readFile ./src/marker;
  args = [ "sh" "-c" ''
    $builder mkdir -p $out/bin
    {
      echo "#!$builder sh"
      echo "echo $marker \\"\\$@\\""
      echo "$builder ls -l /proc/\\$\\$/fd; env; exit \\''${STUB_EXIT:-0}"
    } > $out/bin/sparkserve
    $builder chmod 755 $out/bin/sparkserve
    case $marker in slow*) $builder sleep 60 ;; esac
    true
  '' ];
}; }; }
"""
FETCH = "import sys\nprint(*sys.argv[1:], file=sys.stderr)\n"


class Clone(NamedTuple):
    """A stub clone at `path`."""

    path: Path

    def start(
        self, *arguments: str, under: tuple[str, ...] = (), **environment: str
    ) -> subprocess.Popen[str]:
        """Start `./sparkserve` in a session of its own; `under` is a command that runs it."""
        return subprocess.Popen(
            [*under, str(self.path / "sparkserve"), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={
                "HOME": str(self.path / ".home"),
                "PATH": os.environ["PATH"],
                "PIP_FIND_LINKS": str(self.path / ".home"),
                "PIP_NO_INDEX": "1",
                **environment,
            },
        )

    def run(self, *arguments: str, under: tuple[str, ...] = (), **environment: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of `./sparkserve`."""
        with self.start(*arguments, under=under, **environment) as child:
            out, err = child.communicate(timeout=120)
            return child.returncode, out, err

    def mark(self, text: str) -> None:
        """Edit the stub harness: it prints `text`; one that starts with "slow" takes a minute to build."""
        (self.path / "src/marker").write_text(text)

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.path, check=True, capture_output=True)


def make(path: Path) -> Clone:
    """Make the clone in the empty folder `path`."""
    for name in ("src/sparkserve/cli/commands", "nix/pins", "pkgs/sparkserve", ".home"):
        (path / name).mkdir(parents=True)
    for name in REAL:
        shutil.copy(SOURCE / name, path / name)
    lock = {"version": 7, "root": "root", "nodes": {"root": {}}}
    files = {
        "flake.nix": FLAKE,
        "flake.lock": json.dumps(lock),
        "pyproject.toml": "",
        "pkgs/sparkserve/package.nix": "",
        "src/marker": "first",
        "src/sparkserve/__init__.py": '__version__ = "1.2.3"\n',
        "src/sparkserve/cli/main.py": FETCH,
        "src/sparkserve/cli/commands/up.py": "",
        "nix/pins/base.json": '{"pins": []}',
        "nix/pins/tools.json": '{"pins": []}',
        "nix/pins/harness.json": '{"pins": [{"kind": "wheel", "name": "tiny", "version": "1.0"}]}',
        ".gitignore": "/.sparkserve/\n/.home/\n",
    }
    for name, text in files.items():
        (path / name).write_text(text)
    shutil.copy(SOURCE / "nix/pins/stage0.json", path / "nix/pins/stage0.json")
    with zipfile.ZipFile(path / ".home/tiny-1.0-py3-none-any.whl", "w") as wheel:
        info = "tiny-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    clone = Clone(path)
    clone.git("init", "--quiet")
    clone.git("add", "--all")
    return clone
