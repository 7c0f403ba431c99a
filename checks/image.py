"""Builder of the image check.

in (environment): image, layers (JSON: target and tree of each), judges (a root with skopeo and umoci).
"""

import filecmp
import json
import os
import subprocess
import sys
from pathlib import Path

work = Path("work").absolute()
work.mkdir()
out = Path(os.environ["out"])


def judge(*command: str) -> str:
    """Run a program of the judges' root with the image and a work folder."""
    enter = ["bwrap", "--unshare-user", "--uid", "0", "--gid", "0", "--ro-bind", os.environ["judges"], "/"]
    mounts = ["--ro-bind", os.environ["image"], "/image", "--bind", str(work), "/unpacked"]
    kernel = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run"]
    settings = ["--setenv", "HOME", "/unpacked", "--setenv", "PATH", "/usr/bin"]
    argv = [*enter, *mounts, *kernel, *settings, *command]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    return done.stdout


def tree_of(root: Path) -> dict[str, Path]:
    return {str(path.relative_to(root)): path for path in root.rglob("*")}


def difference(found: Path, expected: Path) -> str | None:
    """What differs between two paths, or None."""
    if expected.is_symlink() or found.is_symlink():
        same = expected.is_symlink() and found.is_symlink() and expected.readlink() == found.readlink()
        return None if same else "another link"
    if expected.is_dir() or found.is_dir():
        return None if expected.is_dir() and found.is_dir() else "folder and file"
    if bool(found.stat().st_mode & 0o100) != bool(expected.stat().st_mode & 0o100):
        return "another execute bit"
    return None if filecmp.cmp(found, expected, shallow=False) else "other bytes"


about = json.loads(judge("skopeo", "inspect", "oci:/image:latest"))
layers = json.loads(os.environ["layers"])
if len(about["Layers"]) != len(layers):
    sys.exit(f"skopeo sees {len(about['Layers'])} layers, the closure has {len(layers)}")
judge("umoci", "unpack", "--image", "/image:latest", "/unpacked/bundle")

found = tree_of(work / "bundle/rootfs")
expected: dict[str, Path] = {}
for layer in layers:
    target = layer["target"].strip("/")
    expected |= {
        f"{target}/{name}" if target else name: path for name, path in tree_of(Path(layer["tree"])).items()
    }
problems = [f"{name}: only in the image" for name in sorted(found.keys() - expected.keys())]
problems += [f"{name}: missing in the image" for name in sorted(expected.keys() - found.keys())]
for name in sorted(found.keys() & expected.keys()):
    problem = difference(found[name], expected[name])
    if problem:
        problems.append(f"{name}: {problem}")
if problems:
    sys.exit("\n".join(problems[:50]))
print(f"{len(found)} paths are equal")
out.touch()
