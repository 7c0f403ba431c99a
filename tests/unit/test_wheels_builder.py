"""The builder that unpacks wheels: what it writes, and what it says of wheels that do not fit."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

BUILDER = Path(__file__).parents[2] / "nix/wheels.py"


def wheel(folder: Path, name: str, files: dict[str, str]) -> dict[str, str]:
    """Write a wheel of `files` with their RECORD; what the builder is told of it."""
    record = ""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += f"{member},sha256={digest},{len(text)}\n"
            archive.writestr(member, text)
        archive.writestr(f"{name}-1.0.dist-info/RECORD", record)
    return {"name": name, "file": path.name, "path": str(path)}


def build(folder: Path, *wheels: dict[str, str], **settings: Any) -> subprocess.CompletedProcess[str]:
    """Unpack `wheels` into folder/out; keywords are settings of the builder."""
    values = {"drop": [], "strip": [], "broken": [], "dropFrom": {}, "links": {}, "wheels": wheels} | settings
    environment = {name: json.dumps(value) for name, value in values.items()}
    environment |= {"out": str(folder / "out"), "libDir": "lib", "prefix": "/opt/x"}
    environment |= {"patches": "", "loader": "", "busybox": "", "name": "x"}
    argv = [sys.executable, "-I", "-B", str(BUILDER)]
    return subprocess.run(argv, env=environment, capture_output=True, text=True)


def test_files_stand_in_one_folder_with_byte_code_of_the_place_where_they_will_be(tmp_path: Path) -> None:
    one = wheel(tmp_path, "one", {"one/__init__.py": "x = 1\n", "one-1.0.data/scripts/tool": "#!/bin/sh\n"})
    assert build(tmp_path, one, links={"one/alias": "../two"}).returncode == 0
    out = tmp_path / "out"
    assert (out / "lib/one/__init__.py").read_text() == "x = 1\n"
    assert (out / "bin/tool").stat().st_mode & 0o111
    assert str((out / "lib/one/alias").readlink()) == "../two"
    [code] = (out / "lib/one/__pycache__").glob("*.pyc")
    assert b"/opt/x/lib/one/__init__.py" in code.read_bytes()
    assert str(tmp_path).encode() not in code.read_bytes()


def test_two_wheels_of_one_path_are_refused_until_one_is_told_to_go_without(tmp_path: Path) -> None:
    old = wheel(tmp_path, "bundle", {"b12x/__init__.py": "old = 1\n", "bundle.py": ""})
    new = wheel(tmp_path, "b12x", {"b12x/__init__.py": "new = 1\n"})
    done = build(tmp_path, old, new)
    assert done.returncode == 1
    assert "b12x/__init__.py: another wheel owns this path" in done.stderr
    assert not (tmp_path / "out").exists()
    assert build(tmp_path, old, new, dropFrom={"bundle": ["b12x/*"]}).returncode == 0
    assert (tmp_path / "out/lib/b12x/__init__.py").read_text() == "new = 1\n"
    assert (tmp_path / "out/lib/bundle.py").exists()


def test_a_flipped_bit_in_a_wheel_is_named_with_its_file(tmp_path: Path) -> None:
    one = wheel(tmp_path, "one", {"one.py": "".join(f"x{i} = {i * i}\n" for i in range(999))})
    content = bytearray(Path(one["path"]).read_bytes())
    content[content.index(b"one.py") + 600] ^= 1
    Path(one["path"]).write_bytes(content)
    done = build(tmp_path, one)
    assert done.returncode == 1
    assert done.stderr.startswith("one-1.0-py3-none-any.whl: one.py is damaged: ")
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_as_the_record_says_is_named(tmp_path: Path) -> None:
    one = wheel(tmp_path, "one", {"one.py": "x = 1\n"})
    with zipfile.ZipFile(one["path"], "a") as archive:
        archive.writestr("more.py", "x = 2\n")
    done = build(tmp_path, one)
    assert done.returncode == 1
    assert "one-1.0-py3-none-any.whl: more.py: RECORD says not in RECORD" in done.stderr
