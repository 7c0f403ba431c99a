"""A node beside its closure: each kind of difference alone is the only one that is told, with both values."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest
from drift_node import BOOT, LAUNCHER, LIBRARY, SCHEDULER, Place, same_file
from host_node import RANK, UNITS
from test_activate import SYSCTL

from sparkserve.adapters.plugin import VARIABLE
from sparkserve.drift import node as nodes
from sparkserve.drift.report import ANOTHER, Report
from sparkserve.group import run_files
from sparkserve.host import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Rows = list[tuple[str, str, str, str]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A node as planned, whose engine runs."""
    return Place(tmp_path, monkeypatch)


def look(place: Place, *, live: bool = True, deep: bool = True) -> Report:
    """What the node says of itself."""
    return nodes.of_group(place.system, place.folder, live=live, deep=deep)


def rows(place: Place) -> Rows:
    """The differences."""
    place.write()
    return [(each.part, each.what, each.expected, each.found) for each in look(place).differences]


def test_a_node_as_planned_differs_in_nothing(place: Place) -> None:
    before = sorted((path, path.lstat().st_mtime_ns) for path in place.node.root.rglob("*"))
    report = look(place)
    assert report.differences == ()
    assert (report.node, report.generation, report.engine) == ("spark-0", 4, LAUNCHER)
    assert report.compiled == ()
    # 3 layers, host, harness, and one more that the store knows of; 2 files of the engine.
    counts = {part: report.checked[part] for part in ("root", "libraries", "adapters", "sysctls", "links")}
    assert counts == {"root": 6, "libraries": 2, "adapters": 1, "sysctls": 2, "links": 4}
    assert all(
        report.checked[part] for part in ("arguments", "environment", "isolation", "mounts", "files", "units")
    )
    assert report.facts["kernel"] == "7.0.0-1019-nvidia" and report.facts["boot of the group"] == str(BOOT)
    assert sorted((path, path.lstat().st_mtime_ns) for path in place.node.root.rglob("*")) == before


def argument(place: Place, before: str, *after: str) -> None:
    at = place.words.index(before)
    place.words[at : at + 1] = after


def value_of(place: Place, flag: str, value: str) -> None:
    place.words[place.words.index(flag) + 1] = value


ARGUMENTS: list[tuple[str, Callable[[Place], object], Rows]] = [
    ("other", lambda p: value_of(p, "--tp-size", "4"), [("arguments", "--tp-size", "3", "4")]),
    (
        "gone",
        lambda p: argument(p, "--enable-metrics"),
        [("arguments", "--enable-metrics", "given", "nothing")],
    ),
    ("more", lambda p: p.words.append("--x"), [("arguments", "--x", "nothing", "given")]),
    (
        "of another boot",
        lambda p: value_of(p, "--dist-init-addr", "10.77.0.1:29508"),
        [("arguments", "--dist-init-addr", "10.77.0.1:29507", "10.77.0.1:29508")],
    ),
    (
        "the program",
        lambda p: value_of(p, "-m", "sglang.launch_server"),
        [
            (
                *("arguments", "the program"),
                "/usr/bin/python3.11 -m sparkserve_launch",
                "/usr/bin/python3.11 -m sglang.launch_server",
            )
        ],
    ),
    (
        "a key",
        lambda p: p.words.extend(["--api-key", "hunter22"]),
        [("arguments", "--api-key", "nothing", "***")],
    ),
]
ENVIRONMENT: list[tuple[str, Callable[[Place], object], Rows]] = [
    (
        "other",
        lambda p: p.environment.update(OMP_NUM_THREADS="9"),
        [("environment", "OMP_NUM_THREADS", "1", "9")],
    ),
    ("gone", lambda p: p.environment.pop("MAX_JOBS"), [("environment", "MAX_JOBS", "2", "nothing")]),
    (
        "more",
        lambda p: p.environment.update(LD_PRELOAD="/x.so"),
        [("environment", "LD_PRELOAD", "nothing", "/x.so")],
    ),
    (
        "a token",
        lambda p: p.environment.update({"HF_TOKEN": "hunter22"}),
        [("environment", "HF_TOKEN", "nothing", "***")],
    ),
    (
        "another token's form",
        lambda p: p.environment.update(MAX_JOBS="hf_hunter22hunter22"),
        [("environment", "MAX_JOBS", "2", "***")],
    ),
    (
        "one setting of an adapter",
        lambda p: p.environment.update({VARIABLE: p.environment[VARIABLE].replace(":65536", ":4096")}),
        [
            (
                *("environment", f"{VARIABLE} adapters oneshot-collectives settings split_bytes"),
                *("65536", "4096"),
            )
        ],
    ),
]


