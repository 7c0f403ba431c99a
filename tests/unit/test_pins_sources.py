"""The machine's apt sources, in the forms that Debian and others write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sparkserve.pins import sources
from sparkserve.pins.sources import Source

if TYPE_CHECKING:
    from pathlib import Path

KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"

DEB822 = f"""# a comment
Types: deb deb-src
URIs: http://one.example/debian
 http://two.example/debian
# another one
Suites: trixie trixie-updates
Components: main contrib
Signed-By: {KEY}

Types: deb
URIs: http://one.example/debian-security
Suites: trixie-security
Components: main
Signed-By: {KEY}
"""


def write(etc: Path, name: str, text: str) -> None:
    file = etc / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("sources.list.d/debian.sources", DEB822, Source("http://one.example/debian", KEY)),
        (
            "sources.list",
            "# deb http://old.example/debian bookworm main\n"
            "deb-src http://src.example/debian bookworm main\n"
            "deb http://one.example/debian bookworm main contrib # the one\n",
            Source("http://one.example/debian", ""),
        ),
        (
            "sources.list",
            f"deb [ arch=amd64 signed-by={KEY} ] http://one.example/debian stable main\n",
            Source("http://one.example/debian", KEY),
        ),
        (
            "sources.list.d/mirror.sources",
            "Types: deb\nURIs: mirror+file:/etc/apt/mirrors/a.list\nSuites: bookworm\nComponents: main\n",
            Source("mirror+file:/etc/apt/mirrors/a.list", ""),
        ),
    ],
)
def test_a_debian_source_is_found(tmp_path: Path, name: str, text: str, expected: Source) -> None:
    write(tmp_path, name, text)
    assert sources.debian(tmp_path) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sources.list", "deb http://one.example/ubuntu noble main\n"),
        ("sources.list", "deb http://one.example/debian bookworm contrib\n"),
        ("sources.list", "deb http://one.example/debian bookworm-security main\n"),
        ("sources.list", "deb http://one.example/flat ./\n"),
        ("sources.list.d/other.sources", DEB822.partition("\n\n")[2]),
        ("sources.list.d/off.sources", "Enabled: no\n" + DEB822.partition("\n\n")[0]),
        ("sources.list.d/debian.list.disabled", "deb http://one.example/debian bookworm main\n"),
        ("sources.list.d/src.sources", DEB822.partition("\n\n")[0].replace("deb deb-src", "deb-src")),
    ],
)
def test_what_is_not_debian_main_is_no_source(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, name, text)
    assert sources.debian(tmp_path) is None


def test_a_machine_without_apt_has_no_source(tmp_path: Path) -> None:
    assert sources.debian(tmp_path / "nothing") is None


def test_debians_own_key_goes_before_others_that_use_its_suite_names(tmp_path: Path) -> None:
    write(tmp_path, "sources.list.d/a-vendor.list", "deb http://vendor.example/apt bookworm main\n")
    write(tmp_path, "sources.list.d/debian.sources", DEB822)
    found = sources.debian(tmp_path)
    assert found is not None
    assert found.uri == "http://one.example/debian"


def test_a_key_in_the_source_itself_is_kept(tmp_path: Path) -> None:
    text = DEB822.partition("\n\n")[0].replace(KEY, "\n -----BEGIN\n .\n abc\n")
    write(tmp_path, "sources.list.d/debian.sources", text)
    found = sources.debian(tmp_path)
    assert found is not None
    assert found.signed_by == "\n -----BEGIN\n .\n abc"
