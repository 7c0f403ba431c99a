"""What an option changes on the nodes is what its description says, after the word `Changes:`.

Each policy option gets its example as its value, in a fleet of Sparks with everything on, in the usual one,
and, when the large model's memory or engine may depend on it, in one that serves it. What differs then in
the plans of all nodes, by file, unit or field, is the list of the description, no more and no less. Two calls
of Nix.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import evaluated
from evaluated import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FLEETS = ROOT / "tests/policy/hosts"
# By the fleet, the options that are tried in it: in that of the large model those that its plan alone shows.
OF_THE_MODEL = "engine. engram. group. guard. kernel.pageSizeKiB recovery.protect serving. weights."
BASES = {"everything": "", "usual": "", "spark": tuple(OF_THE_MODEL.split())}
# All options of these sections decide what a node is like; of others, those that say so.
ALL_OF = "clocks. engram. group. guard. kernel. memory. metrics. recovery. serving. weights."
SECTIONS = tuple(ALL_OF.split())
# Each has one value that is not refused, as tests/refused shows, or decides all of the fleet.
ONE_VALUE = (
    "engram.offload guard.startup.lineMiB guard.steady.lineMiB serving.host serving.model serving.openToAll"
)
# Each is the contents of a file, which is compared.
IN_FILES = {"host.files", "host.units", "host.sysctls", "host.kernel_args"}


def described(option: dict[str, Any]) -> list[str] | None:
    """The list at the end of a description; None without one."""
    said = re.search(r"Changes: (.+)\.$", " ".join(option["description"].split()))
    return sorted(said[1].split(", ")) if said else None


def parts(plan: dict[str, Any]) -> dict[str, Any]:
    """What counts as one thing in a plan: files by path, units by name, other fields by section and name."""
    found = plan["host"]["files"] | plan["host"]["units"]
    for section, value in plan.items():
        if section in ("engine", "fabric", "host"):
            found |= {f"{section}.{name}": field for name, field in value.items()}
        else:
            found[section] = value
    return {name: value for name, value in found.items() if name not in IN_FILES}


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    found = set()
    for node in before:
        old, new = parts(before[node]), parts(after[node])
        found |= {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    return found


def write(folder: Path, base: str, option: str = "", example: str = "") -> None:
    """A fleet like `base`, with `option` at the JSON value `example`."""
    folder.mkdir()
    (folder / "example.json").write_text(example)
    own = f"{option} = lib.mkForce (builtins.fromJSON (builtins.readFile ./example.json));" if option else ""
    # All have one name: it is part of every plan.
    text = f'imports = [ {FLEETS / base}/fleet.nix ]; fleet.name = lib.mkForce "x"; {own}'
    (folder / "fleet.nix").write_text(f"{{ lib, ... }}: {{ {text} }}\n")


def test_an_option_changes_what_its_description_names(tmp_path: Path) -> None:
    listed = evaluated.value(f"import {ROOT}/tests/policy/options.nix {{ root = {ROOT}; }}")
    said = {option["name"]: described(option) for option in listed}
    silent = [name for name in said if name.startswith(SECTIONS) and said[name] is None]
    assert sorted(silent) == ONE_VALUE.split()

    policy = [option for option in listed if said[option["name"]]]
    assert [option["name"] for option in policy if option["example"] is None] == []
    for base in BASES:
        write(tmp_path / base, base)
        for option in policy:
            if option["name"].startswith(BASES[base]):
                write(tmp_path / f"{base} {option['name']}", base, option["name"], option["example"])
    plans = evaluated.plans(tmp_path)
    seen = {}
    for name in (option["name"] for option in policy):
        tried = [base for base in BASES if name.startswith(BASES[base])]
        differences = [changed(plans[base], plans[f"{base} {name}"]) for base in tried]
        seen[name] = sorted(set[str]().union(*differences))
    wrong = {name: (found, said[name]) for name, found in seen.items() if found != said[name]}
    assert wrong == {}, "what differs, and what the description says"
