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

    Build = Callable[..., Path]

# `top` refers to itself, twice, and to `middle`, that to `lower`. The salts change recipes, not contents.
CLOSURE = """
{ text, salt, below }:
let
  busybox = builtins.storePath "%s" + "/busybox";
  sh = name: salt: script: derivation {
    inherit name script salt busybox;
    system = "x86_64-linux";
    builder = busybox;
    args = [ "sh" "-c" "eval \\"$script\\"; exit 0" ];
  };
  lower = sh "lower" below "$busybox mkdir $out; echo ${text} >$out/lower";
  middle = sh "middle" below "echo ${lower} >$out";
in
sh "top" salt ''
  $busybox mkdir $out
  echo ${middle} $out and $out >$out/paths
  $busybox ln -s ${lower} $out/link
''
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Builds the closure by another recipe each time, and what is below it by `below`; contents stay."""
    busybox = next(pin.path for pin in model.load("stage0").pins if pin.kind == "tree")
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    (tmp_path / ".sparkserve/roots").mkdir(parents=True)
    (tmp_path / "closure.nix").write_text(CLOSURE % busybox)
    text = uuid.uuid4().hex  # nothing of it is in the store

    def made(below: str = "") -> Path:
        given = {"text": text, "salt": uuid.uuid4().hex, "below": below or uuid.uuid4().hex}
        words = [word for name, value in given.items() for word in ("--argstr", name, value)]
        return Path(run("nix-build", "--no-out-link", str(tmp_path / "closure.nix"), *words).strip())

    return made


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, env=nix.environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_paths_are_those_of_nix(build: Build) -> None:
    one, two = build(), build()
    ours = addressed([one])[0]
    middle, own, _, again = (ours / "paths").read_text().split()
    assert (own, again) == (str(ours), str(ours))
    assert Path(middle).read_text().strip() == str((ours / "link").readlink())
    assert (ours / "link/lower").exists()
    assert one != two
    assert addressed([two, one]) == [ours, ours]
    run("nix", "store", "verify", "--recursive", "--no-trust", str(ours))
    theirs = json.loads(run("nix", "store", "make-content-addressed", "--json", str(one)))["rewrites"]
    assert Path(theirs[str(one)], "paths").read_text().split()[0] == middle
    if "2.8" in run("nix", "--version"):  # later ones have another rule for what holds its own hash
        assert theirs[str(one)] == str(ours)


def test_what_did_not_change_is_not_read_again(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = addressed([build()])
    read: list[str] = []
    dump = nix.dump

    def noted(path: str, *_: str) -> bytes:
        read.append(path)
        return dump(path)

    monkeypatch.setattr(nix, "dump", noted)
    monkeypatch.setattr(nix, "add", noted)
    again, below = build(), uuid.uuid4().hex
    assert addressed([again]) == ours
    # `lower` has a new path too: it refers to nothing, and Nix knows the hash of its contents.
    assert sorted(path.partition("-")[2] for path in read) == ["middle", "top"]
    assert addressed([build(below)]) == addressed([again]) == ours
    read.clear()
    assert addressed([edited := build(below)]) == ours
    assert read == [str(edited)]


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
    lower = str((top / "link").readlink())
    file = Path(lower, "lower")
    file.chmod(0o644)
    file.write_text("other\n")
    try:
        with pytest.raises(SparkserveError, match=f"other ones; where: {lower}"):
            addressed([top])
    finally:
        run("nix-store", "--delete", str(top), (top / "paths").read_text().split()[0], lower)
    assert store.missing([lower]) == {lower}
