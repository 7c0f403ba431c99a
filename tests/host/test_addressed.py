"""Content-addressed closures: the paths are those that Nix's own command makes, and Nix checks every byte."""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sparkserve import checkout, nix
from sparkserve.errors import SparkserveError
from sparkserve.pins import model, store
from sparkserve.transport import rewrite
from sparkserve.transport.addressed import addressed

if TYPE_CHECKING:
    from collections.abc import Callable

    Build = Callable[[], Path]

# `top` refers to `lower` and to itself, twice, `lower` to nothing; the salt changes recipes, not contents.
CLOSURE = """
{ salt, text }:
let
  busybox = builtins.storePath "%s" + "/busybox";
  sh = name: script: derivation {
    inherit name script salt busybox;
    system = "x86_64-linux";
    builder = busybox;
    args = [ "sh" "-c" "eval \\"$script\\"; exit 0" ];
  };
  lower = sh "lower" "$busybox mkdir $out; echo ${text} >$out/lower";
in
sh "top" "$busybox mkdir $out; echo ${lower} $out and $out >$out/paths; $busybox ln -s ${lower} $out/link"
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Builds the closure, each time by another recipe, always with the same contents."""
    busybox = next(pin.path for pin in model.load("stage0").pins if pin.kind == "tree")
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    (tmp_path / ".sparkserve/roots").mkdir(parents=True)
    (tmp_path / "closure.nix").write_text(CLOSURE % busybox)
    text = uuid.uuid4().hex  # nothing of it is in the store

    def made() -> Path:
        argv = ["nix-build", "--no-out-link", str(tmp_path / "closure.nix"), "--argstr", "text", text]
        return Path(run(*argv, "--argstr", "salt", uuid.uuid4().hex).strip())

    return made


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, env=nix.environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_paths_are_those_of_nix(build: Build) -> None:
    one, two = build(), build()
    ours = addressed([one])[0]
    lower, own, _, again = (ours / "paths").read_text().split()
    assert (own, again, (ours / "link").readlink()) == (str(ours), str(ours), Path(lower))
    assert Path(lower, "lower").exists()
    assert one != two
    assert addressed([two, one]) == [ours, ours]
    theirs = json.loads(run("nix", "store", "make-content-addressed", "--json", str(one)))["rewrites"]
    assert theirs[str(one)] == str(ours)
    run("nix", "store", "verify", "--recursive", "--sigs-needed", "1", str(ours))  # none is needed


def test_what_did_not_change_is_not_read_again(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = addressed([build()])
    read: list[str] = []
    dump = nix.dump

    def noted(path: str, *_: str) -> bytes:
        read.append(path)
        return dump(path)

    monkeypatch.setattr(nix, "dump", noted)
    monkeypatch.setattr(nix, "add", noted)
    again = build()
    assert addressed([again]) == ours
    assert read == [str(again)]  # `lower` has a new path, refers to nothing, and is known by its hash
    assert addressed([again]) == ours
    assert read == [str(again)]


def test_what_was_collected_is_made_again(build: Build) -> None:
    top = build()
    ours = addressed([top])[0]
    for root in (checkout.state() / "roots").iterdir():
        root.unlink()
    run("nix-store", "--delete", str(ours))
    assert addressed([top]) == [ours]
    assert (ours / "paths").exists()


def test_nix_refuses_a_wrong_name(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it would if `rewrite` computed names by another rule than this Nix."""
    monkeypatch.setattr(rewrite, "_modulo", lambda nar, own: "0" * 64)
    with pytest.raises(SparkserveError, match="hash mismatch") as caught:
        addressed([build()])
    assert caught.value.id == "NIX.BUILD"


def test_a_damaged_path_is_named(build: Build) -> None:
    top = build()
    lower = (top / "paths").read_text().split()[0]
    file = Path(lower, "lower")
    file.chmod(0o644)
    file.write_text("other\n")
    try:
        with pytest.raises(SparkserveError, match=f"other ones; where: {lower}"):
            addressed([top])
    finally:
        run("nix-store", "--delete", str(top), lower)
    assert store.missing([lower]) == {lower}
