"""What an option's text may be: nothing that root writes can name another file or begin another line.

The types of Nix (modules/types/text.nix) and those of a plan agree on every text, so no plan that evaluates
is refused on its node, and none that was edited does what Nix would refuse. One call of Nix.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import evaluated
import pytest
from evaluated import ROOT
from pydantic import TypeAdapter, ValidationError

from sparkserve import plan
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from pathlib import Path

RANDOM = random.Random()  # noqa: S311 - fresh values, no secrets
UNITS = "service|socket|mount|automount|swap|target|path|timer|slice"
# The type of Nix, that of the plan, and texts that it takes.
TYPES: dict[str, tuple[str, Any, list[str]]] = {
    "etcFile": (
        "t.etcFile",
        plan.EtcFile,
        ["/etc/a", "/etc/.a", r"/etc/systemd/system/a\x2d1@.service.d/z.conf"],
    ),
    "folder": (
        't.folder t.part ""',
        plan.Folder,
        [
            "/srv/models",
            "/mnt/a/.b-c",
            "/data/x",
            "/var/lib/sparkserve/engram",
            "/var/lib/sparkserve/weights/v4.1",
        ],
    ),
    "unit": (f't.unit "{UNITS}" ""', plan.UnitName, ["a.service", r"dev-disk\x2d1.swap", "ssh@.socket"]),
    "sysctl": ("t.sysctl", plan.Sysctl, ["vm.swappiness", "net.ipv4.conf.eth0/1.arp_ignore", "kernel.panic"]),
    "line": ("t.line", plan.Line, ["1", "4096 65536 1", "|/usr/bin/core %p", "ä"]),
    "kernelArg": ("t.kernelArg", plan.KernelArg, ["quiet", "kho=off", "pci=0000:01:00.0,x/y"]),
}
# What makes a text something else to who reads it. Each is put at a random place of a text that is taken.
ALWAYS = ["\n", "\r", "\x1b", "\x7f"]
BREAKS = {
    "etcFile": ["/../", "//", "/./", " ", "$", '"'],
    "folder": ["/../", "//", "/./", " ", "%", ":", "@"],
    "unit": ["/", " ", "%", "$", '"'],
    "sysctl": ["..", "//", ".*", " ", "=", "/.", "./"],
    "line": [],
    "kernelArg": [" ", "$(x)", "`", '"', "'", "*", "|", ";", "\\"],
}
WRONG_FOLDERS = """
/ /srv /srv/.. /srv/../etc srv/x /srvx/y /etc/x /usr/x /tmp/x /run/x /dev/shm/x /home/x
/var/lib/dpkg /var/lib/sparkserve /var/lib/sparkserve/activation
"""
WRONG = {
    "etcFile": [
        "",
        "/",
        "/etc",
        "/etc/",
        "/etc/..",
        "/usr/a",
        "etc/a",
        "/nix/store/x",
        "/etc/a/",
        "/etcetera/a",
    ],
    "folder": ["", *WRONG_FOLDERS.split()],
    "unit": ["", "ssh", ".service", "a.conf", "../a.service", "a.service/", "a.service.d"],
    "sysctl": [
        "",
        "vm",
        "vm/swappiness",
        "-vm.swappiness",
        "vm.",
        ".vm",
        "vm.x/",
        "vm/../../../etc/hostname",
    ],
    "line": ["", "a\tb"],
    "kernelArg": ["", "a b"],
}


def cases(name: str) -> list[str]:
    """Texts that the type takes, those that it must not, and made ones that it must not."""
    good = TYPES[name][2]
    broken = []
    for mark in [*ALWAYS, *BREAKS[name]]:
        text = RANDOM.choice(good)
        place = RANDOM.randrange(1, len(text) + 1)
        broken.append(text[:place] + mark + text[place:])
    return [*good, *WRONG[name], *broken]


def test_nix_and_the_plan_take_the_same_texts(tmp_path: Path) -> None:
    tried = {name: cases(name) for name in TYPES}
    (tmp_path / "texts.json").write_text(json.dumps(tried))
    types = " ".join(f"{name} = {nix};" for name, (nix, _, _) in TYPES.items())
    taken = evaluated.value(
        f"let t = import {ROOT}/modules/types/text.nix (import {ROOT}/nix/lib); types = {{ {types} }}; "
        f"in builtins.mapAttrs (name: map types.${{name}}.check) "
        f"(builtins.fromJSON (builtins.readFile {tmp_path}/texts.json))"
    )
    for name, texts in tried.items():
        good = TYPES[name][2]
        assert {text for text, ok in zip(texts, taken[name], strict=True) if ok} == set(good), name
        adapter = TypeAdapter(TYPES[name][1])
        for text in texts:
            if text in good:
                adapter.validate_python(text)
                continue
            with pytest.raises(ValidationError):
                adapter.validate_python(text)
                pytest.fail(f"{name}: the plan takes {text!r}")


@pytest.mark.parametrize("value", ["a\\nExecStartPre=/bin/x", "a\\r", "a\\\\", '[ "a" "b\\nc" ]'])
def test_a_setting_of_a_unit_is_one_line(value: str) -> None:
    render = f"import {ROOT}/modules/types/unit.nix (import {ROOT}/nix/lib)"
    given = value if value.startswith("[") else f'"{value}"'
    with pytest.raises(SparkserveError) as refused:
        evaluated.value(f"{render} {{ Service.ExecStart = {given}; }}")
    assert refused.value.id == "FLEET.OPTION"
    with pytest.raises(SparkserveError):
        evaluated.value(f'{render} {{ Service."A\\nB" = "c"; }}')
    assert evaluated.value(f'{render} {{ Service.A = [ "b" "" ]; }}') == "[Service]\nA=b\nA=\n"
