"""`pins sbom`: pin lists as a software bill of materials, in the JSON of SPDX 2.3.

It says what the lists say and nothing else: no time of day, no machine, and no licence, which a list does not
have. So equal lists give equal bytes.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sparkserve import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkserve.pins.model import Pin, PinList, Target

_UNSAID = "NOASSERTION"
_DOCUMENT = "SPDXRef-DOCUMENT"


def document(lists: Sequence[PinList]) -> dict[str, Any]:
    """The document of `lists`: it describes a package for each profile, which contains one for each pin."""
    # A pin of several profiles is one package; the place in the store says which are the same.
    pins = {pin.path: (pin, each.target) for each in lists for pin in each.pins}
    packages = [_profile(each) for each in lists]
    packages += [_package(pin, target) for pin, target in pins.values()]
    relations = [_relation(_DOCUMENT, "DESCRIBES", _profile_id(each)) for each in lists]
    for each in lists:
        debs = {pin.file: pin for pin in each.pins if pin.kind == "deb"}
        for pin in each.pins:
            relations.append(_relation(_profile_id(each), "CONTAINS", _id(pin)))
            if pin.source is not None:
                relations.append(_relation(_id(pin), "GENERATED_FROM", _id(debs[pin.source])))
    content = "\n".join([*(f"{each.profile} {each.locked}" for each in lists), *sorted(pins)])
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": _DOCUMENT,
        "name": " ".join(["sparkserve", *(each.profile for each in lists)]),
        "documentNamespace": uuid.UUID(bytes=hashlib.sha256(content.encode()).digest()[:16], version=5).urn,
        "creationInfo": {
            "created": f"{max(each.locked for each in lists)}T00:00:00Z",
            "creators": [f"Tool: sparkserve-{__version__}"],
        },
        "packages": packages,
        "relationships": relations,
    }


def purl(pin: Pin, target: Target) -> str:
    """The package URL of a wheel or deb, as advisories and scanners name it."""
    version = quote(pin.version, safe="~")
    if pin.kind == "wheel":
        return f"pkg:pypi/{pin.name}@{version}"
    machine = pin.file.removesuffix(".deb").rpartition("_")[2]
    return f"pkg:deb/debian/{quote(pin.name)}@{version}?arch={machine}&distro={target.debian}"


def _profile_id(pins: PinList) -> str:
    return f"SPDXRef-profile-{pins.profile}"


def _id(pin: Pin) -> str:
    name = re.sub(r"[^A-Za-z0-9.-]", "-", f"{pin.kind}-{pin.name}-{pin.version}")
    return f"SPDXRef-{name}-{pin.sha256[:8]}"


def _profile(pins: PinList) -> dict[str, Any]:
    return _said(_profile_id(pins), f"sparkserve profile {pins.profile}", pins.locked)


def _package(pin: Pin, target: Target) -> dict[str, Any]:
    package = _said(_id(pin), pin.name, pin.version) | {"packageFileName": pin.file}
    if pin.kind == "tree":
        # A checksum would be taken for that of the file.
        return package | {"comment": f"{pin.member} of {pin.source}; sha256 of its NAR: {pin.sha256}"}
    reference = {
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": purl(pin, target),
    }
    return package | {
        "checksums": [{"algorithm": "SHA256", "checksumValue": pin.sha256}],
        "externalRefs": [reference],
    }


def _said(id: str, name: str, version: str) -> dict[str, Any]:
    return {
        "SPDXID": id,
        "name": name,
        "versionInfo": version,
        "downloadLocation": _UNSAID,
        "filesAnalyzed": False,
        "licenseConcluded": _UNSAID,
        "licenseDeclared": _UNSAID,
        "copyrightText": _UNSAID,
    }


def _relation(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
