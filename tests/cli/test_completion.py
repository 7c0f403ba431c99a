"""What Tab offers for names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.shell_completion import BashComplete

from sparkserve.cli.commands import check, fleet, pins, up

if TYPE_CHECKING:
    from pathlib import Path

    import click


@pytest.mark.parametrize(
    ("command", "arguments", "begun", "words"),
    [
        (up.command, ["--fleet"], "", ["desk", "local-single"]),
        (up.command, ["--fleet"], "d", ["desk"]),
        (fleet.command, ["show"], "lo", ["local-single"]),
        (check.command, ["--only"], "pi", ["pins"]),
        (pins.command, ["fetch", "base"], "", ["base", "tools"]),
        (pins.command, ["export", "folder"], "t", ["tools"]),
        (pins.command, ["audit", "file"], "b", ["base"]),
        (pins.command, [], "exp", ["export"]),
    ],
)
def test_names(
    command: click.Command,
    arguments: list[str],
    begun: str,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(tmp_path))
    for name in ("hosts/desk/fleet.nix", "hosts/local-single/fleet.nix", "nix/profiles/base.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "nix/profiles/tools.toml").touch()
    shell = BashComplete(command, {}, "sparkserve", "_SPARKSERVE_COMPLETE")
    assert [item.value for item in shell.get_completions(arguments, begun)] == words
