"""`pins audit`: a pin is found when a record is about its version, and only then."""

from __future__ import annotations

import json
import zipfile
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from pins_values import deb, pin, pin_list

from sparkserve.cli.commands.pins import command
from sparkserve.errors import SparkserveError
from sparkserve.pins import debfile, model, order, store

if TYPE_CHECKING:
    from pathlib import Path

CONTROL = "Package: libstdc++6\nSource: gcc-12 (12.2.0-14)\nVersion: 12.2.0-14+b1\n"


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list with torch 2.13.0+cpu and libstdc++6, whose package is in the store and names its source."""
    (tmp_path / "nix/pins").mkdir(parents=True)
    (tmp_path / "store").mkdir()
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    monkeypatch.setattr(store, "STORE", str(tmp_path / "store"))
    package = deb(tmp_path / "libstdc++6_12.2.0-14+b1_amd64.deb", {}, CONTROL)
    content = package.read_bytes()
    libstdc = pin(content, kind="deb", name="libstdc++6", version="12.2.0-14+b1", file=package.name)
    package.rename(libstdc.path)
    torch = pin(name="torch", version="2.13.0+cpu", file="torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl")
    model.save(pin_list(libstdc, torch))
    return tmp_path


def affected(name: str, *events: tuple[str, str], ecosystem: str = "PyPI", **more: Any) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": [{event: version} for event, version in events]}]
    return {"package": {"ecosystem": ecosystem, "name": name}, "ranges": ranges if events else []} | more


def record(*packages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "T-1", "summary": "a fault", "affected": list(packages)} | more


def run(checkout: Path, value: Any, *arguments: str) -> Result:
    file = checkout / "advisories.json"
    file.write_text(json.dumps(value))
    return CliRunner().invoke(command, ["audit", str(file), *arguments])


def found(checkout: Path, value: Any) -> list[tuple[str, bool]]:
    """Pins and certainty; the exit code says the same."""
    result = run(checkout, value, "--json")
    rows = [(each["pin"], each["certain"]) for each in json.loads(result.stdout)["affected"]]
    assert result.exit_code == (27 if rows else 0)
    return rows


@pytest.mark.parametrize(
    ("entry", "is_affected"),
    [
        (affected("torch", ("introduced", "0")), True),
        (affected("torch", ("introduced", "0"), ("fixed", "2.13.1")), True),
        (affected("torch", ("introduced", "0"), ("fixed", "2.13.0")), False),
        (affected("torch", ("introduced", "2.13.0rc1"), ("fixed", "2.14")), True),
        (affected("torch", ("introduced", "2.13.1")), False),
        (affected("torch", ("introduced", "0"), ("last_affected", "2.13.0")), True),
        (affected("torch", ("introduced", "0"), ("last_affected", "2.12.9")), False),
        # Two ranges in one, not in order.
        (affected("torch", ("introduced", "2.13"), ("introduced", "0"), ("fixed", "2.0")), True),
        (affected("torch", ("fixed", "2.13"), ("introduced", "0"), ("introduced", "3")), False),
        (affected("Torch", versions=["2.13.0"]), True),
        (affected("torch", versions=["2.13.0+cpu"]), True),
        (affected("torch", versions=["of old", "2.13"]), True),
        (affected("torch", versions=["2.12.0", "of old"]), False),
        (affected("torchvision", ("introduced", "0")), False),
        (affected("torch", ("introduced", "0"), ecosystem="npm"), False),
    ],
)
def test_a_wheel_is_matched_by_the_rules_of_python(
    checkout: Path, entry: dict[str, Any], is_affected: bool
) -> None:
    other = record(affected("other", ("introduced", "0")))
    assert found(checkout, [other, record(entry)]) == ([("torch 2.13.0+cpu", True)] if is_affected else [])


@pytest.mark.parametrize(
    ("entry", "is_affected"),
    [
        (affected("gcc-12", ("introduced", "0"), ecosystem="Debian:12"), True),
        (affected("gcc-12", ("introduced", "0"), ecosystem="Debian"), True),
        (affected("gcc-12", ("introduced", "0"), ecosystem="Debian:11"), False),
        # Its own name is not its source's.
        (affected("libstdc++6", ("introduced", "0"), ecosystem="Debian:12"), False),
        # The version of the source, which the package's own is above.
        (affected("gcc-12", ("introduced", "0"), ("fixed", "12.2.0-14+a"), ecosystem="Debian:12"), True),
        (
            affected("gcc-12", ("introduced", "0"), ("fixed", "12.2.0-14~deb12u1"), ecosystem="Debian:12"),
            False,
        ),
        (affected("gcc-12", ("introduced", "0"), ("fixed", "1:0"), ecosystem="Debian:12"), True),
    ],
)
def test_a_package_is_matched_by_its_source_and_the_order_of_debian(
    checkout: Path, entry: dict[str, Any], is_affected: bool
) -> None:
    other = record(affected("other", ("introduced", "0")))
    expected = [("libstdc++6 12.2.0-14+b1", True)] if is_affected else []
    assert found(checkout, [other, record(entry)]) == expected


def test_what_a_record_cannot_tell_is_no_pass(checkout: Path) -> None:
    commits = [{"type": "GIT", "events": [{"introduced": "0"}]}]
    assert found(checkout, record(affected("torch", ranges=commits))) == [("torch 2.13.0+cpu", False)]
    assert found(checkout, record(affected("torch", ("introduced", "yesterday")))) == [
        ("torch 2.13.0+cpu", False)
    ]
    assert "cannot tell" in run(checkout, record(affected("torch", ranges=commits))).stdout


def test_a_withdrawn_record_is_about_nothing(checkout: Path) -> None:
    assert (
        found(checkout, record(affected("torch", ("introduced", "0")), withdrawn="2026-01-01T00:00:00Z"))
        == []
    )


def test_the_table_names_pin_profile_advisory_and_what_mends_it(checkout: Path) -> None:
    entry = affected("torch", ("introduced", "0"), ("fixed", "2.13.1"))
    result = run(checkout, record(entry, aliases=["CVE-1"]))
    assert result.exit_code == 27
    [row] = [line for line in result.stdout.splitlines() if "torch" in line]
    assert row.split() == ["torch", "2.13.0+cpu", "some", "T-1", "CVE-1", "2.13.1", "a", "fault"]
    assert "1 pins are affected" in result.stderr


def test_an_ecosystem_without_a_record_is_said(checkout: Path) -> None:
    result = run(checkout, record(affected("numpy", ("introduced", "0"))))
    assert result.exit_code == 0
    assert "1 records for PyPI" in result.stderr
    assert "No record for Debian:12: not audited" in result.stderr


def test_a_package_that_the_store_lacks_goes_by_its_own_name_and_that_is_said(checkout: Path) -> None:
    for file in (checkout / "store").iterdir():
        file.unlink()
    result = run(checkout, record(affected("libstdc++6", ("introduced", "0"), ecosystem="Debian:12")))
    assert result.exit_code == 27
    assert "1 Debian packages are not in the store" in result.stderr


def test_a_folder_and_a_zip_are_read_too(checkout: Path) -> None:
    folder = checkout / "osv/deep"
    folder.mkdir(parents=True)
    (folder / "T-1.json").write_text(json.dumps(record(affected("torch", ("introduced", "0")))))
    with zipfile.ZipFile(checkout / "all.zip", "w") as archive:
        archive.write(folder / "T-1.json", "T-1.json")
    for place in ("osv", "all.zip"):
        assert CliRunner().invoke(command, ["audit", str(checkout / place)]).exit_code == 27


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "[]", '{"id": "x", "affected": "y"}', '{"id": "x"}', "PK\x03\x04"]
)
def test_a_file_without_a_record_for_us_is_refused(checkout: Path, text: str) -> None:
    file = checkout / "wrong.json"
    file.write_text(text)
    error = CliRunner().invoke(command, ["audit", str(file)]).exception
    assert isinstance(error, SparkserveError)
    assert (error.id, error.where) == ("PIN.ADVISORIES", str(file))


def test_versions_of_debian_are_ordered_as_dpkg_does() -> None:
    text = "0~~ 0~~a 0~ 0 0a 0+ 1.2~rc1-1 1.2-1~deb12u1 1.2-1 1.2-1+b1 1.2-1.1 1.2a-1 1.2+dfsg-1 1.10 1:0"
    for older, newer in pairwise(text.split()):
        assert order.debian(older) < order.debian(newer), (older, newer)
    assert order.debian("1.0") == order.debian("0:1.00-0")
    for wrong in ("", "x:1", "1_2", "1-"):
        with pytest.raises(ValueError, match="no version"):
            order.debian(wrong)


@pytest.mark.parametrize(
    ("control", "source"),
    [
        (CONTROL, ("gcc-12", "12.2.0-14")),
        ("Package: a\nSource: b\nVersion: 1-2\n", ("b", "1-2")),
        ("Package: a\nVersion: 1-2\n", ("a", "1-2")),
    ],
)
def test_a_package_names_its_source(tmp_path: Path, control: str, source: tuple[str, str]) -> None:
    assert debfile.source(deb(tmp_path / "a.deb", {}, control)) == source
