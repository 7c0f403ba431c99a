"""The rules about an engine root, each on a small root that keeps it and on one that breaks it."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from roots_values import elf, root

from sparkserve.roots import loader, once, rules
from sparkserve.roots.loader import Loaded

if TYPE_CHECKING:
    from sparkserve.roots.tree import Root

LIBC = elf(soname="libc.so.6", defines=["GLIBC_2.17", "GLIBC_2.9", "GLIBC_2.36"])
BASE = ("/", {"usr/lib/aarch64-linux-gnu/libc.so.6": LIBC, "lib": Path("usr/lib")})
SITE = "/opt/engine/lib"


def libraries(made: Root, *loaded: Loaded) -> list[str]:
    return list(loader.libraries(made, "aarch64", loaded))


def test_a_file_for_another_machine_is_named(tmp_path: Path) -> None:
    made = root(tmp_path, base=BASE, site=("/opt", {"a.so": elf("x86_64"), "b.so": elf()[:40]}))
    foreign, cut = rules.machines(made, "aarch64", {})
    assert foreign == "/opt/a.so is for x86_64, the root is for aarch64"
    assert cut.startswith("/opt/b.so is damaged: ")


def test_data_for_another_machine_is_listed_and_the_list_is_true(tmp_path: Path) -> None:
    made = root(tmp_path, base=BASE, site=("/opt", {"k/a.cubin": elf("cuda")}))
    assert list(rules.machines(made, "aarch64", {"/opt/k/*.cubin": "for the GPU"})) == []
    told = list(rules.machines(made, "aarch64", {"/opt/k/*.cubin": "x", "/opt/gone/*": "y"}))
    assert told == ["/opt/gone/* is listed as data of another machine, and there is no such file"]


def test_a_library_is_found_where_the_loader_looks(tmp_path: Path) -> None:
    files = {
        "a/user.so": elf(needed=["libc.so.6", "liba.so.1"], runpath="$ORIGIN/../b"),
        "b/liba.so.1": Path("liba.so.1.2"),
        "b/liba.so.1.2": Path("/opt/c/liba.so.1.2"),
        "c/liba.so.1.2": elf(soname="liba.so.1"),
    }
    made = root(tmp_path, base=BASE, site=("/opt", files))
    assert libraries(made) == []
    assert loader.find(made, "/opt/a/user.so", "liba.so.1", "aarch64") == "/opt/c/liba.so.1.2"
    assert (
        loader.find(made, "/opt/a/user.so", "libc.so.6", "aarch64") == "/usr/lib/aarch64-linux-gnu/libc.so.6"
    )


def test_an_unresolved_library_is_named_with_where_it_would_be(tmp_path: Path) -> None:
    files = {"a/user.so": elf(needed=["liba.so.1", "libb.so"]), "b/liba.so.1": elf(soname="liba.so.1")}
    made = root(tmp_path, base=BASE, site=("/opt", files))
    assert libraries(made) == [
        "/opt/a/user.so needs liba.so.1, which is nowhere that the loader looks (there is /opt/b/liba.so.1)",
        "/opt/a/user.so needs libb.so, which is nowhere that the loader looks",
    ]


def test_a_program_whose_loader_is_not_there_is_named(tmp_path: Path) -> None:
    program = {"bin/tool": elf(loader="/lib/ld.so.1")}
    assert libraries(root(tmp_path / "lost", base=BASE, site=("/opt", program))) == [
        "/opt/bin/tool is started by /lib/ld.so.1, which is not there"
    ]
    whole = ("/", {"usr/lib/ld.so.1": elf(), "lib": Path("usr/lib")})
    assert libraries(root(tmp_path / "whole", base=whole, site=("/opt", program))) == []


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ({"rpath": "/opt/one", "runpath": "/opt/two"}, "/opt/two/liba.so"),
        ({"rpath": "/opt/one"}, "/opt/one/liba.so"),
        ({"runpath": "/opt/two"}, "/opt/set/liba.so"),
        ({"runpath": "${ORIGIN}/../x86:/opt/two"}, "/opt/two/liba.so"),
        ({"runpath": "opt/two"}, None),
    ],
)
def test_folders_have_the_loaders_order(tmp_path: Path, paths: dict[str, str], found: str | None) -> None:
    files = {f"{name}/liba.so": elf() for name in ("one", "two", "set")}
    files |= {"x86/liba.so": elf("x86_64"), "user/user.so": elf(needed=["liba.so"], **paths)}  # type: ignore[arg-type]
    made = root(tmp_path, site=("/opt", files))
    given = ["/opt/set"] if found == "/opt/set/liba.so" else []
    assert loader.find(made, "/opt/user/user.so", "liba.so", "aarch64", given) == found


def test_what_is_loaded_already_has_to_be_there_and_to_be_needed(tmp_path: Path) -> None:
    files = {"k/ops.so": elf(needed=["libtorch.so", "libcuda.so.1"]), "torch/libtorch.so": elf()}
    made = root(tmp_path, base=BASE, site=("/opt", files))
    torch = Loaded("libtorch*.so", "/opt/k/*", "/opt/torch", "torch is imported first")
    driver = Loaded("libcuda.so.1", "/opt/k/*", "driver", "the host's driver has it")
    assert libraries(made, torch, driver) == []
    gone = Loaded("libtorch*.so", "/opt/k/*", "/opt/elsewhere", "torch is imported first")
    assert libraries(made, gone, driver) == [
        "/opt/k/ops.so needs libtorch.so, which is nowhere that the loader looks "
        "(there is /opt/torch/libtorch.so)"
    ]
    idle = Loaded("libm.so", "*", "driver", "nobody needs it")
    assert libraries(made, torch, driver, idle) == [
        "libm.so for * is listed as loaded already, and no file needs it so"
    ]


def test_a_file_above_the_roots_glibc_is_named_with_both_versions(tmp_path: Path) -> None:
    user = elf(needed=["libc.so.6"], wants={"libc.so.6": ["GLIBC_2.17", "GLIBC_2.38"]})
    made = root(tmp_path, base=BASE, site=("/opt", {"user.so": user}))
    assert libraries(made) == [
        "/opt/user.so wants GLIBC_2.38 of /usr/lib/aarch64-linux-gnu/libc.so.6, whose newest is GLIBC_2.36"
    ]


@pytest.mark.parametrize(
    ("tags", "problem"),
    [
        (["py3-none-any"], False),
        (["cp311-cp311-manylinux_2_36_aarch64"], False),
        (["py3-none-manylinux2014_sbsa"], False),
        (["cp311-cp311-manylinux2014_aarch64", "cp311-cp311-manylinux_2_39_aarch64"], False),
        (["cp311-cp311-manylinux_2_39_aarch64"], True),
        (["cp311-cp311-manylinux_2_17_x86_64"], True),
        (["cp311-cp311-musllinux_1_2_aarch64"], True),
        ([], True),
    ],
)
def test_a_wheel_for_a_newer_glibc_or_another_machine_is_named(
    tmp_path: Path, tags: list[str], problem: bool
) -> None:
    text = "Wheel-Version: 1.0\n" + "".join(f"Tag: {tag}\n" for tag in tags)
    made = root(tmp_path, site=("/opt/engine", {"lib/one-1.0.dist-info/WHEEL": text}))
    told = list(once.tags(made, [SITE], "aarch64", "2.36"))
    assert bool(told) == problem
    assert all(text.startswith(f"{SITE}/one-1.0.dist-info is for ") for text in told)


def test_two_versions_of_one_wheel_are_named_across_layers(tmp_path: Path) -> None:
    made = root(
        tmp_path,
        cuda=("/opt/cuda", {"lib/Some.Thing-1.0.dist-info/METADATA": ""}),
        site=(
            "/opt/engine",
            {"lib/some_thing-2.0.dist-info/METADATA": "", "lib/other-1.dist-info/METADATA": ""},
        ),
    )
    assert list(once.distributions(made, [SITE, "/opt/cuda/lib"])) == [
        "some-thing is there 2 times: /opt/engine/lib/some_thing-2.0.dist-info, "
        "/opt/cuda/lib/Some.Thing-1.0.dist-info"
    ]


def test_a_module_that_hides_another_is_named_and_a_shared_folder_is_not(tmp_path: Path) -> None:
    made = root(
        tmp_path,
        cuda=("/opt/cuda", {"lib/b12x/__init__.py": "old", "lib/nvidia/nccl.py": "", "lib/cuda/a.py": ""}),
        site=(
            "/opt/engine",
            {
                "lib/b12x/__init__.py": "",
                "lib/nvidia": Path("/opt/cuda/lib/nvidia"),
                "lib/cuda/b.py": "",
                "lib/a.pth": "",
            },
        ),
    )
    assert list(once.modules(made, [SITE, "/opt/cuda/lib"])) == [
        "/opt/engine/lib/a.pth has no effect: only the `site` module reads it, and not in this folder",
        "the module b12x is there 2 times: /opt/cuda/lib/b12x, /opt/engine/lib/b12x",
    ]


NCCL = "/opt/nccl/libnccl.so.2"


def nccl(made: Root) -> list[str]:
    return list(once.library(made, "aarch64", "libnccl.so.2", NCCL, "/opt/torch/libtorch.so"))


def test_a_second_libnccl_is_named(tmp_path: Path) -> None:
    files = {
        "nccl/libnccl.so.2": elf(soname="libnccl.so.2"),
        "torch/libtorch.so": elf(needed=["libnccl.so.2"], rpath="$ORIGIN/../nccl"),
    }
    assert nccl(root(tmp_path / "good", site=("/opt", files))) == []
    more = files | {"x/libnccl.so.2.30.7": elf(), "x/renamed.so": elf(soname="libnccl.so.2")}
    assert nccl(root(tmp_path / "two", site=("/opt", more))) == [
        f"/opt/x/libnccl.so.2.30.7 is another libnccl.so.2, beside {NCCL}",
        f"/opt/x/renamed.so is another libnccl.so.2, beside {NCCL}",
    ]
    other = files | {"torch/libtorch.so": elf(needed=["libnccl.so.2"])}
    assert nccl(root(tmp_path / "lost", site=("/opt", other))) == [
        f"/opt/torch/libtorch.so maps no file as libnccl.so.2, not {NCCL}"
    ]


def test_a_module_is_the_one_that_its_distribution_brought(tmp_path: Path) -> None:
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"right").digest()).rstrip(b"=").decode()
    record = f"b12x/__init__.py,sha256={digest},5\nb12x-1.0.dist-info/RECORD,,\n"
    files = {"lib/b12x-1.0.dist-info/RECORD": record, "lib/b12x/__init__.py": "right"}

    def problems(folder: str, **more: str) -> list[str]:
        made = root(tmp_path / folder, site=("/opt/engine", files | more))
        return list(once.owner(made, SITE, "b12x", "b12x-1.0"))

    assert problems("good") == []
    assert problems("bit", **{"lib/b12x/__init__.py": "sight"}) == [
        f"{SITE}/b12x/__init__.py is not the file that b12x-1.0 brought"
    ]
    assert problems("more", **{"lib/b12x/extra.py": ""}) == [
        f"{SITE}/b12x/extra.py is not the file that b12x-1.0 brought"
    ]
    made = root(tmp_path / "none", site=("/opt/engine", {"lib/b12x/__init__.py": "right"}))
    assert "RECORD is not there" in next(once.owner(made, SITE, "b12x", "b12x-1.0"))


@pytest.mark.parametrize(
    ("mode", "words"),
    [(0o4755, "setuid"), (0o2755, "setgid"), (0o646, "by everybody"), (0o660, ""), (0o755, "")],
)
def test_rights_that_nobody_may_have_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, words: str
) -> None:
    made = root(tmp_path, site=("/opt", {"bin/su": "x", "link": Path("bin/su")}))
    real = Path.lstat

    def lstat(place: Path) -> os.stat_result:
        # Not chmod: a build sandbox lets nobody make a file setuid.
        status = real(place)
        return os.stat_result((stat.S_IFREG | mode, *status[1:])) if place.name == "su" else status

    monkeypatch.setattr(Path, "lstat", lstat)
    told = list(rules.modes(made))
    assert len(told) == bool(words)
    assert all(
        text.startswith("/opt/bin/su is ") and words in text and f"{mode:04o}" in text for text in told
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"image": "sglang:latest"}', "latest"),
        ("ok\npip install https://example.org/x.whl", "https://example.org/x.whl"),
        ("git+ssh://host/x", "git+ssh://host/x"),
        ("sglang==0.5.23 sha256:" + "0" * 64, ""),
    ],
)
def test_a_reference_that_can_change_is_named_with_its_line(text: str, found: str) -> None:
    told = list(rules.references({"file": text}))
    assert len(told) == bool(found)
    assert all(found in each and each.startswith("file:") for each in told)
