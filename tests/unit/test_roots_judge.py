"""All rules together, and what a broken build says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roots_values import elf, root

from sparkserve import nix
from sparkserve.roots.judge import judge, refusal

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.roots.tree import Root

GIVEN: dict[str, Any] = {
    "machine": "aarch64",
    "glibc": "2.36",
    "sites": ["/opt/engine/lib"],
    "data": {},
    "loaded": [
        {"library": "libcuda.so.1", "user": "*/libtorch.so", "by": "driver", "because": "it is the kernel's"}
    ],
    "libraryPath": ["/opt/driver"],
    "libraries": [
        {"name": "libnccl.so.2", "place": "/opt/cuda/libnccl.so.2", "user": "/opt/engine/lib/libtorch.so"}
    ],
    "owners": [{"module": "b12x", "site": "/opt/engine/lib", "distribution": "b12x-1.0"}],
}
SITE = {
    "lib/libtorch.so": elf(needed=["libnccl.so.2", "libcuda.so.1"], rpath="/opt/cuda"),
    "lib/b12x-1.0.dist-info/RECORD": "",
    "lib/b12x-1.0.dist-info/WHEEL": "Tag: py3-none-any\n",
}


def made(folder: Path, **more: Any) -> Root:
    cuda = {"libnccl.so.2": elf(soname="libnccl.so.2")}
    return root(folder, cuda=("/opt/cuda", cuda), site=("/opt/engine", SITE | more))


def test_a_root_that_keeps_every_rule_has_all_of_them_named(tmp_path: Path) -> None:
    found = judge(made(tmp_path), GIVEN, {"settings": "{}"})
    assert found == {key: [] for key in found}
    assert {"machine", "libraries", "wheels", "modes", "references", "libnccl.so.2", "b12x"} < set(found)
    assert refusal("engine", found) == ""


def test_a_broken_build_names_files_and_reasons_in_one_line(tmp_path: Path) -> None:
    wrong = {"lib/x.so": elf("x86_64"), "lib/libnccl.so.2": elf(), "lib/b12x/evil|.py": ""}
    line = refusal("engine", judge(made(tmp_path, **wrong), GIVEN, {"settings": "a:latest"}))
    id, expected, found, where, do = line.split(" | ")
    assert (id, expected, where) == ("ROOT.CHECK", "every rule about an engine root to hold", "engine")
    assert found == (
        "machine: /opt/engine/lib/x.so is for x86_64, the root is for aarch64; "
        "references: settings:1 refers to 'latest', whose content can change; "
        "libnccl.so.2: /opt/engine/lib/libnccl.so.2 is another libnccl.so.2, beside /opt/cuda/libnccl.so.2; "
        "b12x: /opt/engine/lib/b12x/evil/.py is not the file that b12x-1.0 brought"
    )
    assert "pkgs/engine" in do
    # As it comes out of Nix.
    error = nix.error(f"engine> {line}\nerror: builder for 'x.drv' failed", "NIX.BUILD", "engine")
    assert (error.id, error.exit_code, error.found) == ("ROOT.CHECK", 25, found)


def test_a_long_line_is_cut_and_says_so(tmp_path: Path) -> None:
    wrong = {f"lib/x{i}.so": elf("x86_64") for i in range(7)}
    line = refusal("engine", judge(made(tmp_path, **wrong), GIVEN, {}))
    assert line.count("is for x86_64") == 5
    assert "; and 2 more |" in line
