"""What cannot be told is unknown: not a pass, not a question that does not arise."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from sparkserve.doctor import selftest
from sparkserve.doctor.check import all_checks
from sparkserve.doctor.facts import Recorded
from sparkserve.doctor.judge import judge
from sparkserve.doctor.node import Node
from sparkserve.doctor.redact import redact_value

BASE = selftest.base()
CONF = "/etc/nix/nix.conf"
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=yes "


def status(id: str, **delta: Any) -> str:
    return selftest.ask(selftest.change(BASE, delta))[id].verdict.status


def test_a_host_of_which_nothing_can_be_read_passes_nothing() -> None:
    unread = {"why": "the disk gave no answer"}
    paths = [Path(key) for key in BASE["files"]]
    folders = {str(parent) for path in paths for parent in path.parents}
    files = dict.fromkeys([*map(str, paths), *folders], unread)
    commands = dict.fromkeys(BASE["commands"], unread)
    for machine in (unread, BASE["commands"]["uname -m"]):
        if machine != unread:
            files["/etc/dgx-release"] = BASE["files"]["/etc/dgx-release"]
        answers = selftest.ask({**BASE, "files": files, "commands": {**commands, "uname -m": machine}})
        passed = [a.check.id for a in answers.values() if a.verdict.status == "pass"]
        # What the plan alone answers.
        read = {id for id in passed if not answers[id].verdict.where.startswith("the plan")}
        assert read <= {"NIX.PLAN"}


@pytest.mark.parametrize("file", ["comm", "cmdline"])
def test_a_process_that_cannot_be_read_is_not_none(file: str) -> None:
    path = f"/proc/4242/{file}"
    for id in ("ENGINE.ORPHAN", "SECURITY.KEY_IN_ARGUMENTS"):
        assert status(id, files={path: {"why": "Permission denied"}}) == "unknown"
    poll = {"/proc/950/comm": "nvidia-smi\n", "/proc/950/cmdline": {"why": "Permission denied"}}
    assert status("GPU.POLLING", files=poll) == "unknown"


def test_a_process_that_has_ended_is_none() -> None:
    assert status("ENGINE.ORPHAN", files={"/proc/900": None, "/proc/900/": None}) == "pass"


@pytest.mark.parametrize("id", ["FLEET.DRIVER", "FLEET.SECURE_BOOT", "FLEET.THP"])
def test_no_output_on_all_nodes_is_no_agreement(id: str) -> None:
    empty = {key: "" for key in BASE["commands"] if key.startswith(SSH)}
    assert status(id, commands=empty) == "unknown"
    assert status(id, commands={**empty, "mokutil --sb-state": ""}) == "unknown"


def test_checks_of_a_spark_are_unknown_where_the_machine_is() -> None:
    answers = selftest.ask(selftest.change(BASE, {"commands": {"uname -m": None}}))
    asked = [a.verdict for a in answers.values() if a.check.on == "spark"]
    assert {verdict.status for verdict in asked} == {"unknown"}
    assert all("what machine this is cannot be told" in verdict.why for verdict in asked)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trusted-users = root\n", "pass"),
        ("", "pass"),
        ("trusted-users = root # alice\n#trusted-users = *\n", "pass"),
        ("trusted-users = root alice\n", "fail"),
        ("trusted-users = @wheel\n", "fail"),
        ("extra-trusted-users = *\n", "fail"),
        ("extra-trusted-users = @sudo\n", "fail"),
        ("!include x.conf\n", "unknown"),
        ("include x.conf\ntrusted-users = root\n", "unknown"),
        ("include x.conf\ntrusted-users = bob\n", "fail"),
    ],
)
def test_who_nix_trusts(text: str, expected: str) -> None:
    assert status("NIX.TRUSTED", files={CONF: text}) == expected


def test_a_host_without_nix_trusts_nobody() -> None:
    assert status("NIX.TRUSTED", files={CONF: None, "/nix": None, "/nix/": None}) == "not applicable"


SYSCTLS = {
    "vm.watermark_boost_factor": "MEMORY.WATERMARK",
    "vm.panic_on_oom": "MEMORY.PANIC_ON_OOM",
    "kernel.panic": "KERNEL.PANIC",
    "kernel.panic_on_oops": "KERNEL.PANIC",
}


@pytest.mark.parametrize("name", SYSCTLS)
def test_no_sysctl_of_the_plan_is_left_out_on_a_spark(name: str) -> None:
    # One number for the plan, another for the host; either may be the usual one.
    path = "/proc/sys/" + name.replace(".", "/")
    planned, real = random.sample([0, 1, 2, 30], 2)
    sysctls = {"kernel.panic": "30", "kernel.panic_on_oops": "1", name: str(planned)}
    delta: dict[str, Any] = {"plan": {"host/sysctls": sysctls}, "files": {path: f"{real}\n"}}
    answers = selftest.ask(selftest.change(BASE, delta))
    failed = [id for id in (SYSCTLS[name], "KERNEL.SYSCTLS") if answers[id].verdict.status == "fail"]
    assert len(failed) == 1, (planned, real, failed)


def test_what_the_plan_says_of_a_panic_is_right() -> None:
    for seconds, expected in (("300", "pass"), ("30", "fail")):
        sysctls = {"kernel.panic": "300", "kernel.panic_on_oops": "1"}
        files = {"/proc/sys/kernel/panic": seconds}
        changed = selftest.change(BASE, {"plan": {"host/sysctls": sysctls}, "files": files})
        answer = selftest.ask(changed)["KERNEL.PANIC"]
        assert answer.verdict.status == expected
        assert expected == "pass" or "kernel.panic=300" in answer.fix


def test_values_that_a_bundle_hides_are_not_missing() -> None:
    line = "python3\0-m\0sparkserve_launch\0--context-length\0***\0"
    seen = selftest.change(BASE, {"files": {"/proc/4242/cmdline": line}})
    own = {**BASE["plan"], "engine": {**BASE["plan"]["engine"], "args": ["--context-length", "262144"]}}
    other = {**BASE["plan"], "engine": {**BASE["plan"]["engine"], "args": ["--context-length", "131072"]}}
    for plan, expected in ((own, "fail"), (other, "unknown")):
        node = Node(Recorded({**seen, "plan": own}, live=False), plan)
        answers = judge(node, [all_checks()["ENGINE.ARGUMENTS"]], live=False)
        assert [answer.verdict.status for answer in answers] == [expected]


GOLDEN = sorted((Path(__file__).parents[2] / "golden").rglob("*.json"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_a_plan_of_ours_stays_whole_in_a_bundle(path: Path) -> None:
    plan = json.loads(path.read_text())
    assert redact_value(plan) == plan


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (None, "unknown"),
        ("", "pass"),
        ('APT::Periodic::Unattended-Upgrade "0";', "pass"),
        ("?", "unknown"),
        ('APT::Periodic::Unattended-Upgrade "1";', "fail"),
    ],
)
def test_updates_may_be_set_in_another_file(printed: str | None, expected: str) -> None:
    asked = {"apt-config dump APT::Periodic::Unattended-Upgrade": printed} if printed is not None else {}
    files = {"/etc/apt/apt.conf.d/20auto-upgrades": None}
    assert status("KERNEL.HELD", files=files, commands={**asked, "apt-mark showhold": ""}) == expected