@pytest.mark.parametrize(
    ("change", "expected"), [each[1:] for each in ARGUMENTS], ids=[e[0] for e in ARGUMENTS]
)
def test_arguments(place: Place, change: Callable[[Place], object], expected: Rows) -> None:
    change(place)
    assert rows(place) == expected


@pytest.mark.parametrize(
    ("change", "expected"), [each[1:] for each in ENVIRONMENT], ids=[e[0] for e in ENVIRONMENT]
)
def test_environment(place: Place, change: Callable[[Place], object], expected: Rows) -> None:
    change(place)
    assert rows(place) == expected
    assert "hunter22" not in look(place).model_dump_json()


def test_an_order_of_arguments_alone(place: Place) -> None:
    argument(place, "--sleep-on-idle")
    place.words.append("--sleep-on-idle")
    (row,) = rows(place)
    assert row[:2] == ("arguments", "their order")
    assert row[2].split()[-1] == "--port" and row[3].split()[-1] == "--sleep-on-idle"


def test_two_secrets_that_differ_are_told_apart_without_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drift_node.launch", _with_secret)
    monkeypatch.setattr("sparkserve.group.launch.launch", _with_secret)
    place = Place(tmp_path, monkeypatch)
    place.environment["X_PASSWORD"] = "hunter22"  # noqa: S105
    assert rows(place) == [("environment", "X_PASSWORD", "***", ANOTHER)]


def _with_secret(*args: object, **given: object) -> object:
    from sparkserve.group.launch import Launch

    return Launch(("--x",), {"X_PASSWORD": "hunter21"})


def test_isolation(place: Place) -> None:
    at = place.line.index("--cap-drop")
    del place.line[at : at + 2]
    assert rows(place) == [("isolation", "bubblewrap", "--cap-drop ALL", "nothing")]


def test_isolation_of_an_engine_that_was_not_started_by_us(place: Place) -> None:
    place.line = ["/bin/bash"]
    found = rows(place)
    assert [each[:2] for each in found] == [("isolation", "bubblewrap")]
    assert found[0][3] == "/bin/bash"


def mount(place: Place, target: str, **fields: str) -> None:
    """Replace fields of a mount."""
    names = ("target", "root", "how", "kind", "source", "settings")
    at = [each[0] for each in place.mounts].index(target)
    place.mounts[at] = tuple(fields.get(name, old) for name, old in zip(names, place.mounts[at], strict=True))


def test_a_mount_that_is_not_there(place: Place) -> None:
    place.mounts = [each for each in place.mounts if each[0] != "/model"]
    assert rows(place) == [("mounts", "/model", f"{place.root}/model, read-only", "nothing")]


def test_a_mount_more(place: Place) -> None:
    place.mounts.append(("/opt/engine/lib/x y", "/home/x", "rw", "ext4", "/dev/vda", "rw"))
    place.mounts[-1] = ("/opt/x\\040y", *place.mounts[-1][1:])
    assert rows(place) == [("mounts", "/opt/x y", "nothing", "/home/x of /dev/vda")]


def test_a_mount_that_can_be_written(place: Place) -> None:
    mount(place, "/opt/engine", how="rw,nosuid")
    wanted = f"{place.root}/site"
    assert rows(place) == [("mounts", "/opt/engine", f"{wanted}, read-only", f"{wanted} of /dev/vda")]


