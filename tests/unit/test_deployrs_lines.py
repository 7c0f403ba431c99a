"""What deploy-rs makes of the generated `deploy`: its schema, and each line that it sends, compared whole."""

from __future__ import annotations

import copy
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from deployrs_deployer import Target
from jsonschema import Draft201909Validator

from sparkserve import commands
from sparkserve.deployrs import canary, words
from sparkserve.errors import SparkserveError

ROOT = Path(__file__).parents[2]
DEPLOY: dict[str, Any] = json.loads((ROOT / "tests/golden/deploy-rs.json").read_text())
SCHEMA = Draft201909Validator(json.loads((ROOT / "checks/deploy-rs/schema.json").read_text()))
NODE = "local-triangle_spark-1"
C = "/nix/store/00000000000000000000000000000000-host-local-triangle-spark-1"
P = "/nix/var/nix/profiles/sparkserve"
ASKS = f"'{C}' --profile-path '{P}' --temp-path '/run/sparkserve' --confirm-timeout 60"
USUAL: dict[str, Any] = {}
SUDO = {"sshUser": "nvidia"}
LOGS = {"debugLogs": True, "logDir": "/var/l"}
LINES: list[tuple[dict[str, Any], str, str]] = [
    (USUAL, "activate", f"{C}/activate-rs activate {ASKS} --magic-rollback --auto-rollback"),
    (USUAL, "wait", f"{C}/activate-rs wait '{C}' --temp-path '/run/sparkserve' --activation-timeout 240"),
    (USUAL, "confirm", "rm /run/sparkserve/deploy-rs-canary-00000000000000000000000000000000"),
    (USUAL, "revoke", f"{C}/activate-rs revoke --profile-path '{P}'"),
    ({"magicRollback": False, "autoRollback": False}, "activate", f"{C}/activate-rs activate {ASKS}"),
    (SUDO, "activate", f"sudo -u root {C}/activate-rs activate {ASKS} --magic-rollback --auto-rollback"),
    (SUDO, "confirm", "sudo -u root rm /run/sparkserve/deploy-rs-canary-00000000000000000000000000000000"),
    (LOGS, "revoke", f"{C}/activate-rs --debug-logs --log-dir /var/l revoke --profile-path '{P}'"),
]


@pytest.mark.parametrize(("override", "verb", "line"), LINES)
def test_each_line_is_what_our_program_takes(override: dict[str, Any], verb: str, line: str) -> None:
    target = Target(DEPLOY, NODE, override=override)
    assert getattr(target, verb)() == line
    if verb != "confirm":
        program, _, argv = line.removeprefix("sudo -u root ").partition(" ")
        asked = words.parse(shlex.split(argv), program.removesuffix("/activate-rs"))
        assert (asked.verb, asked.debug_logs) == (verb, override is LOGS)
        assert asked.magic_rollback == ("--magic-rollback" in line)
        assert asked.auto_rollback == ("--auto-rollback" in line)
        assert asked.confirm_timeout == (60 if verb == "activate" else 30)
        if verb != "revoke":
            assert str(canary.place(asked.temp_path, C)) == target.canary


def test_the_flags_of_one_call_come_through() -> None:
    for flag, name in (("--dry-activate", "dry_activate"), ("--boot", "boot")):
        line = Target(DEPLOY, NODE).activate(flag)
        assert line == f"{C}/activate-rs activate {ASKS} --magic-rollback --auto-rollback {flag}"
        assert getattr(words.parse(shlex.split(line)[1:], C), name)


def test_sessions_are_those_of_our_own_runner() -> None:
    argv = Target(DEPLOY, NODE).ssh("true")
    assert argv[:2] == ["ssh", "root@10.77.0.2"]
    assert argv[2:] == [*shlex.split(commands.copy_options("F"))[2:], "true"]


@pytest.mark.parametrize(
    "argv",
    [
        "",
        "switch",
        f"activate {C}",
        f"activate {C} --profile-path /nix/var/nix/profiles/system --temp-path /t --confirm-timeout 1",
        f"activate {C} --profile-user root --profile-name system --temp-path /t --confirm-timeout 1",
        f"activate /nix/store/other --profile-path {P} --temp-path /t --confirm-timeout 1",
        f"activate {C} --profile-path {P} --temp-path /t --confirm-timeout 65536",
        f"activate {C} --profile-path {P} --temp-path /t --confirm-timeout -1",
        f"activate {C} --profile-path {P} --temp-path /t --confirm-timeout 1 --auto",
        f"wait {C}",
        f"wait {C} --temp-path /t --activation-timeout ٣",
        "revoke",
        "revoke --profile-name sparkserve",
    ],
)
def test_what_deploy_rs_does_not_send_is_refused(argv: str) -> None:
    with pytest.raises(SparkserveError, match=r"CLI\.USAGE"):
        words.parse(argv.split(), C)


WRONG: list[tuple[list[str], Any]] = [
    ([], []),
    (["nodes"], []),
    (["nodes", "7"], {"hostname": "h"}),
    (["nodes", NODE], "h"),
    (["nodes", NODE, "hostname"], 7),
    (["nodes", NODE, "profiles"], []),
    (["nodes", NODE, "profilesOrder"], ["a", "a"]),
    (["nodes", NODE, "profiles", "-"], {"path": "/p"}),
    (["nodes", NODE, "profiles", "sparkserve"], {"profilePath": "/p"}),
    (["nodes", NODE, "profiles", "sparkserve", "path"], None),
]
SETTINGS: dict[str, list[Any]] = {
    **{name: [7, None, []] for name in ("sshUser", "user", "tempPath")},
    "sshOpts": ["-p 22", [22], {}],
    **{name: [0, "true", None] for name in ("fastConnection", "autoRollback")},
    **{name: [0, "true", None] for name in ("magicRollback", "interactiveSudo")},
    **{name: ["60", 1.5, True, None] for name in ("confirmTimeout", "activationTimeout")},
}
LEVELS: list[list[str]] = [[], ["nodes", NODE], ["nodes", NODE, "profiles", "sparkserve"]]
WRONG += [
    ([*level, name], value) for level in LEVELS for name, values in SETTINGS.items() for value in values
]
# Taken by deploy-rs's schema, whatever one would think.
ODD: list[tuple[list[str], Any]] = [
    (["nodes"], {}),
    (["nodes", "7_"], {"hostname": "h"}),
    (["nodes", NODE, "profilesOrder"], []),
    (["confirmTimeout"], 70000),
    (["activationTimeout"], 60.0),
    *(([*level, name], value) for level in LEVELS for name, value in (("sudo", 7), ("remoteBuild", "x"))),
]


def changed(path: list[str], value: Any) -> Any:
    deploy = copy.deepcopy(DEPLOY)
    if not path:
        return value
    place = deploy
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return deploy


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_the_schema_refuses(path: list[str], value: Any) -> None:
    assert not SCHEMA.is_valid(changed(path, value))


@pytest.mark.parametrize(("path", "value"), [*ODD, ([], DEPLOY), ([], {})])
def test_the_schema_takes(path: list[str], value: Any) -> None:
    SCHEMA.validate(changed(path, value))


def test_a_required_field_is_missed_anywhere() -> None:
    for level, name in ((LEVELS[1], "hostname"), (LEVELS[2], "path")):
        deploy = copy.deepcopy(DEPLOY)
        place = deploy
        for part in level:
            place = place[part]
        del place[name]
        assert not SCHEMA.is_valid(deploy)
