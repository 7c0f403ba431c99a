"""The ELF reader: what a loader would be asked for, and files that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from roots_values import elf

from sparkserve.roots.elf import Elf, ElfError, read

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lib.so"


def test_a_library_tells_what_it_asks_its_loader_for(file: Path) -> None:
    file.write_bytes(
        elf(
            soname="libone.so.1",
            needed=["libc.so.6", "libtwo.so.2"],
            runpath="$ORIGIN/../lib::/opt/lib",
            defines=["libone.so.1", "ONE_1", "ONE_2"],
            wants={"libc.so.6": ["GLIBC_2.17", "GLIBC_2.34"], "libtwo.so.2": ["TWO_1"]},
        )
    )
    assert read(file) == Elf(
        machine="aarch64",
        soname="libone.so.1",
        needed=("libc.so.6", "libtwo.so.2"),
        runpath=("$ORIGIN/../lib", "/opt/lib"),
        defines=frozenset({"libone.so.1", "ONE_1", "ONE_2"}),
        wants=(("libc.so.6", "GLIBC_2.17"), ("libc.so.6", "GLIBC_2.34"), ("libtwo.so.2", "TWO_1")),
    )


def test_a_program_tells_what_starts_it(file: Path) -> None:
    file.write_bytes(elf(loader="/lib/ld-linux-aarch64.so.1", needed=["libc.so.6"]))
    assert read(file) == Elf("aarch64", loader="/lib/ld-linux-aarch64.so.1", needed=("libc.so.6",))


def test_what_a_library_can_go_without_is_not_wanted(file: Path) -> None:
    file.write_bytes(elf(needed=["libc.so.6"], wants={"libc.so.6": ["GLIBC_2.99"]}, weak=True))
    found = read(file)
    assert found is not None and found.wants == ()


@pytest.mark.parametrize("machine", ["aarch64", "x86_64", "cuda"])
def test_the_machine_is_named(file: Path, machine: str) -> None:
    file.write_bytes(elf(machine))
    assert read(file) == Elf(machine)


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"#!/bin/sh\n", b"!<arch>\n"])
def test_another_file_is_no_elf_file(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert read(file) is None


@pytest.mark.parametrize("size", [5, 16, 40, 64, 130, 200, 300])
def test_a_cut_file_is_damaged_and_no_traceback(file: Path, size: int) -> None:
    whole = elf(soname="libone.so.1", needed=["libc.so.6"], defines=["ONE_1"])
    file.write_bytes(whole[: min(size, len(whole) - 20)])
    try:
        found = read(file)
    except ElfError:
        return
    # What is left of the dynamic section may be whole.
    assert found is not None and found.machine == "aarch64"


def test_a_32_bit_file_is_refused(file: Path) -> None:
    file.write_bytes(b"\x7fELF\x01\x01" + elf()[6:])
    with pytest.raises(ElfError, match="is not 64-bit"):
        read(file)
