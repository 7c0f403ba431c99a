"""What only a browser can show: that a report is readable, and its points are where their values are."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from sparkserve.checks import _pytest
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkserve.checks import Outcome

title = "tests/browser: reports of bench in a headless Chromium, wide and narrow, light and dark"
cost_s = 60
slow = True
NEEDED = {"chromium": "chromium", "chromedriver": "chromium-driver"}  # a program and its Debian package


def run(detail: Callable[[str], None]) -> Outcome:
    """Run tests/browser with the pinned pytest. Raises `NIX.BUILD`, and `HOST.PACKAGE` without a browser."""
    if missing := [program for program in NEEDED if shutil.which(program) is None]:
        raise SparkserveError(
            "HOST.PACKAGE",
            expected=f"{' and '.join(NEEDED)} to open a report",
            found=f"no {' and no '.join(missing)}",
            where="this machine",
            do=f"Run: apt-get install --no-install-recommends {' '.join(NEEDED.values())}",
        )
    return _pytest.run("browser", ["tests/browser"], detail)
