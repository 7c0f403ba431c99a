"""The engine root for a DGX Spark, built here, and what can be proved of it without one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sparkserve import checkout, nix
from sparkserve.checks import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

title = "the engine root for GB10 is built and keeps every rule of its check; fetches 3.7 GB first"
cost_s = 900
slow = True


def run(detail: Callable[[str], None]) -> Outcome:
    """Fetch its pins, build it, and count the rules that hold. Raises `PIN.*`, `ROOT.CHECK`, `NIX.BUILD`."""
    from sparkserve.pins import fetch

    fetch.fetch(["engine-gb10"], (), None)
    link = checkout.state() / "engine-gb10"
    built = nix.build(["engine-gb10"], out_link=link, on_line=lambda line: detail(line[:90]))[0]
    return Outcome(len(json.loads((built / "root.json").read_text())["rules"]), [])
