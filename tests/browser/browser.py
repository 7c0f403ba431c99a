"""A headless Chromium that shows a file, and what can be read off its screen.

Everything here is asked of the browser's layout, never of the file: a box is where it is drawn.
"""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEIGHT = 900


class Box(NamedTuple):
    """Pixels from the page's left and top."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def x(self) -> float:
        return (self.left + self.right) / 2

    @property
    def y(self) -> float:
        return (self.top + self.bottom) / 2


class Item(NamedTuple):
    """An element: where it is, its text as shown, how it looks, and its `data-` values."""

    box: Box
    text: str
    colour: str
    stroke: str
    shape: str  # of a path, wherever it begins
    data: dict[str, str]
    group: int  # of the plot that it is in

    def value(self, name: str) -> float:
        return float(self.data[name])


# Of elements that are shown, what a user sees. `group` is the index of the plot that an element is in.
_FIND = """
const plots = [...document.querySelectorAll('.plot')];
return [...document.querySelectorAll(arguments[0])]
  .filter(e => e.checkVisibility({visibilityProperty: true, opacityProperty: true})).map(e => {
    const b = e.getBoundingClientRect(), s = getComputedStyle(e);
    return {box: [b.left + scrollX, b.top + scrollY, b.right + scrollX, b.bottom + scrollY],
      text: (e.innerText ?? e.textContent).trim(), stroke: s.stroke,
      colour: e instanceof SVGElement && s.fill !== 'none' ? s.fill : s.color,
      shape: (e.getAttribute('d') || '').replace(/^M[^ ]+ [0-9.]+/, ''), data: {...e.dataset},
      group: plots.indexOf(e.closest('.plot'))};
  });
"""

# Colours of a text and of what is behind it, for every text that is shown.
_COLOURS = """
const behind = e => {
  for (; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if (!colour.endsWith(', 0)')) return colour;
  }
  return 'rgb(255, 255, 255)';
};
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = {};
for (let n; (n = walk.nextNode());) {
  const e = n.parentElement, s = getComputedStyle(e);
  if (!n.data.trim() || ['title', 'desc', 'STYLE'].includes(e.tagName)) continue;
  found[(e instanceof SVGElement ? s.fill : s.color) + '|' + behind(e)] = n.data.trim();
}
return found;
"""


class Browser:
    """One Chromium."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self._driver: Any = driver  # selenium has types for some of it only

    def show(self, file: Path, *, width: int = 1280, scheme: str = "light") -> None:
        """Open `file` in a window `width` pixels wide, and forget what an earlier page logged."""
        screen = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        self._do("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._do("Emulation.setEmulatedMedia", {"features": features})
        self._driver.get("about:blank")
        for log in ("performance", "browser"):
            self._driver.get_log(log)
        self._driver.get(file.as_uri())

    def items(self, selector: str) -> list[Item]:
        """The elements of `selector` that are shown."""
        found = self._driver.execute_script(_FIND, selector)
        return [Item(Box(*each.pop("box")), **each) for each in found]

    def plots(self, selector: str) -> list[list[Item]]:
        """The same inside plots: a list for each plot of the page."""
        found: list[list[Item]] = [[] for _ in self.items(".plot")]
        for item in self.items(selector):
            if item.group >= 0:
                found[item.group].append(item)
        return found

    def colours(self) -> dict[str, str]:
        """`colour|background` of texts, and one text that has them."""
        return dict(self._driver.execute_script(_COLOURS))

    def width(self) -> float:
        """How far the page reaches to the right."""
        return float(self._driver.execute_script("return document.documentElement.scrollWidth"))

    def style(self, selector: str, name: str) -> str:
        """A computed style of the first element."""
        return str(
            self._driver.execute_script(
                "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, name
            )
        )

    def complaints(self) -> list[str]:
        """What the console says."""
        return [entry["message"] for entry in self._driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that the page asked for, itself left out."""
        events = [json.loads(entry["message"])["message"] for entry in self._driver.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if url != self._driver.current_url]

    def scripts(self) -> int:
        """How many scripts there are."""
        return int(self._driver.execute_script("return document.scripts.length"))

    def pseudo(self, selector: str, which: str) -> str:
        """What stands before or behind the first element's own text."""
        script = "return getComputedStyle(document.querySelector(arguments[0]), arguments[1]).content"
        return str(self._driver.execute_script(script, selector, which))

    def described(self) -> list[tuple[str, str]]:
        """Name and description of each plot, as a screen reader is told them."""
        tree = self._driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        plots = [node for node in tree if node.get("role", {}).get("value") == "image"]
        return [(p["name"]["value"], p.get("description", {}).get("value", "")) for p in plots]

    def _do(self, command: str, parameters: dict[str, Any]) -> None:
        self._driver.execute_cdp_cmd(command, parameters)


@contextmanager
def start() -> Iterator[Browser]:
    """Debian's chromium. Selenium is told both paths, or it would look for a download."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    # As root Chromium has no sandbox of its own, and it shows nothing but our own files.
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", "force-color-profile=srgb"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver") or "chromedriver"))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
