"""Builder of the guest's kernel: vmlinuz, lib/modules, and initramfs (newc cpio).

in (environment): kernel (the unpacked package), root (the guest's root, for its depmod), busybox, init
"""

import os
import shutil
import subprocess
from pathlib import Path

# What the root needs; the rest is loaded from there. ext4 asks for crc32c by a name that no index has.
FIRST = ("virtio_pci", "virtio_blk", "9pnet_virtio", "9p", "crc32c_generic", "ext4")

out, kernel, root = (Path(os.environ[name]) for name in ("out", "kernel", "root"))
(version,) = (path.name for path in (kernel / "usr/lib/modules").iterdir())
modules = out / "lib/modules" / version
shutil.copytree(kernel / "usr/lib/modules" / version, modules, symlinks=True)
shutil.copy(kernel / f"boot/vmlinuz-{version}", out / "vmlinuz")
for path in (modules, *modules.rglob("*")):
    if path.is_dir():
        path.chmod(0o755)

libraries = root / "usr/lib/x86_64-linux-gnu"
loader = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)]
depmod = [*loader, "--argv0", "depmod", str(root / "usr/bin/kmod")]
subprocess.run([*depmod, "-b", str(out), version], check=True)

needs = dict(line.split(":", 1) for line in (modules / "modules.dep").read_text().splitlines())
files = {Path(file).stem: file for file in needs}
wanted = [files[name] for name in FIRST]
wanted += [dependency for file in list(wanted) for dependency in needs[file].split()]
entries: dict[str, tuple[int, bytes]] = {
    "init": (0o100755, Path(os.environ["init"]).read_bytes()),
    "first": (0o100644, " ".join(FIRST).encode()),
    "bin/busybox": (0o100755, Path(os.environ["busybox"]).read_bytes()),
}
index = [f"modules.{name}" for name in ("dep", "alias", "softdep", "builtin", "order")]
for name in [*sorted(set(wanted)), *index]:
    entries[f"lib/modules/{version}/{name}"] = (0o100644, (modules / name).read_bytes())
for name in list(entries):
    for parent in Path(name).parents:
        entries.setdefault(str(parent), (0o040755, b""))


def member(number: int, name: str, mode: int, content: bytes) -> bytes:
    """One file in the newc form, with fixed owner and time."""
    fields = (number, mode, 0, 0, 2 if mode & 0o040000 else 1, 1, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)


with (out / "initramfs").open("wb") as file:
    for number, name in enumerate(sorted(entries), 1):
        file.write(member(number, name, *entries[name]))
    file.write(member(0, "TRAILER!!!", 0, b""))
