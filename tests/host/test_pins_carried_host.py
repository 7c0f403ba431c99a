"""Air gap: what `pins export` wrote is all that a machine with an empty store and no network needs.

Its Nix, git and Python are this machine's. Costs a minute.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from pins_world import REPOSITORY, World

from sparkserve import nix
from sparkserve.pins import exporting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[World]:
    """A clone on a machine without a network."""
    root = tmp_path / "clone"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, root / name)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-C", str(root)]
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "x"]):
        subprocess.run([*git, *arguments], check=True)
    made = World(root, "--net")
    yield made
    made.holder.kill()
    made.holder.wait()
    # A store is read-only; make it removable.
    subprocess.run(["chmod", "-R", "u+w", str(root / "store")], check=False)


def test_an_export_is_all_that_an_empty_store_without_a_network_needs(
    cut: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(REPOSITORY))
    usb = tmp_path / "a stick"
    exporting.export(usb, ["base"])
    entry = str(cut.root / "sparkserve")
    assert list((cut.root / "store").iterdir()) == []
    assert cut.run("ip", "route")[1] == ""

    damaged = next((usb / "files").glob("bash_*.deb"))
    right = damaged.read_bytes()
    damaged.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    code, out = cut.run(entry, "pins", "import", str(usb))
    assert code == 21, out
    assert f"1 damaged: {damaged.name}" in out

    damaged.write_bytes(right)
    code, out = cut.run(entry, "pins", "import", str(usb))
    assert code == 0, out
    code, out = cut.run(entry, "nix", "build", "--no-link", f"git+file://{cut.root}#engine-base")
    assert code == 0, out
    [here] = nix.build(["engine-base"])
    ask = ["nix-store", "--query", "--hash", str(here)]
    expected = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    # Below warnings of a Nix that was just installed.
    assert cut.run(*ask)[1].splitlines()[-1:] == [expected.strip()]
