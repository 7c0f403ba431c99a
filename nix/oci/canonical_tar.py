"""The canonical tar of a folder: one content, one digest.

Entries sorted by path, mtime 1, uid and gid 0, no names, modes 0755 or 0644 (a store has 0555 and 0444,
which nobody could delete after unpacking), PAX headers only where a path is too long. Uncompressed, so that
the digest depends on no compressor and is the image's diff_id and blob digest at once.
"""

import os
import stat
import tarfile
from pathlib import Path

CHUNK = 1 << 20
# The store keeps no sticky bit and no private folder.
MODES = {"tmp": 0o1777, "var/tmp": 0o1777, "dev/shm": 0o1777, "root": 0o700}


def entries(tree: Path, target: str):
    """(name in the tar, path on disk): the folders down to `target`, then the tree in order of its paths."""
    parts = [part for part in target.split("/") if part]
    for depth in range(len(parts)):
        yield "/".join(parts[: depth + 1]), tree
    found = []
    pending = [tree]
    while pending:
        with os.scandir(pending.pop()) as scan:
            for entry in scan:
                found.append(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    for path in sorted(found, key=os.fsencode):
        yield "/".join([*parts, os.path.relpath(path, tree)]), path


def write(tree: Path, target: str, sink) -> None:
    """Hand the tar of `tree`, standing at the absolute path `target`, to `sink`, a function of bytes."""
    for name, path in entries(tree, target):
        status = os.lstat(path)
        info = tarfile.TarInfo(name)
        info.mtime = 1
        if stat.S_ISLNK(status.st_mode):
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, str(Path(path).readlink()), 0o777
        elif stat.S_ISDIR(status.st_mode):
            info.type, info.mode = tarfile.DIRTYPE, MODES.get(name, 0o755)
        else:
            info.size, info.mode = status.st_size, 0o755 if status.st_mode & 0o100 else 0o644
        sink(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        if info.isreg():
            with Path(path).open("rb", buffering=0) as file:
                while data := file.read(CHUNK):
                    sink(data)
            sink(bytes(-info.size % tarfile.BLOCKSIZE))
    sink(bytes(2 * tarfile.BLOCKSIZE))
