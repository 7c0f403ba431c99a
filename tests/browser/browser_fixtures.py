"""One Chromium for all tests, and the pages of the reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import browser
import pytest
from browser_reports import REPORTS

from sparkserve.bench.report import page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from browser import Browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with browser.start() as started:
        yield started


class Files(dict[str, Path]):
    """The page of each report, made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, name: str) -> Path:
        self[name] = self._folder / f"{name}.html"
        self[name].write_text(page.html(REPORTS[name]()), encoding="utf-8")
        return self[name]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("reports"))
