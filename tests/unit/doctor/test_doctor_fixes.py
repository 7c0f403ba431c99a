"""What a fix says can be done as it stands: its shell, its words, the options and commands it names."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from sparkserve.cli.group import cli
from sparkserve.doctor import report, selftest
from sparkserve.doctor.check import all_checks

BASE = selftest.base()
FIXTURES = selftest.fixtures()
EVIL = "$(touch PWN);x y'\"`id`"


def broken(id: str, **delta: Any) -> str:
    """The fix that is printed for the fixture of `id`, with `delta` on top."""
    given = selftest.change(BASE, {"given": FIXTURES[id].get("given", [])})
    answer = selftest.ask(selftest.change(selftest.change(given, FIXTURES[id]["break"]), delta))[id]
    assert answer.verdict.status == "fail", answer.verdict
    return answer.fix


GRUB = {id: check.fix for id, check in all_checks().items() if "GRUB_CMDLINE" in check.fix}


@pytest.mark.parametrize("id", sorted(GRUB))
def test_what_a_fix_adds_to_grub_is_read_by_sh(id: str) -> None:
    shell = shutil.which("dash")
    if shell is None:
        pytest.skip("there is no dash")
    printed, found, _ = GRUB[id].partition(" | sudo tee")
    assert found
    line = subprocess.run([shell, "-c", printed], capture_output=True, text=True, check=True).stdout
    assert line.count("\n") == 1
    asked = f"GRUB_CMDLINE_LINUX_DEFAULT='quiet splash a=b'\n{line}echo \"$GRUB_CMDLINE_LINUX_DEFAULT\"\n"
    done = subprocess.run([shell, "-e"], input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert {"quiet", "a=b"} <= set(words)
    assert ("splash" in words) == (id != "BOOT.SPLASH")
    assert ("kho=off" in words) == (id != "BOOT.SPLASH")


NAMED: dict[str, Any] = {
    "SECURITY.SECRETS": {"commands": {"git -C /root/sparkserve ls-files": f"{EVIL}.pem\n"}},
    "SECURITY.KEY_FILE": {"files": {f"/etc/sparkserve/{EVIL}key": {"mode": "0644", "size": 1}}},
    "KERNEL.RELEASE": {"plan": {"host/kernel/release": EVIL}},
    "STORAGE.NFS_SOFT": {
        "plan": {"weights/path": "/$(touch)PWN"},
        "edit": {
            "/proc/mounts": [
                "10.12.0.1:/srv/sparkserve/weights /srv/sparkserve/weights",
                "h:/$(id) /$(touch)PWN",
            ]
        },
    },
    "STORAGE.NFS_WRITE": {
        "plan": {"weights/path": "/$(touch)PWN"},
        "edit": {
            "/proc/mounts": [
                "10.12.0.1:/srv/sparkserve/weights /srv/sparkserve/weights",
                "h:/$(id) /$(touch)PWN",
            ]
        },
    },
}


@pytest.mark.parametrize("id", sorted(NAMED))
def test_names_of_others_are_words_and_never_shell(id: str) -> None:
    fix = broken(id, **NAMED[id])
    lexer = shlex.shlex(fix, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    assert not [word for word in words if word in ("$", "$(touch") or word.startswith("`")]
    if "$(touch" in str(NAMED[id]):
        assert [word for word in words if "$(touch" in word], fix
        assert "$(" not in re.sub(r"'[^']*'", "", fix)


def test_what_a_stranger_writes_moves_no_cursor() -> None:
    evil = "\x1b[2J\x1b]0;x\x07\r\u202e"
    changed = selftest.change(BASE, {"files": {"/proc/swaps": evil}, "plan": {"host/default_target": evil}})
    answers = list(selftest.ask(changed).values())
    assert [a for a in answers if evil in f"{a.verdict.expected}{a.verdict.why}"]
    text = "\n".join(report.lines(answers, f"plan of {evil}"))
    assert text.replace("\n", "").isprintable()
    assert "\\x1b[2J" in text


MODULES = "".join(path.read_text() for path in (Path(__file__).parents[3] / "modules").glob("*.nix"))
SECTIONS = set(re.findall(r"\boptions\.(\w+) = \{", MODULES))
SYSCTLS = ("kernel.panic", "kernel.panic_on_oops")


def printed() -> dict[str, set[str]]:
    """Every fix by id: the check's own, and what is printed for its fixture."""
    found = {id: {check.fix} for id, check in all_checks().items()}
    for id in FIXTURES:
        found[id].add(broken(id))
    return found


FIXES = printed()


def test_commands_that_a_fix_names_are_there() -> None:
    context = click.Context(cli)
    seen = set()
    for id, fixes in FIXES.items():
        for name, sub in re.findall(r"sparkserve (\w+)(?: (\w+))?", " ; ".join(fixes)):
            command = cli.get_command(context, name)
            assert command is not None, (id, name)
            if isinstance(command, click.Group) and not command.invoke_without_command:
                assert command.get_command(context, sub) is not None, (id, name, sub)
            seen.add(name)
        assert not [fix for fix in fixes if re.search(r"\bdeploy\b", fix)], id
    assert {"up", "down", "memory", "fleet", "pins"} <= seen


def test_options_that_a_fix_names_are_there_and_may_be_set() -> None:
    seen = set()
    # What SGLang is given by options of ours is refused in engine.args.
    owned = set(re.findall(r"\"(--[a-z-]{3,})\"", MODULES))
    assert "--max-total-tokens" in owned
    for id, fixes in FIXES.items():
        text = " ; ".join(fixes)
        for section, name in re.findall(r"(?<![\w/.-])([a-z]+)\.([a-zA-Z_]+)\b", text):
            if section in SECTIONS and name != "nix" and f"{section}.{name}" not in SYSCTLS:
                assert re.search(rf"\b{name} = (lib\.)?mkOption", MODULES), (id, section, name)
                seen.add(f"{section}.{name}")
        assert not {option for option in owned if re.search(rf"(?<!\w){option}\b", text)}, id
        # Modules refuse these: the profile's value was measured, and memory.compileJobs is the other's.
        assert not re.search(r"engine\.env\.(PYTORCH_CUDA_ALLOC_CONF|MAX_JOBS)", text), id
    assert {"engine.kvTokens", "memory.compileJobs", "fleet.nodes", "serving.host", "engine.env"} <= seen


def test_what_a_fix_writes_for_sshd_wins() -> None:
    # sshd takes the first LoginGraceTime and the last MaxStartups of its files, and cloud-init has one.
    fix = all_checks()["SERVICE.SSHD_LIMITS"].fix
    names = [each.rpartition("/")[2] for each in re.findall(r"/\S+\.conf", fix)]
    assert min(names) < "00-sparkserve.conf" < "50-cloud-init.conf" < max(names)
