"""Every command line that goes to a node, compared whole."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from sparkserve import commands
from sparkserve.commands import Command, Safety

if TYPE_CHECKING:
    from pathlib import Path

P = "/nix/store/00000000000000000000000000000000-host"
HOLD = 'mkdir -p "$1" && ln -sfn "$3" "$1/.$2" && mv -T "$1/.$2" "$1/$2"'
STOP = 'for unit; do systemctl cat "$unit" >/dev/null 2>&1 || continue; systemctl stop "$unit" || exit; done'
UNVERIFIED = (
    'all=$(nix-store --query --requisites "$1") || exit; '
    'if [ -e "$2" ]; then echo "$all" | grep -vxFf "$2"; else echo "$all"; fi; :'
)
FOLLOW = 'exec 3<&0; "$@" 3<&- & i=$!; { cat <&3; kill "$i"; } >/dev/null 2>&1 & wait "$i"'
NOTE = 'file=$1; shift; mkdir -p "${file%/*}" && printf "%s\\n" "$@" >>"$file"'
RESTORE = (
    'new="/nix/store/.sparkserve-$$" && rm -rf "$new" && nix-store --restore "$new" && '
    'chmod -R a-w "$new" && rm -rf "$1" && mv -T "$new" "$1" && sync -f /nix/store'
)
READ = (
    "for path; do for name in plan closure pins; do "
    'cat "$path/$name.json" 2>/dev/null; printf "\\0"; done; done'
)
CURRENT = 'nix-env --profile "$1" --set "$2" && sync -f "${1%/*}" && rm -f "$3/$4"'
LINES = [
    (commands.hold("incoming", P), 2, f"sh -c '{HOLD}' hold /nix/var/nix/gcroots/sparkserve incoming {P}"),
    (commands.sync("/nix/store"), 2, "sync -f /nix/store"),
    (commands.verify(P, "/q"), 1, "nix --extra-experimental-features nix-command "
     f"store verify --no-trust {P} /q"),
    (commands.unverified(P), 1, f"sh -c '{UNVERIFIED}' unverified {P} /run/sparkserve/verified"),
    (commands.note_verified(P, "/q"), 2, f"sh -c '{NOTE}' note /run/sparkserve/verified {P} /q"),
    (commands.restore(P), 2, f"sh -c '{RESTORE}' restore {P}"),
    (commands.make_current(P, "incoming"), 2, f"sh -c '{CURRENT}' current /nix/var/nix/profiles/sparkserve "
     f"{P} /nix/var/nix/gcroots/sparkserve incoming"),
    (commands.delete_generations("3", "5"), 2,
     "nix-env --profile /nix/var/nix/profiles/sparkserve --delete-generations 3 5"),
    (commands.gc_roots(), 1, "nix-store --gc --print-roots"),
    (commands.registered(), 1, "nix-store --dump-db"),
    (commands.collect_garbage(), 2, "nix-store --gc"),
    (commands.current(), 1, "readlink -e /nix/var/nix/profiles/sparkserve"),
    (commands.activate(P), 2, f"{P}/bin/activate"),
    (commands.preview(P), 1, f"{P}/bin/activate --dry-run --json"),
    (commands.reboot(), 3, "systemctl reboot"),
    (commands.deploy_member(f"{P}/bin/sparkserve", "look"), 1,
     f"{P}/bin/sparkserve deploy member look --json --"),
    (commands.deploy_member(f"{P}/bin/sparkserve", "note", "0123456789ab", "2", "it's activated"), 2,
     f"{P}/bin/sparkserve deploy member note --json -- 0123456789ab 2 'it'\"'\"'s activated'"),
    (commands.boot_id(), 1, "cat /proc/sys/kernel/random/boot_id"),
    (commands.copy_closure("spark-1", P), 2, f"nix copy --to ssh://spark-1 {P}"),
    (commands.ask_group("status"), 1, "/nix/var/nix/profiles/sparkserve/bin/sparkserve rank ask "
     "/nix/var/nix/profiles/sparkserve status"),
    (commands.ask_group("stop"), 3, "/nix/var/nix/profiles/sparkserve/bin/sparkserve rank ask "
     "/nix/var/nix/profiles/sparkserve stop"),
    (commands.wait_group("1/up", 10), 1, "/nix/var/nix/profiles/sparkserve/bin/sparkserve rank wait "
     "/nix/var/nix/profiles/sparkserve 1/up --seconds 10"),
    (commands.check_fabric(), 1, "/nix/var/nix/profiles/sparkserve/bin/sparkserve fabric check "
     "--plan /nix/var/nix/profiles/sparkserve/plan.json --json"),
    (commands.look(), 1, "/nix/var/nix/profiles/sparkserve/bin/sparkserve rank look "
     "/nix/var/nix/profiles/sparkserve"),
    (commands.drift(live=True, deep=False), 1, "/nix/var/nix/profiles/sparkserve/bin/sparkserve rank drift "
     "/nix/var/nix/profiles/sparkserve --live"),
    (commands.drift(live=False, deep=True), 1, "/nix/var/nix/profiles/sparkserve/bin/sparkserve rank drift "
     "/nix/var/nix/profiles/sparkserve --deep"),
    (commands.read_closures(P), 1, f"sh -c '{READ}' read {P}"),
    (commands.boot_log(50), 1, "/nix/var/nix/profiles/sparkserve/bin/sparkserve rank log --lines 50"),
    (commands.boot_log(50, follow=True, after="7:1234"), 1,
     "/nix/var/nix/profiles/sparkserve/bin/sparkserve rank log --after 7:1234 --follow"),
    (commands.journal("a.service", 9), 1,
     "journalctl --quiet --output=json --output-fields=MESSAGE --unit=a.service --lines=9"),
    (commands.journal("a.service", 9, follow=True, after="s=1;i=2"), 1,
     f"sh -c '{FOLLOW}' follow journalctl --quiet --output=json --output-fields=MESSAGE --unit=a.service "
     "--no-tail '--after-cursor=s=1;i=2' --follow"),
    (commands.shown_units("a.service", "b.service"), 1,
     "systemctl show --property=Id,ActiveState,ExecStart,NeedDaemonReload a.service b.service"),
    (commands.start_units("a.service"), 2,
     """sh -c 'systemctl reset-failed "$@" 2>/dev/null; exec systemctl start "$@"' - a.service"""),
    (commands.stop_units("a.service"), 3, f"sh -c '{STOP}' stop a.service"),
    (commands.deploy_effect("/p", "0123456789ab", 2, "start", commands.start_units("a.service")),
     2, "/p deploy member do 0123456789ab 2 start -- "
     """sh -c 'systemctl reset-failed "$@" 2>/dev/null; exec systemctl start "$@"' - a.service"""),
    (commands.deploy_effect("/p", "0123456789ab", 2, "stop", commands.stop_units("a.service")), 3,
     f"/p deploy member do 0123456789ab 2 stop -- sh -c '{STOP}' stop a.service"),
    (commands.deactivate(P), 2, f"{P}/bin/deactivate"),
    (commands.drop_profile(), 2, "rm -f /nix/var/nix/profiles/sparkserve"),
    (commands.held("deploy"), 1, "readlink -e /nix/var/nix/gcroots/sparkserve/deploy"),
    (commands.lacking(P, P), 1, f"nix-store --check-validity --print-invalid {P} {P}"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "safety", "line"), LINES, ids=[line[2].split("/")[0][:20] for line in LINES]
)
def test_lines(command: Command, safety: int, line: str) -> None:
    assert command.line() == line
    assert command.safety == Safety(safety)


def test_ssh_line() -> None:
    command = commands.reads("echo", "a b", "$HOME", "it's")
    assert commands.ssh("/run/c/config", "/run/c", "spark-1", command) == [
        *["ssh", "-F", "/run/c/config", "-o", "LogLevel=INFO", "-o", "RemoteCommand=none"],
        *["-o", "BatchMode=yes", "-o", "ConnectTimeout=5"],
        *["-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=3", "-o", "ControlMaster=auto"],
        *["-o", "ControlPath=/run/c/%C", "-o", "ControlPersist=20", "-T", "spark-1", "--"],
        """echo 'a b' '$HOME' 'it'"'"'s'""",
    ]


def test_a_forwarded_port_has_a_connection_of_its_own_that_ends_with_its_stdin() -> None:
    until = commands.until_stdin_ends()
    assert commands.ssh_forward("/run/c/config", "spark-0", 4711, "127.0.0.1", 8888, until) == [
        *["ssh", "-F", "/run/c/config", "-o", "ExitOnForwardFailure=yes"],
        *["-o", "LogLevel=INFO", "-o", "RemoteCommand=none"],
        *["-o", "BatchMode=yes", "-o", "ConnectTimeout=5"],
        *["-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=3", "-o", "ControlMaster=no"],
        *["-o", "ControlPath=none", "-L", "127.0.0.1:4711:127.0.0.1:8888", "-T", "spark-0", "--"],
        "sh -c 'echo; exec cat'",
    ]


@pytest.mark.parametrize(
    "word", ["a b", "$(touch x)", "it's", "*", "a\nb", "", "~", "ü", "-n", "a;b", '"', "\\"]
)
def test_a_shell_at_the_other_end_gets_the_same_words(word: str) -> None:
    command = commands.reads("printf", "%s", word, "end")
    assert shlex.split(command.line()) == list(command.argv)
    out = subprocess.run(["sh", "-c", command.line()], capture_output=True, text=True, check=True).stdout
    assert out == f"{word}end"


def test_hold_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "HOLDS", str(tmp_path / "roots"))
    for target in ("/nix/store/a", "/nix/store/b"):
        subprocess.run(commands.hold("incoming", target).argv, check=True)
        assert (tmp_path / "roots/incoming").readlink().name == target[-1]


def test_generations_lists_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "PROFILE", str(tmp_path / "sparkserve"))
    ask = commands.generations()
    assert subprocess.run(ask.argv, capture_output=True, text=True, check=True).stdout == ""
    for number, target in ((1, "/nix/store/a"), (12, "/nix/store/b")):
        (tmp_path / f"sparkserve-{number}-link").symlink_to(target)
    (tmp_path / "sparkserve").symlink_to("sparkserve-12-link")
    out = subprocess.run(ask.argv, capture_output=True, text=True, check=True).stdout
    assert sorted(out.splitlines()) == ["1 /nix/store/a", "12 /nix/store/b", "current 12"]


def test_closures_say_what_they_are(tmp_path: Path) -> None:
    ours = tmp_path / "it's ours"
    ours.mkdir()
    (ours / "plan.json").write_text('{\n  "a": 1\n}\n')
    (ours / "closure.json").write_text('{"b": "\\n"}')
    out = subprocess.run(commands.read_closures("/none", str(ours)).argv, capture_output=True, text=True)
    assert out.stdout.split("\0") == ["", "", "", '{\n  "a": 1\n}\n', '{"b": "\\n"}', "", ""]


def test_what_is_verified_is_noted_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "VERIFIED", str(tmp_path / "run/verified"))
    query = tmp_path / "nix-store"
    query.write_text(f"#!{shutil.which('sh')}\nprintf '/nix/store/a\\n/nix/store/ab\\n/nix/store/c\\n'\n")
    query.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def left() -> list[str]:
        argv = commands.unverified(P).argv
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()

    assert left() == ["/nix/store/a", "/nix/store/ab", "/nix/store/c"]
    subprocess.run(commands.note_verified("/nix/store/a").argv, check=True)
    assert left() == ["/nix/store/ab", "/nix/store/c"]
    subprocess.run(commands.note_verified("/nix/store/ab", "/nix/store/c").argv, check=True)
    assert left() == []
    query.write_text(f"#!{shutil.which('sh')}\nexit 1\n")  # the closure is not there
    assert subprocess.run(commands.unverified(P).argv).returncode == 1


def test_a_followed_journal_ends_with_its_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "journalctl"
    journal.write_text(f"#!{shutil.which('sh')}\necho $$\nexec sleep 60\n")
    journal.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    argv = commands.journal("a.service", 9, follow=True).argv
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        pid = int(child.stdout.readline())
        os.kill(pid, 0)
        child.stdin.close()
        child.wait(20)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_followed_journal_that_ends_is_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "journalctl"
    journal.write_text(f"#!{shutil.which('sh')}\nexit 7\n")
    journal.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    argv = commands.journal("a.service", 9, follow=True).argv
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read() == b""  # also nothing else holds it open
        assert child.wait(20) == 7
