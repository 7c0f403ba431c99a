"""The command: alone with the standard library, in the harness, its exit codes, and its page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparkserve.cli.main import main
from sparkserve.doctor import command_line, report, selftest
from sparkserve.doctor.check import all_checks

ROOT = Path(__file__).parents[3]
DOCTOR = ROOT / "src/sparkserve/doctor"


def alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the doctor as an owner would on a host with nothing but Python."""
    argv = [sys.executable, "-I", "-S", str(DOCTOR), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/", env={})


def inside(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["doctor", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().out


def written(tmp_path: Path, delta: dict[str, object]) -> str:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(selftest.change(selftest.base(), delta)))
    return str(path)


def test_selftest_with_the_standard_library_alone() -> None:
    done = alone("selftest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{len(all_checks())} ids flipped")


def test_nothing_outside_the_standard_library_is_imported() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from sparkserve.doctor import command_line as c;"
        "c.main(['--list']); print(sorted({m.partition('.')[0] for m in sys.modules}"
        " - set(sys.stdlib_module_names) - {'__main__', 'sparkserve'}))"
    )
    argv = [sys.executable, "-I", "-S", "-c", code, str(ROOT / "src")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_healthy_host_passes(tmp_path: Path) -> None:
    done = alone("--facts", written(tmp_path, {}), "--live")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("This is a Spark (DGX Spark in /etc/dgx-release); plan of desk, spark-1")
    assert lines[-1].startswith("0 errors, 0 warnings, 0 infos; ")
    assert " 0 unknown, " in lines[-1]


@pytest.mark.parametrize(("id", "code"), [("FABRIC.MTU", 62), ("BOOT.TARGET", 0), ("GPU.MODESET", 0)])
def test_only_errors_make_the_exit_code(
    id: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, selftest.fixtures()[id]["break"])
    done = alone("--facts", path)
    assert done.returncode == code
    assert f"{all_checks()[id].severity} {id}: " in done.stdout
    assert inside(capsys, "--facts", path) == (code, done.stdout)
    value = json.loads(alone("--facts", path, "--json").stdout)
    assert value["schema"] == "sparkserve.doctor/1"
    assert value["failed"] == (code == 62)
    assert len(value["checks"]) == len(all_checks())
    entry = next(each for each in value["checks"] if each["id"] == id)
    assert entry["status"] == "fail"
    assert entry["evidence"]


def test_what_cannot_be_read_is_shown_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, {"commands": {"dmesg": {"code": 1, "out": "dmesg: Operation not permitted"}}})
    done = alone("--facts", path, "--only", "KERNEL")
    assert done.returncode == 0
    assert "unknown KERNEL.AER: `dmesg` ended with 1: dmesg: Operation not permitted" in done.stdout
    assert " 2 unknown, " in done.stdout.splitlines()[-1]


def test_a_plan_may_be_given(tmp_path: Path) -> None:
    plan = selftest.base()["plan"]
    plan["fabric"]["mtu"] = 4000
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    done = alone(
        "--facts", written(tmp_path, {}), "--plan", str(tmp_path / "plan.json"), "--only", "fabric.mtu"
    )
    assert done.returncode == 62
    assert "expected 4000, found enp1s0f1np1 has 9000" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [("--only", "nope"), ("--facts", "/nowhere"), ("explain", "nope"), ("--plan", "/etc/passwd"), ("x",)],
)
def test_wrong_usage_is_one_sentence(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    done = alone(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert inside(capsys, *arguments)[0] == 2


def test_this_machine_is_no_spark_and_collects(tmp_path: Path) -> None:
    out = tmp_path / "bundle.json"
    if Path("/etc/dgx-release").exists():
        pytest.skip("this is one")
    done = alone("collect", str(out))
    assert done.returncode == 0, done.stderr
    again = alone("--facts", str(out))
    assert "not a Spark" in again.stdout
    assert "Traceback" not in again.stderr
    assert again.stdout.splitlines()[1:] == alone().stdout.splitlines()[1:]


def test_list_explain_and_the_page_are_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = inside(capsys, "--list", "--json")
    assert code == 0
    assert [each["id"] for each in json.loads(out)] == list(all_checks())
    for id, check in all_checks().items():
        assert command_line.explain(id) == 0
        shown = capsys.readouterr().out
        assert check.asks in shown
        assert check.fix in shown
    page = (ROOT / "docs/doctor.md").read_text()
    rewrite = "PYTHONPATH=src python3 -m sparkserve.doctor.report docs/doctor.md"
    assert report.renewed(page) == page, f"the table is old: {rewrite}"


def test_ids_and_sentences_have_their_form() -> None:
    for id, check in all_checks().items():
        assert check.area.isupper()
        assert id.replace(".", "").replace("_", "").isalnum()
        assert check.asks.endswith(".")
        assert not check.fix.endswith(".")
        assert check.source


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = inside(capsys, "--help")
    assert code == 0
    assert "./sparkserve doctor --live --only FABRIC" in out
    assert "Examples: doctor" in alone("--help").stdout


def test_a_bundle_is_a_new_file_of_its_owner_and_has_no_secret(tmp_path: Path) -> None:
    out = tmp_path / "bundle.json"
    code = "import time, sys; print(flush=True); time.sleep(100)"
    secrets = ["postgres://usr:S3cr3tA@db/x", "S3cr3tB", "--pass", "S3cr3tC", "AWS_SECRET_ACCESS_KEY=S3cr3tD"]
    argv = [sys.executable, "-c", code, *secrets]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            done = alone("collect", str(out))
        finally:
            process.kill()
    assert done.returncode == 0, done.stderr
    assert out.stat().st_mode & 0o777 == 0o600
    assert f"/proc/{process.pid}/cmdline" in json.loads(out.read_text())["files"]
    assert "S3cr3t" not in out.read_text()
    before = out.read_bytes()
    again = alone("collect", str(out))
    assert again.returncode == 2
    assert again.stderr == f"CLI.USAGE {out} is there already: name a new file, or - for stdout\n"
    assert out.read_bytes() == before
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert alone("collect", str(tmp_path / "link")).returncode == 2
    assert not (tmp_path / "elsewhere").exists()


def test_a_bundle_goes_to_stdout_too() -> None:
    assert json.loads(alone("collect", "-").stdout)["schema"] == "sparkserve.facts/1"


def test_an_interrupted_bundle_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "judge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command_line.collect(str(tmp_path / "bundle.json"), live=False)
    assert list(tmp_path.iterdir()) == []
