"""Builder of bin/NAME from C files.

in (environment): name, folder (the .c and .h files), programs (bin/ with the compiler's), root (headers and
libraries), library (gcc's own).
"""

import os
import subprocess
from pathlib import Path

programs = f"{os.environ['programs']}/bin"
folder = Path(os.environ["folder"])
target = Path(os.environ["out"]) / "bin" / os.environ["name"]
target.parent.mkdir(parents=True)

argv = [
    f"{programs}/gcc-12",
    # Where gcc looks for its programs, and for its libraries and headers.
    *[f"-B{programs}/", f"-B{os.environ['library']}/", f"--sysroot={os.environ['root']}"],
    *["-isystem", f"{os.environ['library']}/include"],
    *["-std=c11", "-D_GNU_SOURCE", "-O2", "-static", "-fno-lto"],
    *["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"],
    # Neither the path of a source file nor a number made from its place.
    *[f"-ffile-prefix-map={folder}=.", f"-frandom-seed={os.environ['name']}"],
    *["-Wl,--build-id=none", "-s", "-o", str(target)],
]
subprocess.run([*argv, *sorted(str(file) for file in folder.glob("*.c"))], check=True)
