"""Runs a folder of tests on this machine with the pinned pytest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from sparkserve import checkout, nix
from sparkserve.checks import Outcome, _command
from sparkserve.fleet import CHOSEN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def run(name: str, arguments: Sequence[str], detail: Callable[[str], None]) -> Outcome:
    """Run pytest with `arguments`; `name` is the suite's, for the log. Raises `NIX.BUILD`."""
    from sparkserve.pins import fetch, profile

    fetch.fetch(profile.usual(), (), None)
    dev = nix.build(["dev"], out_link=checkout.state() / "dev", on_line=lambda line: detail(line[:90]))[0]
    report = checkout.state() / "check" / f"{name}.xml"
    report.unlink(missing_ok=True)
    pytest = [f"{dev}/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-v", f"--junitxml={report}"]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop(CHOSEN, None)  # yours, and the tests are about ours
    code, lines = _command.run(name, [*pytest, *arguments], env=env, detail=detail)
    if not report.exists():
        return Outcome(0, [f"pytest ended with exit code {code}:\n" + "\n".join(lines[-25:])])
    return read(report.read_text())


def read(junit: str) -> Outcome:
    """Count a JUnit report. A skipped test has not passed and is no failure."""
    passed = 0
    failures = []
    for case in ElementTree.fromstring(junit).iter("testcase"):  # noqa: S314 - pytest just wrote it
        bad = [part for part in case if part.tag in ("failure", "error")]
        failures += [f"{case.get('classname')}.{case.get('name')}: {part.text}" for part in bad]
        passed += not bad and case.find("skipped") is None
    return Outcome(passed, failures)
