"""The first builder comes out of its deb without dpkg."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pins_values import deb

from sparkserve.errors import SparkserveError
from sparkserve.pins import tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("stored", ["./bin/busybox", "bin/busybox"])
def test_the_executable_is_alone_in_a_folder_of_its_name(tmp_path: Path, stored: str) -> None:
    package = deb(tmp_path / "b.deb", {"./etc/other": b"no", stored: b"ELF"})
    with tree.unpacked(package, "bin/busybox", "busybox") as folder:
        assert folder.name == "busybox"
        assert [file.name for file in folder.iterdir()] == ["busybox"]
        assert (folder / "busybox").read_bytes() == b"ELF"
        assert (folder / "busybox").stat().st_mode & 0o777 == 0o755
    assert not folder.exists()


def test_a_package_without_the_member_is_refused(tmp_path: Path) -> None:
    package = deb(tmp_path / "b.deb", {"./etc/other": b"no"})
    with (
        pytest.raises(SparkserveError, match="without bin/busybox"),
        tree.unpacked(package, "bin/busybox", "b"),
    ):
        pass


@pytest.mark.parametrize(
    ("content", "found"),
    [(b"no archive", "not a Debian"), (b"", "not a Debian"), (b"!<arch>\n", "without data.tar")],
)
def test_a_file_that_is_no_package_is_refused(tmp_path: Path, content: bytes, found: str) -> None:
    (tmp_path / "b.deb").write_bytes(content)
    with pytest.raises(SparkserveError) as caught, tree.unpacked(tmp_path / "b.deb", "bin/busybox", "b"):
        pass
    assert caught.value.id == "PIN.FETCH"
    assert found in caught.value.found
