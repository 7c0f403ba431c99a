"""Builder of bin/: each program of the node's root with that root's loader and libraries set in it.

in (environment): root (the node's root), programs (paths in it), patchelf
"""

import os
import shutil
import subprocess
from pathlib import Path

root = Path(os.environ["root"])
libraries = root / "usr/lib/x86_64-linux-gnu"
folder = Path(os.environ["out"]) / "bin"
folder.mkdir(parents=True)

for program in os.environ["programs"].split():
    source = root / program
    target = folder / source.name
    # Some are links to a program that looks at the name it is called by: mkfs.ext4 is mke2fs.
    shutil.copyfile(source.resolve(), target)
    target.chmod(0o755)
    argv = [os.environ["patchelf"], "--set-interpreter", str(libraries / "ld-linux-x86-64.so.2")]
    # systemd's shared library lies in a folder of its own, but none of these programs needs it.
    subprocess.run([*argv, "--force-rpath", "--set-rpath", str(libraries), str(target)], check=True)
