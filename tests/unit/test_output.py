"""The printer takes any text: what others print often has brackets in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkserve.output import phase

if TYPE_CHECKING:
    import pytest


def test_brackets_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    with phase("Build [red] of [/bin/sh]") as detail:
        detail("[1/2 built] [/bin/sh]")
    assert "Build [red] of [/bin/sh]" in capsys.readouterr().err
