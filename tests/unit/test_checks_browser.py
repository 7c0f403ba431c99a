"""The browser suite on a machine without a browser."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from sparkserve.checks import browser
from sparkserve.errors import SparkserveError

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.mark.parametrize("there", [(), ("chromium",), ("chromedriver",)])
def test_says_which_packages(there: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name if name in there else None)
    with pytest.raises(SparkserveError) as caught:
        browser.run(print)
    assert caught.value.id == "HOST.PACKAGE"
    assert "apt-get install --no-install-recommends chromium chromium-driver" in caught.value.do
    assert [name for name in ("chromium", "chromedriver") if f"no {name}" in caught.value.found] == [
        name for name in ("chromium", "chromedriver") if name not in there
    ]