def test_a_mount_of_something_else(place: Place) -> None:
    other = place.root / "other"
    other.mkdir()
    (place.root / "base/model").unlink()
    (place.root / "base/model").symlink_to(other)
    mount(place, "/model", root=str(other))
    expected = f"{place.root}/model, read-only"
    assert rows(place) == [("mounts", "/model", expected, f"{other} of /dev/vda, read-only")]


def test_a_mount_over_another(place: Place) -> None:
    place.mounts.append(("/model", f"{place.root}/model", "ro", "ext4", "/dev/vda", "rw"))
    found = f"another over it: {place.root}/model of /dev/vda, read-only"
    assert rows(place) == [("mounts", "/model", "one mount", found)]


def test_memory_of_another_size(place: Place) -> None:
    size = place.plan.engine.shm_mib
    mount(place, "/dev/shm", settings=f"rw,size={size << 9}k")  # noqa: S108 - in the engine's root
    expected = ("mounts", "/dev/shm", f"a tmpfs of {size} MiB", f"a tmpfs of {size // 2} MiB")  # noqa: S108
    assert rows(place) == [expected]


def test_a_library_that_was_replaced(place: Place) -> None:
    file = place.root / "site/lib/libtorch.so"
    old = file.stat().st_ino
    same_file(file)
    assert rows(place) == [
        (
            *("libraries", LIBRARY, f"{file}, inode {file.stat().st_ino}"),
            f"inode {old}, loaded by process {SCHEDULER}",
        )
    ]


def test_a_library_that_was_deleted(place: Place) -> None:
    place.maps = [
        (how, inode, f"{path} (deleted)" if path == LIBRARY else path) for how, inode, path in place.maps
    ]
    ((part, what, _, found),) = rows(place)
    assert (part, what, found) == ("libraries", LIBRARY, f"deleted since, loaded by process {SCHEDULER}")


@pytest.mark.parametrize("path", ["/opt/engine/lib/libmore.so", "/dev/libcuda.so.1"])
def test_a_library_from_elsewhere(place: Place, path: str) -> None:
    place.maps.append(("r-xp", 77, path))
    ((part, what, expected, found),) = rows(place)
    assert (part, what, expected) == ("libraries", path, "nothing")
    assert found.startswith(f"loaded by process {SCHEDULER}")


def test_what_the_engine_compiled_is_told_and_no_difference(place: Place) -> None:
    made = ("/memfd:libffi", "/root/.triton/cache/x/launcher.so")
    place.maps += [("r-xp", 76, f"{made[0]} (deleted)"), ("r-xp", 77, made[1])]
    assert rows(place) == []
    assert look(place).compiled == made


def test_a_process_that_ends_meanwhile_is_passed_over(place: Place) -> None:
    place.write()
    (place.proc / f"{SCHEDULER}/maps").unlink()
    assert look(place).differences == ()


def test_an_engine_that_is_not_there(place: Place) -> None:
    shutil.rmtree(place.proc / str(LAUNCHER))
    assert [(each.part, each.what, each.found) for each in look(place).differences] == [
        ("engine", "it", "nothing")
    ]
    assert look(place, live=False).differences == ()


def test_an_engine_that_ends_while_it_is_looked_at(place: Place) -> None:
    (place.proc / f"{LAUNCHER}/mountinfo").unlink()
    assert [each.found for each in look(place).differences] == ["it ended meanwhile"]


def test_adapters(place: Place) -> None:
    agreed, place.armed = place.armed["oneshot-collectives"], {"oneshot-collectives": "0" * 64}
    assert rows(place) == [("adapters", "oneshot-collectives", agreed, "0" * 64)]
    place.armed = {}
    assert rows(place) == [("adapters", "oneshot-collectives", agreed, "not armed")]
    place.armed = {"oneshot-collectives": agreed, "other": "1"}
    assert rows(place) == [("adapters", "other", "nothing", "1")]


