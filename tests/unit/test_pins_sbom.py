"""`pins sbom`: what the lists say, in a form that SPDX's own library takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from pins_values import TARGET, pin, pin_list
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from sparkserve.cli.commands.pins import command
from sparkserve.pins import model, sbom

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
WHEEL = pin(name="torch", version="2.13.0+cpu", file="torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl")
DEB = pin(kind="deb", name="libstdc++6", version="1:12.2~rc1-2", file="libstdc++6_1-12.2-rc1-2_amd64.deb")
TREE = pin(b"NAR", kind="tree", name="bb", file="bb", source=DEB.file, member="bin/bb")
LISTS = [pin_list(DEB, TREE, WHEEL), pin_list(WHEEL, profile="other")]


def problems(value: dict[str, Any], folder: Path) -> list[str]:
    """What SPDX's library finds wrong."""
    file = folder / "pins.spdx.json"
    file.write_text(json.dumps(value))
    found = validate_full_spdx_document(parse_file(str(file)), "SPDX-2.3")
    return [each.validation_message for each in found]


def package(name: str) -> dict[str, Any]:
    [found] = [each for each in sbom.document(LISTS)["packages"] if each["name"] == name]
    return dict(found)


def test_the_document_of_all_our_pins_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(ROOT))
    printed = CliRunner().invoke(command, ["sbom"]).stdout
    value = json.loads(printed)
    assert problems(value, tmp_path) == []
    named = {(each["name"], each["versionInfo"]) for each in value["packages"]}
    assert named >= {(each.name, each.version) for name in model.known() for each in model.load(name).pins}
    assert CliRunner().invoke(command, ["sbom"]).stdout == printed


def test_spdx_would_say_what_is_wrong(tmp_path: Path) -> None:
    value = sbom.document(LISTS)
    assert problems(value, tmp_path) == []
    value["packages"][-1]["SPDXID"] = "SPDXRef-a_b"
    assert problems(value, tmp_path)


def test_a_package_has_hash_and_purl_and_claims_no_licence() -> None:
    torch = package("torch")
    assert torch["checksums"] == [{"algorithm": "SHA256", "checksumValue": WHEEL.sha256}]
    assert torch["externalRefs"][0]["referenceLocator"] == "pkg:pypi/torch@2.13.0%2Bcpu"
    assert torch["licenseConcluded"] == torch["licenseDeclared"] == "NOASSERTION"
    assert sbom.purl(DEB, TARGET) == (
        "pkg:deb/debian/libstdc%2B%2B6@1%3A12.2~rc1-2?arch=amd64&distro=bookworm"
    )


def test_a_pin_of_two_profiles_is_one_package_that_both_contain() -> None:
    torch = package("torch")["SPDXID"]
    holders = [
        each["spdxElementId"]
        for each in sbom.document(LISTS)["relationships"]
        if (each["relationshipType"], each["relatedSpdxElement"]) == ("CONTAINS", torch)
    ]
    assert holders == ["SPDXRef-profile-some", "SPDXRef-profile-other"]


def test_a_tree_names_the_deb_that_it_is_made_from_and_claims_no_checksum_of_a_file() -> None:
    tree = package("bb")
    assert "checksums" not in tree
    assert TREE.sha256 in tree["comment"]
    made = {
        "spdxElementId": tree["SPDXID"],
        "relationshipType": "GENERATED_FROM",
        "relatedSpdxElement": package("libstdc++6")["SPDXID"],
    }
    assert made in sbom.document(LISTS)["relationships"]


def test_date_and_name_follow_from_the_lists_alone() -> None:
    one, again = sbom.document(LISTS), sbom.document(LISTS)
    assert one == again
    assert one["creationInfo"]["created"] == "2026-01-02T00:00:00Z"
    other = sbom.document([pin_list(pin(b"rebuilt"))])
    assert other["documentNamespace"] != sbom.document([pin_list(pin())])["documentNamespace"]
