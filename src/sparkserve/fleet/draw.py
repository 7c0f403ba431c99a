"""Draws a fleet as SVG: a pure function of `Picture`, so equal input gives equal bytes."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from sparkserve.fleet import svg
from sparkserve.fleet.picture import size_text
from sparkserve.fleet.svg import FAINT, INK, MONO_EM

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    from sparkserve.fleet.picture import Layer, Node, Picture, Source

WIDTH = 900
MARGIN = 24
GAP = 16
NODE_MAX = 460
LAYER_HEIGHT = 46
ROW = 17
PAPER, CARD = "#f4f6f7", "#ffffff"
COLOURS = ("#d3e2ee", "#d8e8d3", "#f5e6c4", "#e8daec", "#f3d9d3", "#d5e9e6")


def draw(picture: Picture) -> str:
    """The text of the SVG file."""
    page = svg.page(f"Fleet {picture.fleet}")
    paper = svg.rect(page, svg.Box(0, 0, WIDTH, 0), PAPER, "none")
    svg.text(page, MARGIN, 44, f"Fleet {picture.fleet}", 500, size=20, bold=True)
    nodes = node_boxes(picture)
    _top(page, picture, nodes[0])
    layers = list(dict.fromkeys(layer.name for node in picture.nodes for layer in node.layers))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(layers)}
    for node, box in zip(picture.nodes, nodes, strict=True):
        _node(page, node, box, colours)
    sources = list(dict.fromkeys(layer.source for node in picture.nodes for layer in node.layers))
    y = max(box.y + box.height for box in nodes) + 44
    for box in nodes:
        svg.arrow(page, f"M{box.middle:g} {y:g}V{box.y + box.height + 9:g}")
    y = _sources(page, sources, y, colours)
    height = _fleet_id(page, picture.fleet_id, y)
    paper.set("height", f"{height:g}")
    return svg.finish(page, WIDTH, height)


def node_boxes(picture: Picture) -> list[svg.Box]:
    """Where each node is: side by side, in the middle of the page, all of one size."""
    count = len(picture.nodes)
    width = min(NODE_MAX, (WIDTH - 2 * MARGIN - (count - 1) * GAP) // count)
    left = (WIDTH - count * width - (count - 1) * GAP) / 2
    height = max(
        182 + ROW * len(_memory_lines(node, width)) + LAYER_HEIGHT * len(node.layers)
        for node in picture.nodes
    )
    return [svg.Box(left + i * (width + GAP), 178, width, height) for i in range(count)]


def _top(page: ET.Element, picture: Picture, head: svg.Box) -> None:
    client, endpoint = svg.Box(MARGIN, 76, 170, 58), svg.Box(290, 76, 320, 58)
    svg.rect(page, client, CARD)
    svg.text(page, client.middle, 101, "client", 150, anchor="middle", bold=True)
    svg.text(page, client.middle, 121, "OpenAI API", 150, anchor="middle", colour=FAINT)
    svg.rect(page, endpoint, CARD)
    svg.text(page, endpoint.middle, 101, picture.endpoint, 300, anchor="middle", mono=True, size=13)
    svg.text(page, endpoint.middle, 121, f"endpoint of {picture.model}", 300, anchor="middle", colour=FAINT)
    svg.arrow(page, f"M{client.x + client.width:g} 105H{endpoint.x - 9:g}")
    svg.arrow(page, f"M{endpoint.middle:g} 134V152H{head.middle:g}V{head.y - 9:g}")


def _node(page: ET.Element, node: Node, box: svg.Box, colours: dict[str, str]) -> None:
    x, inner = box.x + 12, box.width - 24
    svg.rect(page, box, CARD, radius=10)
    svg.text(page, x, box.y + 27, node.name, inner - 50, size=15, bold=True)
    svg.text(page, x + inner, box.y + 27, f"rank {node.rank}", 50, anchor="end")
    role = "head" if node.rank == 0 else "worker"
    svg.text(page, x, box.y + 46, f"{role}, {node.address}", inner, colour=FAINT)
    engine = svg.Box(x, box.y + 60, inner, 30)
    svg.rect(page, engine, INK, INK)
    text = f"SGLang ({node.engine})"
    svg.text(page, engine.middle, engine.y + 20, text, inner - 12, anchor="middle", colour=CARD)
    svg.text(page, x, box.y + 112, "in bubblewrap, its root:", inner, size=11, colour=FAINT)
    lines = _memory_lines(node, box.width)
    memory = svg.Box(x, box.y + 120, inner, 30 + ROW * len(lines))
    svg.rect(page, memory, "none", dash="4 3")
    svg.text(page, x + 10, memory.y + 20, "tmpfs, writable", inner - 20, bold=True)
    for i, line in enumerate(lines, 1):
        svg.text(page, x + 10, memory.y + 20 + ROW * i, line, inner - 20, mono=True, size=11)
    y = memory.y + memory.height + 6
    # The first that is mounted lies at the bottom.
    for layer in reversed(node.layers):
        _layer(page, layer, svg.Box(x, y, inner, LAYER_HEIGHT - 4), colours[layer.name])
        y += LAYER_HEIGHT
    svg.text(page, x, y + 12, "layers, read-only", inner, size=11, colour=FAINT)


def _memory_lines(node: Node, width: float) -> list[str]:
    # A no-break space, so that a folder and its size stay on one line.
    text = ", ".join(folder.replace(" ", "\u00a0") for folder in node.memory)
    fits = int((width - 44) / (11 * MONO_EM))
    return textwrap.wrap(text, fits, break_long_words=False, break_on_hyphens=False)


def _layer(page: ET.Element, layer: Layer, box: svg.Box, colour: str) -> None:
    x, right, room = box.x + 10, box.x + box.width - 10, box.width - 20
    size = "" if layer.size is None else size_text(layer.size)
    digest = "" if layer.digest is None else layer.digest[: 12 if room > 200 else 8]
    svg.rect(page, box, colour)
    svg.text(page, x, box.y + 18, layer.name, room - 70, bold=True)
    svg.text(page, right, box.y + 18, size, 70, anchor="end")
    svg.text(page, x, box.y + 34, layer.target, room - 7.5 * len(digest), mono=True, size=11)
    svg.text(page, right, box.y + 34, digest, room, anchor="end", mono=True, size=11, colour=FAINT)


def _sources(page: ET.Element, sources: list[Source], y: float, colours: dict[str, str]) -> float:
    """Draw the panel of sources at `y` and return where it ends."""
    panel = svg.Box(MARGIN, y, WIDTH - 2 * MARGIN, 142)
    svg.rect(page, panel, CARD, radius=10)
    text = "Nix builds the layers, offline, from pinned files of upstream and from this repository"
    svg.text(page, panel.x + 12, y + 26, text, panel.width - 24, colour=FAINT)
    width = (panel.width - 24 - (len(sources) - 1) * 12) / len(sources)
    for i, source in enumerate(sources):
        box = svg.Box(panel.x + 12 + i * (width + 12), y + 40, width, 90)
        svg.rect(page, box, colours[source.layer])
        rows = [row for row in (source.what, source.amount) if row]
        svg.text(page, box.x + 10, box.y + 21, source.layer, width - 20, bold=True)
        for j, row in enumerate(rows, 1):
            svg.text(page, box.x + 10, box.y + 21 + ROW * j, row, width - 20)
        svg.text(page, box.x + 10, box.y + 78, source.file, width - 20, mono=True, size=10.5, colour=FAINT)
    return panel.y + panel.height


def _fleet_id(page: ET.Element, fleet_id: str | None, y: float) -> float:
    """Draw the last lines below `y` and return the height of the page."""
    text = "fleet id: the sha256 over the plans of all nodes, the digest of the root and that of the harness"
    svg.text(page, MARGIN, y + 30, text, WIDTH - 2 * MARGIN, colour=FAINT)
    if fleet_id is None:
        return y + 50
    svg.text(page, MARGIN, y + 52, fleet_id, WIDTH - 2 * MARGIN, mono=True, size=13)
    return y + 74
