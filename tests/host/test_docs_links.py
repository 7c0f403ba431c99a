"""Links of the README and the docs lead to files and headings that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    missing = []
    for link in (first or second for first, second in LINK.findall(page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (heading and heading not in anchors(target)):
            missing.append(link)
    assert missing == []