def test_a_layer_that_the_store_does_not_know(place: Place) -> None:
    place.invalid = [f"{place.root}/model"]
    assert rows(place) == [("root", f"{place.root}/model", "in the store's record", "not there")]


def test_bytes_that_changed_are_seen_by_reading_them(place: Place) -> None:
    place.verified = "path '/nix/store/x' was modified! expected hash 'sha256:aa', got 'sha256:bb'\n"
    assert rows(place) == [("root", "/nix/store/x", "sha256:aa", "sha256:bb")]
    assert look(place, deep=False).differences == ()
    place.verified = "error: reading '/nix/store/x/y': Input/output error\n"
    assert rows(place) == [("root", "the store", "every file to be read", place.verified.strip())]


def test_sysctls_kernel_and_links(place: Place) -> None:
    place.node.write("/proc/sys/vm/swappiness", "60\n")
    assert rows(place) == [("sysctls", "vm.swappiness", "1", "60")]
    place.node.write("/proc/sys/vm/swappiness", "1\n")
    place.node.write("/proc/cmdline", "\n")
    what = "the kernel's command line (the next boot is to bring it)"
    assert rows(place) == [("kernel", what, "with quiet", "without it")]
    place.node.write("/proc/cmdline", "quiet\n")
    next(link for link in place.node.links if link.get("ifname") == "enp1s0f0np0")["mtu"] = 1500
    assert rows(place) == [("links", "the MTU of enp1s0f0np0", "9000", "1500")]


def test_files_that_were_edited(place: Place) -> None:
    file = place.system.at(SYSCTL)
    before, owner = file.read_text(), f"owner {os.geteuid()}:{os.getegid()}"
    file.chmod(0o600)
    ((part, what, expected, found),) = rows(place)
    assert (part, what) == ("files", SYSCTL)
    assert expected.endswith(f", mode 0644, {owner}") and found.endswith(f", mode 0600, {owner}")
    file.chmod(0o644)
    file.write_text(f"{before}#\n")
    ((part, what, expected, found),) = rows(place)
    assert (part, what) == ("files", SYSCTL) and expected.split(",")[0] != found.split(",")[0]
    file.unlink()
    assert rows(place)[0][2:] == (expected, "nothing")


def test_a_unit_that_was_edited(place: Place) -> None:
    link = place.system.at(f"{UNITS}/{RANK}")
    text, target = link.read_text(), str(link.readlink())
    link.unlink()
    link.write_text(text)
    ((part, what, expected, found),) = rows(place)
    assert (part, what, expected) == ("units", f"{UNITS}/{RANK}", f"a link to {target}")
    assert found.startswith("sha256 ")


def test_a_unit_that_was_added_to(place: Place) -> None:
    more = "/run/systemd/system.control/x.service.d/50-CPUQuota.conf"
    place.drop_ins = {RANK: f"/usr/lib/systemd/system/service.d/10-distribution.conf {more}"}
    assert rows(place) == [("units", f"additions to {RANK}", "nothing", more)]


def test_a_unit_that_systemd_has_otherwise(place: Place) -> None:
    place.node.stale = True
    found = rows(place)
    assert {each[0] for each in found} == {"units"} and {each[1] for each in found} == {
        RANK,
        "sparkserve-clocks.service",
    }


def test_another_closure_in_effect(place: Place) -> None:
    known = record.load(place.system)
    record.save(place.system, known.model_copy(update={"closure": "/nix/store/old"}))
    assert rows(place) == [("closure", "in effect", str(place.folder), "/nix/store/old")]
    pending = record.Pending(closure="/nix/store/new", changed=())
    record.save(place.system, known.model_copy(update={"pending": pending}))
    assert rows(place) == [("closure", "its activation", "ended", "interrupted: run it again")]


def test_what_is_told_goes_through_json(place: Place) -> None:
    place.node.write("/proc/sys/vm/swappiness", "60\n")
    report = look(place)
    assert Report.model_validate_json(json.dumps(report.model_dump(mode="json", by_alias=True))) == report
    assert run_files.boot(place.system.runs) == BOOT
