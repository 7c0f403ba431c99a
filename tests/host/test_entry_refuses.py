"""What the entry script says when a host cannot do it: one paragraph and an exit code of its own each."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import stub_clone
from test_entry import paragraph

if TYPE_CHECKING:
    from stub_clone import Clone

# In a mount namespace of its own, so that nothing has to be unmounted.
IN_NAMESPACE = ("unshare", "--mount", "bash", "-euc")


def tools_without_nix(folder: Path, apt: str) -> str:
    """A PATH with all of /usr/bin but Nix, and with `apt` as the script apt-get (none when empty)."""
    folder.mkdir()
    for tool in Path("/usr/bin").iterdir():
        if not tool.name.startswith(("nix", "apt-get")):
            (folder / tool.name).symlink_to(tool)
    if apt:
        (folder / "apt-get").write_text(f"#!/bin/sh\n{apt}\n")
        (folder / "apt-get").chmod(0o755)
    return str(folder)


def test_no_user_namespaces(clone: Clone) -> None:
    # The kernel gives none to a chroot.
    script = 'mount --rbind / "$0/.home"; exec chroot "$0/.home" "$@"'
    code, _, err = clone.run("up", under=(*IN_NAMESPACE, script, str(clone.path)))
    assert code == 11
    paragraph(err, "HOST.NAMESPACES")
    assert not (clone.path / ".sparkserve/venv.new").exists()


def test_full_disk(clone: Clone) -> None:
    state = clone.path / ".sparkserve"
    state.mkdir()
    script = 'mount -t tmpfs -o size=4m tmpfs "$0"; "$@" || code=$?; ls "$0"; exit $code'
    code, out, err = clone.run("up", under=(*IN_NAMESPACE, script, str(state)))
    assert code == 12
    paragraph(err, "HOST.DISK")
    assert "venv" not in out


def test_read_only_checkout(clone: Clone) -> None:
    script = 'mount --bind -o ro "$0" "$0"; exec "$@"'
    code, _, err = clone.run("up", under=(*IN_NAMESPACE, script, str(clone.path)))
    assert code == 12
    paragraph(err, "HOST.DISK")


def test_package_that_apt_cannot_install(clone: Clone, tmp_path: Path) -> None:
    path = tools_without_nix(tmp_path / "bin", "echo 'E: Unable to locate package nix-bin'; exit 100")
    code, _, err = clone.run("up", PATH=path)
    assert code == 14
    paragraph(err, "HOST.PACKAGE")
    assert "Unable to locate package nix-bin" in err
    assert "installing nix-bin ... failed" in err


def test_apt_with_a_full_disk(clone: Clone, tmp_path: Path) -> None:
    path = tools_without_nix(
        tmp_path / "bin", "echo 'E: write error (28: No space left on device)'; exit 100"
    )
    code, _, err = clone.run("nix", "--version", PATH=path)
    assert code == 12
    paragraph(err, "HOST.DISK")


def test_no_apt_and_no_nix(clone: Clone, tmp_path: Path) -> None:
    code, _, err = clone.run("up", PATH=tools_without_nix(tmp_path / "bin", ""))
    assert code == 15
    paragraph(err, "HOST.SYSTEM")
    assert "missing: nix-bin" in err


def test_other_machine(clone: Clone, tmp_path: Path) -> None:
    path = tools_without_nix(tmp_path / "bin", "")
    (tmp_path / "bin/uname").unlink()
    (tmp_path / "bin/uname").write_text("#!/bin/sh\necho Linux aarch64\n")
    (tmp_path / "bin/uname").chmod(0o755)
    code, _, err = clone.run("up", PATH=path)
    assert code == 15
    paragraph(err, "HOST.SYSTEM")


def test_not_a_git_clone(clone: Clone) -> None:
    shutil.rmtree(clone.path / ".git")
    code, _, err = clone.run("up")
    assert code == 15
    paragraph(err, "HOST.SYSTEM")


def test_path_that_nix_cannot_take(tmp_path: Path) -> None:
    (tmp_path / "my clone").mkdir()
    code, _, err = stub_clone.make(tmp_path / "my clone").run("up")
    assert code == 15
    paragraph(err, "HOST.SYSTEM")


def test_wheel_that_pip_does_not_find(clone: Clone) -> None:
    code, _, err = clone.run("up", PIP_FIND_LINKS="/nowhere")
    assert code == 23
    paragraph(err, "PIN.FETCH")
    assert "tiny==1.0" in err
    assert not list((clone.path / ".sparkserve").glob("venv*"))


def test_a_damaged_list_of_the_harness(clone: Clone) -> None:
    pins = clone.path / "nix/pins/harness.json"
    for damage in (lambda: pins.write_text('{"pins": [{"ki'), pins.unlink):
        damage()
        code, out, err = clone.run("up", "--json")
        said = json.loads(out)
        assert (code, said["error"], said["where"]) == (24, "PIN.PROFILE", str(pins))
        assert said["do"] == "Run: git restore nix/pins/harness.json"
        assert "Traceback" not in err
        assert said["found"]


def test_an_error_of_the_first_fetch_is_all_of_stdout(clone: Clone) -> None:
    (clone.path / "src/sparkserve/cli/main.py").write_text("import sys\nprint(*sys.argv[1:])\nsys.exit(23)\n")
    code, out, _ = clone.run("up", "--json")
    assert (code, out) == (23, "pins fetch stage0 base tools harness --json\n")


def test_errors_of_the_build(clone: Clone) -> None:
    flake = clone.path / "flake.nix"
    good = flake.read_text()
    thrown = 'throw "PIN.MISSING | x.whl in the store | nothing | /nix/store | Run ./sparkserve pins fetch."'
    flake.write_text(good.replace("= derivation", f"= {thrown} derivation", 1))
    code, _, err = clone.run("up")
    assert code == 20
    assert err.splitlines()[-1] == (
        "PIN.MISSING expected x.whl in the store, found nothing (/nix/store). Run ./sparkserve pins fetch."
    )

    flake.write_text(good.replace("= derivation", "= nonsense", 1))
    code, _, err = clone.run("up")
    assert code == 40
    paragraph(err, "NIX.BUILD")
    assert "undefined variable 'nonsense'" in err

    flake.write_text(good)
    assert clone.run("up")[0] == 0


def test_clone_of_another_user(clone: Clone) -> None:
    subprocess.run(["chown", "-R", "65534", str(clone.path)], check=True)
    code, out, err = clone.run("up")
    assert (code, out.splitlines()[0]) == (0, "first up"), err
    assert (clone.path / ".sparkserve/harness").lstat().st_uid == 0
    mine = [p for p in (clone.path / "src").rglob("*") if p.stat().st_uid == 0]
    assert mine == []
